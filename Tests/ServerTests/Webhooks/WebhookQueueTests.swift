// The queue of one webhook, step by step: pauses, order, the window, the end of an outage, the state that is kept.
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite struct WebhookQueueTests {
  private static let day: Int64 = 86_400_000

  private func delivery(_ original: String, _ position: Position) throws -> WebhookDelivery {
    try #require(
      WebhookDelivery(
        LedgerChange(
          point: ChangePoint(position), appFamilyID: WebhookFixture.family,
          content: .sale(ScriptedChanges.sale(original, position), isRenewal: false))))
  }

  private func queue(_ originals: String...) throws -> WebhookQueue {
    var queue = WebhookQueue(WebhookState(next: ChangePoint(0)), [:], nowMs: 0)
    queue.add(
      try originals.enumerated().map { try delivery($0.element, $0.offset) },
      next: ChangePoint(originals.count))
    return queue
  }

  private func end(
    _ queue: inout WebhookQueue, _ position: Position, _ outcome: WebhookOutcome, _ nowMs: Int64
  ) {
    queue.end(
      ChangePoint(position), outcome, nowMs: nowMs, webhookSHA256Hex: "w",
      disableAfterMs: 5 * Self.day)
  }

  @Test func failuresAreRetriedAfterPausesThatGrowToTenHours() throws {
    var queue = try queue("a")
    var nowMs: Int64 = 0
    let hour: Int64 = 3_600_000
    for pause in [5_000, 300_000, hour / 2, 2 * hour, 5 * hour, 10 * hour, 10 * hour, 10 * hour] {
      #expect(queue.takeDue(nowMs: nowMs).count == 1)
      end(&queue, 0, .failed("x"), nowMs)
      #expect(queue.takeDue(nowMs: nowMs + pause - 1).isEmpty)
      nowMs += pause
    }
  }

  @Test func aWebhookIsDisabledAfterDaysWithoutASuccessAndNotBefore() throws {
    var queue = try queue("a", "b")
    _ = queue.takeDue(nowMs: 0)
    end(&queue, 0, .failed("x"), 1000)
    end(&queue, 1, .delivered, 2000)
    _ = queue.takeDue(nowMs: Self.day)
    end(&queue, 0, .failed("x"), Self.day)
    _ = queue.takeDue(nowMs: 6 * Self.day - 1)
    end(&queue, 0, .failed("x"), 6 * Self.day - 1)
    #expect(queue.disabled == nil)
    _ = queue.takeDue(nowMs: 7 * Self.day)
    end(&queue, 0, .failed("x"), 7 * Self.day)
    #expect(queue.disabled?.cause == .failures)
    #expect(queue.takeDue(nowMs: 100 * Self.day).isEmpty && queue.room == 0)
    queue.enable()
    #expect(queue.takeDue(nowMs: 7 * Self.day).map(\.point) == [ChangePoint(0)])
  }

  @Test func onlyTheFirstOfALineIsUnderWayAndNoMoreThanSixteenInAll() throws {
    var queue = try queue("a", "a", "b")
    #expect(queue.takeDue(nowMs: 0).map(\.point.position) == [0, 2])
    #expect(queue.takeDue(nowMs: 0).isEmpty)
    end(&queue, 0, .delivered, 0)
    #expect(queue.takeDue(nowMs: 0).map(\.point.position) == [1])
    var many = WebhookQueue(WebhookState(next: ChangePoint(0)), [:], nowMs: 0)
    many.add(try (0..<20).map { try delivery("\($0)", $0) }, next: ChangePoint(20))
    #expect(many.takeDue(nowMs: 0).count == WebhookQueue.inFlightMax)
    end(&many, 3, .failed("x"), 0)
    #expect(many.takeDue(nowMs: 0).map(\.point.position) == [16])
  }

  @Test func theFirstSuccessAfterAnOutageMakesAllDue() throws {
    var queue = WebhookQueue(WebhookState(next: ChangePoint(0)), [:], nowMs: 0)
    queue.add(try (0..<6).map { try delivery("\($0)", $0) }, next: ChangePoint(6))
    _ = queue.takeDue(nowMs: 0)
    for position in 0..<6 { end(&queue, position, .failed("x"), 0) }
    #expect(queue.takeDue(nowMs: 5_000).count == 6)
    end(&queue, 0, .failed("x"), 5_000)
    for position in 2..<6 { end(&queue, position, .failed("x"), 5_000) }
    end(&queue, 1, .delivered, 5_000)
    #expect(queue.takeDue(nowMs: 5_001).count == 5)
    // Not again at once: a few deliveries that always fail must not make all of them spin.
    for position in [0, 2, 3, 4, 5] { end(&queue, position, .failed("x"), 6_000) }
    queue.add([try delivery("new", 6)], next: ChangePoint(7))
    _ = queue.takeDue(nowMs: 6_000)
    end(&queue, 6, .delivered, 6_000)
    #expect(queue.takeDue(nowMs: 6_001).isEmpty)
  }

  @Test func theStateIsReadAsItWasWritten() throws {
    var queue = try queue("a", "b", "c")
    _ = queue.takeDue(nowMs: 0)
    end(&queue, 0, .failed("HTTP status 500"), 1000)
    end(&queue, 1, .delivered, 2000)
    end(&queue, 2, .gone, 3000)
    let state = queue.state
    #expect(WebhookState(state.bytes) == state)
    #expect(state.cursor == ChangePoint(0) && queue.cursor == state.cursor)
    let read = WebhookQueue(
      state, [ChangePoint(0): try delivery("a", 0), ChangePoint(2): try delivery("c", 2)],
      nowMs: 3000)
    #expect(read.state == state)
  }

  @Test func aClockThatWasSetBackMakesNoPauseLonger() throws {
    var queue = try queue("a")
    _ = queue.takeDue(nowMs: 10 * Self.day)
    end(&queue, 0, .failed("x"), 10 * Self.day)
    var read = WebhookQueue(queue.state, [ChangePoint(0): try delivery("a", 0)], nowMs: 0)
    #expect(read.takeDue(nowMs: 5_000).count == 1)
  }

  @Test(arguments: [
    "", "{}", "[]", #"{"next":"3","waiting":[]}"#, #"{"next":"-1.0","waiting":[]}"#,
    #"{"next":"3.0","waiting":[{"at":"3.0","attempts":0,"due_at":"2026-01-01T00:00:00Z"}]}"#,
    #"{"next":"3.0","waiting":[{"at":"1.0","attempts":-1,"due_at":"2026-01-01T00:00:00Z"}]}"#,
    #"{"next":"3.0","waiting":[],"disabled":{"at":"2026-01-01T00:00:00Z","cause":"?"}}"#,
  ])
  func whatNoServerWroteIsNoState(text: String) {
    #expect(WebhookState(Array(text.utf8)) == nil)
  }
}
