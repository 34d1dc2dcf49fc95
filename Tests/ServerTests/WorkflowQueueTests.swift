// Uploads that wait for the App Store: shared calls, reused replies, the queue, limits, ends.
import AppStore
import Base
import HTTPClient
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite("workflow queue", .bounded) struct WorkflowQueueTests {
  /// No second attempt during a test.
  static func lastingPauses(_ configuration: inout Configuration) {
    configuration.verification.retryFirstMs = 3_600_000
    configuration.verification.retryCeilingMs = 3_600_000
  }

  // MARK: Shared replies

  @Test("uploads of one receipt share a call, and each gets a verification of its own")
  func sharedCall() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(appStore) { $0.verification.reuseReplyMs = 60_000 }
    let first = try fixture.send(WorkflowFixture.file("1"), user: "u1")
    try waitUntil { appStore.heldCount == 1 }
    let second = try fixture.send(WorkflowFixture.file("1"), user: "u2")
    try waitUntil { try fixture.events().count == 5 }
    appStore.release(.reply(row("1")))
    try expectEqual(first.wait().status, 200)
    try expectEqual(second.wait().status, 200)
    expectEqual(appStore.calls, 1)
    try expectEqual(fixture.verdicts(), ["1 valid 0", "3 valid 0 ->5"])
  }

  @Test("a recent final reply is reused for the same receipt")
  func reuse() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1")))) {
      $0.verification.reuseReplyMs = 60_000
    }
    for _ in 0..<3 { try expectEqual(fixture.upload("1").status, 200) }
    expectEqual(fixture.appStore.calls, 1)
    try expectEqual(fixture.verdicts(), ["1 valid 0", "4 valid 0 ->3", "7 valid 0 ->3"])
    // Also after a restart, when only the projections know.
    fixture.stop()
    try fixture.start()
    try expectEqual(fixture.upload("1").status, 200)
    expectEqual(fixture.appStore.calls, 1)
    try expectEqual(fixture.verdicts().last, "10 valid 0 ->3")
  }

  @Test("a reply given while the clock was ahead is not reused")
  func clockAhead() throws {
    let clock = MovableClock()
    clock.set(aheadMs: 10 * 86_400_000)
    let replies = ScriptedAppStore.saying(.reply(row("1"), row("2")))
    let fixture = try WorkflowFixture(replies, clock: clock.timeOfDay) {
      $0.verification.reuseReplyMs = 60_000
    }
    try expectEqual(fixture.upload("1").status, 200)
    clock.set(aheadMs: 0)
    try expectEqual(fixture.upload("1").status, 200)
    expectEqual(fixture.appStore.calls, 2)
    // A reply given since then is reused.
    try expectEqual(fixture.upload("1").status, 200)
    expectEqual(fixture.appStore.calls, 2)
    clock.set(aheadMs: 10 * 86_400_000)
    try expectEqual(fixture.upload("2").status, 200)
    clock.set(aheadMs: 0)
    fixture.stop()
    try fixture.start()
    try expectEqual(fixture.upload("2").status, 200)
    expectEqual(fixture.appStore.calls, 4)
  }

  @Test("a refusal as not authentic is reused as well")
  func reuseOfRefusal() throws {
    let fixture = try WorkflowFixture(.saying(.status(21003))) {
      $0.verification.reuseReplyMs = 60_000
    }
    for _ in 0..<2 { try expectEqual(fixture.upload("1").status, 402) }
    expectEqual(fixture.appStore.calls, 2)
  }

  @Test("where reuse is off, each upload asks")
  func noReuse() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    for _ in 0..<2 { try expectEqual(fixture.upload("1").status, 200) }
    expectEqual(fixture.appStore.calls, 2)
    try expectEqual(fixture.verdicts(), ["1 valid 0", "4 valid 0"])
  }

  // MARK: Waiting

  @Test("without a reply the upload waits, is retried, and is resolved once")
  func retry() throws {
    let appStore = ScriptedAppStore { _, call in call < 4 ? .none(.timeout) : .reply(row("1")) }
    let fixture = try WorkflowFixture(appStore)
    let answer = try fixture.upload("1")
    expectEqual(answer.status, 206)
    try waitUntil { try fixture.look(answer).status == 200 }
    try expectEqual(fixture.verdicts(), ["1 unreachable timeout", "1 valid 0"])
    try expectEqual(fixture.events().last?.data["attempt"]?.integerValue, 5)
    expectEqual(appStore.calls, 5)
    try expectEqual(fixture.waitingAfterRebuild(), 0)
  }

  @Test("one reply resolves all waiting uploads of a receipt")
  func retryOfSeveral() throws {
    let appStore = ScriptedAppStore { _, _ in .none(.connectionFailed) }
    let fixture = try WorkflowFixture(appStore, set: Self.lastingPauses)
    var answers: [ClientResponse] = []
    for user in ["u1", "u2", "u3"] { answers.append(try fixture.upload("1", user: user)) }
    expectEqual(answers.map(\.status), [206, 206, 206])
    appStore.follow { _, _ in .reply(row("1")) }
    try fixture.workflow.retryNow()
    try waitUntil { try fixture.look(answers[0]).status == 200 }
    try expectEqual(
      fixture.verdicts(),
      [
        "1 unreachable connection_failed", "4 unreachable connection_failed",
        "7 unreachable connection_failed", "1 valid 0", "4 valid 0 ->10", "7 valid 0 ->10",
      ])
    expectEqual(appStore.calls, 4)
  }

  @Test("more waiting uploads of a receipt than fit in a frame get one final verdict each")
  func moreThanAFrameWaits() throws {
    let appStore = ScriptedAppStore { _, _ in .none(.connectTimeout) }
    let fixture = try WorkflowFixture(appStore, uploadsMax: 3000, set: Self.lastingPauses)
    let file = WorkflowFixture.file("1")
    let waiting = try (0..<2100).map { _ in try fixture.send(file) }
    for answer in waiting { try expectEqual(answer.wait().status, 206) }
    appStore.follow { _, _ in .reply(row("1")) }
    try fixture.workflow.retryNow()
    // Uploads that come while the reply is still being handed out ask for themselves.
    let late = try (0..<200).map { _ in try fixture.send(file) }
    for answer in late { #expect([200, 206].contains(try answer.wait().status)) }
    try fixture.workflow.retryNow()
    try waitUntil { try LiveProjections(fixture.directory).waitingSummary().receipts == 0 }
    fixture.stop()
    var finals: [Int64: Int] = [:]
    for event in try fixture.events() where event.data["authority"]?.stringValue == "app_store" {
      guard event.data["outcome"]?.stringValue == "valid" else { continue }
      finals[event.data["upload"]?.integerValue ?? -1, default: 0] += 1
    }
    #expect(finals.count == 2300 && finals.values.allSatisfy { $0 == 1 })
    try expectEqual(fixture.waitingAfterRebuild(), 0)
  }

  @Test("a restart loses nothing of what waits")
  func restart() throws {
    let appStore = ScriptedAppStore { _, _ in .none(.timeout) }
    let fixture = try WorkflowFixture(appStore, set: Self.lastingPauses)
    var answers: [ClientResponse] = []
    for number in 0..<20 { answers.append(try fixture.upload("\(number)")) }
    fixture.stop()
    try expectEqual(fixture.waitingAfterRebuild(), 20)
    appStore.follow { request, _ in .confirming(request) }
    fixture.configuration.verification.retryFirstMs = 1
    try fixture.start()
    for answer in answers { try waitUntil { try fixture.look(answer).status == 200 } }
    fixture.stop()
    let verdicts = try fixture.verdicts()
    expectEqual(verdicts.count(where: { $0.hasSuffix("valid 0") }), 20)
    expectEqual(Set(verdicts).count, 40)
  }

  @Test("a crash between upload and result leaves an upload that waits")
  func uploadWithoutResult() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(appStore)
    let answer = try fixture.send(WorkflowFixture.file("1"))
    try waitUntil { appStore.heldCount == 1 }
    // The log as it is now, without what the end of the workflow would add.
    let events = try fixture.events()
    expectEqual(events.map(\.type), ["app.registered", "receipt.uploaded", "receipt.verified"])
    try expectEqual(LiveProjections(fixture.directory).waitingSummary().receipts, 1)
    #expect(answer.now == nil)
  }

  @Test("a single run tries each receipt once, and reports how many were resolved")
  func singleRun() throws {
    let appStore = ScriptedAppStore { _, _ in .none(.timeout) }
    let fixture = try WorkflowFixture(appStore, set: Self.lastingPauses)
    for number in 0..<5 { try fixture.upload("\(number)") }
    fixture.stop()
    let texts = TextNumbers()
    appStore.follow { request, _ in
      // Every second receipt stays without a reply.
      texts.number(of: request.receiptText).isMultiple(of: 2)
        ? .confirming(request) : .status(21005)
    }
    try fixture.start(isSingleRun: true)
    try waitUntil { try fixture.workflow.waitForEnd(limitMs: 10) }
    let figures = try fixture.workflow.runFigures
    expectEqual(figures.attempted, 5)
    expectEqual(figures.settled, 3)
    expectEqual(appStore.calls, 10)
  }

  @Test("a single run ends where the App Store is down")
  func singleRunWithoutAppStore() throws {
    let appStore = ScriptedAppStore { _, _ in .none(.connectionFailed) }
    let fixture = try WorkflowFixture(appStore) {
      Self.lastingPauses(&$0)
      $0.appStore.clientOptions.callsMax = 1
    }
    for number in 0..<30 { try fixture.upload("\(number)") }
    fixture.stop()
    let before = appStore.calls
    try fixture.start(isSingleRun: true)
    try waitUntil { try fixture.workflow.waitForEnd(limitMs: 10) }
    #expect(appStore.calls - before <= CircuitBreaker.failuresMax + 1)
    try expectEqual(fixture.workflow.runFigures.settled, 0)
  }

  // MARK: Limits

  @Test("after failures in a row uploads are answered at once, without a call")
  func circuitBreaker() throws {
    let appStore = ScriptedAppStore { _, _ in .none(.connectTimeout) }
    let fixture = try WorkflowFixture(appStore, set: Self.lastingPauses)
    for number in 0..<20 { try expectEqual(fixture.upload("\(number)").status, 206) }
    // A slow machine may let a probe or two through.
    #expect(appStore.calls < 14)
    let verdicts = try fixture.verdicts()
    expectEqual(verdicts.count(where: { $0.hasSuffix("connect_timeout") }), appStore.calls)
    expectEqual(verdicts.count(where: { $0.hasSuffix("circuit_open") }), 20 - appStore.calls)
  }

  @Test("replies that are not a success for the receipt keep the breaker closed")
  func answersKeepItClosed() throws {
    let fixture = try WorkflowFixture(.saying(.status(21005)), set: Self.lastingPauses)
    for number in 0..<20 { try fixture.upload("\(number)") }
    expectEqual(fixture.appStore.calls, 20)
  }

  @Test("calls at once are limited; uploads beyond the limit are answered at once")
  func callLimit() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(appStore) {
      Self.lastingPauses(&$0)
      $0.appStore.clientOptions.callsMax = 4
    }
    let answers = try (0..<20).map { try fixture.send(WorkflowFixture.file("\($0)")) }
    // One more than the limit waits for its turn.
    try waitUntil { answers.count(where: { $0.now != nil }) == 15 }
    expectEqual(appStore.heldCount, 4)
    #expect(answers.compactMap(\.now).allSatisfy { $0.status == 206 })
    #expect(try fixture.verdicts().allSatisfy { $0.hasSuffix("unreachable calls_exhausted") })
    while answers.contains(where: { $0.now == nil }) {
      appStore.releaseConfirming()
      try waitUntil { appStore.heldCount > 0 || answers.allSatisfy { $0.now != nil } }
    }
    expectEqual(answers.compactMap(\.now).count(where: { $0.status == 200 }), 5)
    expectEqual(appStore.runningMax, 4)
  }

  @Test("beyond the limit of uploads in progress, uploads are turned away and nothing is recorded")
  func uploadLimit() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(appStore, uploadsMax: 3)
    let answers = try (0..<3).map { try fixture.send(WorkflowFixture.file("\($0)")) }
    try waitUntil { appStore.heldCount == 3 }
    try expectEqual(fixture.upload("4").status, 503)
    appStore.follow { request, _ in .confirming(request) }
    appStore.releaseConfirming()
    for answer in answers { try expectEqual(answer.wait().status, 200) }
    try expectEqual(fixture.upload("4").status, 200)
    try expectEqual(fixture.events().filter { $0.type == "receipt.uploaded" }.count, 4)
  }

  // MARK: Operators

  @Test(
    "a wrong shared secret is reported once, without the secret, and retried when it is corrected")
  func alarm() throws {
    let appStore = ScriptedAppStore { request, _ in
      request.sharedSecret == Array("right".utf8) ? .confirming(request) : .status(21004)
    }
    let fixture = try WorkflowFixture(appStore) {
      Self.lastingPauses(&$0)
      $0.sharedSecrets[WorkflowFixture.familyText] = Array("wrong".utf8)
    }
    let answers = try (0..<3).map { try fixture.upload("\($0)") }
    expectEqual(answers.map(\.status), [206, 206, 206])
    #expect(appStore.secrets.allSatisfy { $0 == Array("wrong".utf8) })
    let lines = fixture.notes.lines
    expectEqual(lines.count, 1)
    #expect(lines.first?.contains(WorkflowFixture.familyText) == true)
    #expect(lines.first?.contains("21004") == true)
    #expect(lines.first?.contains("wrong shared") == false)
    fixture.configuration.sharedSecrets[WorkflowFixture.familyText] = Array("right".utf8)
    try fixture.workflow.apply(fixture.configuration)
    for answer in answers { try waitUntil { try fixture.look(answer).status == 200 } }
  }

  @Test("when nothing can be appended any more, uploads are turned away and one message is logged")
  func closedLog() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    #expect(try fixture.workflow.canAppend)
    try fixture.writer.close()
    for _ in 0..<3 { try expectEqual(fixture.upload("1").status, 503) }
    #expect(try fixture.workflow.canAppend == false)
    expectEqual(fixture.notes.fatalCount, 1)
  }

  @Test("an app that another process registers is known once its appends are reported")
  func foreignAppends() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    let app = AppRegistered(
      appFamilyID: WorkflowFixture.familyText, name: "App", bundleIDs: ["other"], products: [])
    _ = try fixture.writer.append([
      EventDraft(type: EventType.appRegistered.rawValue, version: 1, data: app.data)
    ])
    try fixture.workflow.foldForeignAppends()
    try expectEqual(fixture.upload("1").status, 402)
  }

  // MARK: Ends

  @Test("at the end, calls in progress are cancelled, answered 206, and wait for the next start")
  func stopInTheMiddle() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(appStore) { $0.appStore.clientOptions.callsMax = 2 }
    let answers = try (0..<6).map { try fixture.send(WorkflowFixture.file("\($0)")) }
    try waitUntil { appStore.heldCount == 2 && answers.compactMap(\.now).count >= 3 }
    fixture.stop()
    expectEqual(answers.compactMap(\.now).count, 6)
    #expect(answers.compactMap(\.now).allSatisfy { $0.status == 206 })
    for answer in answers { expectEqual(answer.count, 1) }
    try expectEqual(fixture.waitingAfterRebuild(), 6)
    try expectEqual(fixture.verdicts().count, 6)
  }

  @Test("within the grace, calls in progress still bring their replies")
  func stopWithGrace() throws {
    let appStore = ScriptedAppStore { _, _ in nil }
    let fixture = try WorkflowFixture(appStore)
    let answer = try fixture.send(WorkflowFixture.file("1"))
    try waitUntil { appStore.heldCount == 1 }
    try fixture.workflow.beginStopping()
    let late = try fixture.upload("2")
    expectEqual(late.status, 503)
    appStore.release(.reply(row("1")))
    fixture.stop(graceMs: 60_000)
    expectEqual(answer.now?.status, 200)
  }

  @Test("many uploads from many threads: each is answered once and is in the log once")
  func concurrency() throws {
    let appStore = ScriptedAppStore { request, call in
      switch call % 5 {
      case 0: .none(.timeout)
      case 1: .status(21005)
      default: .confirming(request)
      }
    }
    let fixture = try WorkflowFixture(appStore) { $0.verification.reuseReplyMs = 60_000 }
    var answers: [AwaitedResponse] = []
    for number in 0..<300 {
      answers.append(try fixture.send(WorkflowFixture.file("\(number % 40)"), user: "\(number)"))
    }
    for answer in answers { #expect([200, 206].contains(try answer.wait().status)) }
    try waitUntil { try LiveProjections(fixture.directory).waitingSummary().receipts == 0 }
    fixture.stop()
    for answer in answers { expectEqual(answer.count, 1) }
    let events = try fixture.events()
    let uploads = events.filter { $0.type == "receipt.uploaded" }
    expectEqual(uploads.count, 300)
    var finals: [Int64: Int] = [:]
    var unreachables: [Int64: Int] = [:]
    for event in events where event.data["authority"]?.stringValue == "app_store" {
      let upload = event.data["upload"]?.integerValue ?? -1
      if event.data["outcome"]?.stringValue == "unreachable" {
        unreachables[upload, default: 0] += 1
      } else {
        finals[upload, default: 0] += 1
      }
    }
    #expect(finals.count == 300 && finals.values.allSatisfy { $0 == 1 })
    #expect(unreachables.values.allSatisfy { $0 == 1 })
    let before = try uploads.map {
      try #require(try LiveProjections(fixture.directory).answer(upload: $0.position))
    }
    try expectEqual(fixture.waitingAfterRebuild(), 0)
    let rebuilt = try LiveProjections(fixture.directory)
    for (upload, answer) in zip(uploads, before) {
      try expectEqual(rebuilt.answer(upload: upload.position), answer)
    }
  }
}
