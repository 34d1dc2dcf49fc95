// The queue of one webhook, step by step: pauses, order, the window, the end of an outage, the saved state.
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
          point: ChangePoint(position), identity: ["\(position)"],
          appFamilyID: WebhookFixture.family,
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
      expectEqual(queue.dequeueDue(nowMs: nowMs).count, 1)
      end(&queue, 0, .failed("x"), nowMs)
      #expect(queue.dequeueDue(nowMs: nowMs + pause - 1).isEmpty)
      nowMs += pause
    }
  }

  @Test func aWebhookIsDisabledAfterDaysWithoutASuccessAndNotBefore() throws {
    var queue = try queue("a", "b")
    _ = queue.dequeueDue(nowMs: 0)
    end(&queue, 0, .failed("x"), 1000)
    end(&queue, 1, .delivered, 2000)
    _ = queue.dequeueDue(nowMs: Self.day)
    end(&queue, 0, .failed("x"), Self.day)
    _ = queue.dequeueDue(nowMs: 6 * Self.day - 1)
    end(&queue, 0, .failed("x"), 6 * Self.day - 1)
    #expect(queue.disabled == nil)
    _ = queue.dequeueDue(nowMs: 7 * Self.day)
    end(&queue, 0, .failed("x"), 7 * Self.day)
    expectEqual(queue.disabled?.cause, .failures)
    #expect(queue.dequeueDue(nowMs: 100 * Self.day).isEmpty && queue.room == 0)
    queue.enable()
    expectEqual(queue.dequeueDue(nowMs: 7 * Self.day).map(\.point), [ChangePoint(0)])
  }

  @Test func onlyTheFirstOfALineIsUnderWayAndNoMoreThanSixteenInAll() throws {
    var queue = try queue("a", "a", "b")
    expectEqual(queue.dequeueDue(nowMs: 0).map(\.point.position), [0, 2])
    #expect(queue.dequeueDue(nowMs: 0).isEmpty)
    end(&queue, 0, .delivered, 0)
    expectEqual(queue.dequeueDue(nowMs: 0).map(\.point.position), [1])
    var many = WebhookQueue(WebhookState(next: ChangePoint(0)), [:], nowMs: 0)
    many.add(try (0..<20).map { try delivery("\($0)", $0) }, next: ChangePoint(20))
    expectEqual(many.dequeueDue(nowMs: 0).count, WebhookQueue.inFlightMax)
    end(&many, 3, .failed("x"), 0)
    expectEqual(many.dequeueDue(nowMs: 0).map(\.point.position), [16])
  }

  @Test func theFirstSuccessAfterAnOutageMakesAllDue() throws {
    var queue = WebhookQueue(WebhookState(next: ChangePoint(0)), [:], nowMs: 0)
    queue.add(try (0..<6).map { try delivery("\($0)", $0) }, next: ChangePoint(6))
    _ = queue.dequeueDue(nowMs: 0)
    for position in 0..<6 { end(&queue, position, .failed("x"), 0) }
    expectEqual(queue.dequeueDue(nowMs: 5_000).count, 6)
    end(&queue, 0, .failed("x"), 5_000)
    for position in 2..<6 { end(&queue, position, .failed("x"), 5_000) }
    end(&queue, 1, .delivered, 5_000)
    expectEqual(queue.dequeueDue(nowMs: 5_001).count, 5)
    // Not retried at once: a few deliveries that always fail must not make all of them spin.
    for position in [0, 2, 3, 4, 5] { end(&queue, position, .failed("x"), 6_000) }
    queue.add([try delivery("new", 6)], next: ChangePoint(7))
    _ = queue.dequeueDue(nowMs: 6_000)
    end(&queue, 6, .delivered, 6_000)
    #expect(queue.dequeueDue(nowMs: 6_001).isEmpty)
  }

  /// A queue of a thousand deliveries that have failed so often that they are due in ten hours.
  private func fullQueue(failedUntil nowMs: Int64) throws -> WebhookQueue {
    let deliveries = try (0..<WebhookQueue.windowMax).map { try delivery("\($0)", $0) }
    var state = WebhookState(next: ChangePoint(deliveries.count))
    state.waiting = deliveries.map {
      .init(point: $0.point, attempts: 6, dueMs: nowMs + 36_000_000 + Int64($0.point.position))
    }
    state.failingSinceMs = 0
    return WebhookQueue(
      state, Dictionary(uniqueKeysWithValues: deliveries.map { ($0.point, $0) }), nowMs: nowMs)
  }

  @Test func aFullQueueTriesOneDeliveryAMinuteAndThenAllAtOnce() throws {
    let minute: Int64 = 60_000
    var queue = try fullQueue(failedUntil: 0)
    expectEqual(queue.dequeueDue(nowMs: 1).map(\.point.position), [0])
    #expect(queue.dequeueDue(nowMs: 5 * minute).isEmpty, "one at a time")
    end(&queue, 0, .failed("x"), 5 * minute)
    expectEqual(queue.dequeueDue(nowMs: 5 * minute + 1).map(\.point.position), [1])
    end(&queue, 1, .failed("x"), 5 * minute + 2)
    #expect(queue.dequeueDue(nowMs: 6 * minute).isEmpty)
    expectEqual(queue.dequeueDue(nowMs: 6 * minute + 1).map(\.point.position), [2])
    end(&queue, 2, .delivered, 6 * minute + 2)
    expectEqual(queue.dequeueDue(nowMs: 6 * minute + 2).count, WebhookQueue.inFlightMax)
    // A clock that was set back delays no attempt.
    var other = try fullQueue(failedUntil: 0)
    expectEqual(other.dequeueDue(nowMs: Self.day).count, WebhookQueue.inFlightMax)
    other = try fullQueue(failedUntil: Self.day)
    expectEqual(other.dequeueDue(nowMs: Self.day).count, 1)
    end(&other, 0, .failed("x"), Self.day)
    expectEqual(other.dequeueDue(nowMs: Self.day - minute).count, 1)
  }

  @Test func aQueueWithRoomAndADisabledOneTryNothingBeforeItIsDue() throws {
    var queue = try fullQueue(failedUntil: 0)
    _ = queue.dequeueDue(nowMs: 0)
    end(&queue, 0, .gone, 0)
    #expect(queue.dequeueDue(nowMs: 3_600_000).isEmpty)
    var few = try self.queue("a")
    _ = few.dequeueDue(nowMs: 0)
    end(&few, 0, .failed("x"), 0)
    #expect(few.dequeueDue(nowMs: 4_999).isEmpty)
  }

  @Test(arguments: [
    (3, 3, [0, 1]), (4, 4, [0, 1]), (2, 2, [0, 1]), (1, 1, [0]), (0, 0, []),
  ])
  func aStateBeyondTheLogIsCutToIt(size: Position, next: Position, waiting: [Position]) {
    var state = WebhookState(next: ChangePoint(4, 1))
    state.waiting = [0, 1].map { .init(point: ChangePoint($0), attempts: 1, dueMs: 0) }
    let bounded = state.bounded(by: size)
    expectEqual(bounded.next, ChangePoint(next))
    expectEqual(bounded.waiting.map(\.point.position), waiting)
    expectEqual(state.bounded(by: 5), state)
    expectEqual(WebhookFiles.bounded(state.bytes, by: size), bounded.bytes)
  }

  @Test(arguments: [
    (#"{"from":9}"#, #"{"from":4}"#), (#"{"from":4}"#, #"{"from":4}"#),
    (#"{"enable":true}"#, #"{"enable":true}"#), ("?", "?"),
  ])
  func aRequestBeyondTheLogIsSetToItsEnd(text: String, bounded: String) {
    expectEqual(WebhookFiles.bounded(Array(text.utf8), by: 4), Array(bounded.utf8))
  }

  @Test func theStateIsReadAsItWasWritten() throws {
    var queue = try queue("a", "b", "c")
    _ = queue.dequeueDue(nowMs: 0)
    end(&queue, 0, .failed("HTTP status 500"), 1000)
    end(&queue, 1, .delivered, 2000)
    end(&queue, 2, .gone, 3000)
    let state = queue.state
    expectEqual(WebhookState(state.bytes), state)
    #expect(state.cursor == ChangePoint(0) && queue.cursor == state.cursor)
    let read = WebhookQueue(
      state, [ChangePoint(0): try delivery("a", 0), ChangePoint(2): try delivery("c", 2)],
      nowMs: 3000)
    expectEqual(read.state, state)
  }

  @Test func aClockThatWasSetBackMakesNoPauseLonger() throws {
    var queue = try queue("a")
    _ = queue.dequeueDue(nowMs: 10 * Self.day)
    end(&queue, 0, .failed("x"), 10 * Self.day)
    var read = WebhookQueue(queue.state, [ChangePoint(0): try delivery("a", 0)], nowMs: 0)
    expectEqual(read.dequeueDue(nowMs: 5_000).count, 1)
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
