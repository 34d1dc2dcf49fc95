// Notifications that are duplicates, too fast, or sent while nothing can be appended.
import AppStore
import AppStoreAuthority
import Base
import HTTPClient
import Intake
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite("Notifications again and at once", .bounded) struct NotificationDuplicateTests {
  private let sample = SignedSample()

  @Test("a notification sent again gets 200 without a second event") func again() throws {
    let fixture = try WorkflowFixture.signed()
    let text = try sample.notification()
    try expectEqual(fixture.notify(text), .recorded)
    try expectEqual(fixture.notify(text), .known)
    try waitUntil { try fixture.notificationIsFolded(SignedSample.uuid) }
    try expectEqual(fixture.notify(text), .known)
    // Signed again, it has the same UUID and other bytes.
    try expectEqual(fixture.notify(try sample.notification()), .known)
    fixture.stop()
    try fixture.start()
    try expectEqual(fixture.notify(text), .known)
    try expectEqual(fixture.notificationUUIDs(), [SignedSample.uuid])
    expectEqual(fixture.notificationCounts, ["recorded": 1, "known": 4])
  }

  @Test("a hundred at once with ten UUIDs are ten events, and each gets 200") func atOnce()
    throws
  {
    let fixture = try WorkflowFixture.signed()
    let texts = try (0..<10).map { try sample.notification(uuid: SignedSample.uuid($0)) }
    let answers = try (0..<100).map { try fixture.post(texts[$0 % 10]) }
    let statuses = try answers.map { try $0.wait().status }
    #expect(statuses.allSatisfy { $0 == 200 })
    #expect(answers.allSatisfy { $0.count == 1 })
    try expectEqual(fixture.notificationUUIDs().sorted(), (0..<10).map { SignedSample.uuid($0) })
    expectEqual(fixture.notificationCounts, ["recorded": 10, "known": 90])
  }

  @Test("a notification that an import appended is known") func imported() throws {
    let fixture = try WorkflowFixture.signed()
    let text = try sample.notification()
    let checked = CheckedNotification(
      try SignedObject(Array(text.utf8)), fixture.configuration.trust.signedObjectVerifier(),
      nowMs: ms("2026-01-06"))
    _ = try fixture.writer.append([
      checked.draft(appFamily: fixture.family, occurredAtMs: 0, origin: .http)
    ])
    try fixture.workflow.foldForeignAppends()
    try expectEqual(fixture.notify(text), .known)
  }

  @Test(
    "a notification that a synchronization is appending is appended once, and answered afterwards")
  func synchronized() throws {
    let fixture = try WorkflowFixture.signed()
    let text = try sample.notification()
    #expect(try fixture.workflow.claim(notification: SignedSample.uuid))
    #expect(try !fixture.workflow.claim(notification: SignedSample.uuid))
    let answer = try fixture.post(text)
    // Far beyond what is folded, so that only the claim can know it.
    try fixture.workflow.release(notification: SignedSample.uuid, .durable(1_000))
    try expectEqual(answer.wait().status, 200)
    try expectEqual(fixture.notificationUUIDs(), [])
    expectEqual(fixture.notificationCounts, ["known": 1])
  }

  @Test("a notification whose synchronization fails is recorded once")
  func synchronizationFailed() throws {
    let fixture = try WorkflowFixture.signed()
    let text = try sample.notification()
    #expect(try fixture.workflow.claim(notification: SignedSample.uuid))
    try fixture.workflow.release(notification: SignedSample.uuid, .failed)
    try expectEqual(fixture.notify(text), .recorded)
    try expectEqual(fixture.notificationUUIDs(), [SignedSample.uuid])
  }

  /// Hands over a command's events while a workflow runs.
  private func handOver(
    _ fixture: WorkflowFixture,
    _ body: (RemoteAppender, (String) throws -> EventDraft) throws -> Void
  ) throws {
    let workflow = try fixture.workflow
    let server = try RemoteAppendServer(
      writer: try fixture.writer,
      claims: HandedOverClaims(workflow, try #require(fixture.projections)),
      onAppended: { workflow.foldForeignAppends() })
    defer { server.stop() }
    let appender = try #require(try RemoteAppender.connect(fixture.directory))
    try body(appender) { text in
      try CheckedNotification(
        try SignedObject(Array(text.utf8)), fixture.configuration.trust.signedObjectVerifier(),
        nowMs: ms("2026-01-06")
      ).draft(appFamily: fixture.family, occurredAtMs: 0, origin: .fetch)
    }
    try appender.close()
  }

  @Test("a command's copy of a notification that was received before is left out")
  func handedOverAfter() throws {
    let fixture = try WorkflowFixture.signed()
    let text = try sample.notification()
    try expectEqual(fixture.notify(text), .recorded)
    try handOver(fixture) { appender, draft in
      let alone = try appender.positions(of: try appender.submit([try draft(text)]))
      let events = try fixture.events()
      #expect(alone.count == 1 && events[alone.lowerBound].type == "notification.received")
      let other = try draft(try sample.notification(uuid: SignedSample.uuid(1)))
      let both = try appender.positions(
        of: try appender.submit([try draft(text), other, other]))
      expectEqual(both.count, 1)
    }
    try expectEqual(fixture.notificationUUIDs(), [SignedSample.uuid, SignedSample.uuid(1)])
  }

  @Test("a notification that a command has handed over is known before it is folded")
  func handedOverBefore() throws {
    let fixture = try WorkflowFixture.signed()
    let text = try sample.notification()
    try handOver(fixture) { appender, draft in
      fixture.foldFault.set(true)
      // Submitting alone waits for nothing: the posted one could be first, and be the one that is recorded.
      _ = try appender.positions(of: try appender.submit([try draft(text)]))
      try expectEqual(fixture.notify(text), .known)
      #expect(try !fixture.workflow.claim(notification: SignedSample.uuid))
      fixture.foldFault.set(false)
    }
    try expectEqual(fixture.notificationUUIDs(), [SignedSample.uuid])
  }

  @Test(
    "a notification handed over while a synchronization appends it waits until that is decided",
    arguments: [true, false])
  func handedOverMeanwhile(_ fails: Bool) throws {
    let fixture = try WorkflowFixture.signed()
    let text = try sample.notification()
    #expect(try fixture.workflow.claim(notification: SignedSample.uuid))
    try handOver(fixture) { appender, draft in
      let mine = try draft(text)
      let ticket = try appender.submit([mine])
      if fails {
        try fixture.workflow.release(notification: SignedSample.uuid, .failed)
      } else {
        let position = try fixture.writer.append([mine]).firstPosition
        try fixture.workflow.release(notification: SignedSample.uuid, .durable(position))
      }
      try expectEqual(appender.positions(of: ticket).count, 1)
    }
    try expectEqual(fixture.notificationUUIDs(), [SignedSample.uuid])
  }

  @Test("while folds fail, notifications are accepted, recognized again, and folded later")
  func unfolded()
    throws
  {
    let fixture = try WorkflowFixture.signed()
    fixture.foldFault.set(true)
    let text = try sample.notification()
    try expectEqual(fixture.notify(text), .recorded)
    try expectEqual(fixture.notify(text), .known)
    try expectEqual(fixture.notificationUUIDs().count, 1)
    fixture.foldFault.set(false)
    try fixture.workflow.foldForeignAppends()
    #expect(try fixture.notificationIsFolded(SignedSample.uuid))
    try expectEqual(fixture.notify(text), .known)
  }

  @Test("a notification that cannot be looked up is not appended, and is requested again")
  func noLookup() throws {
    let fixture = try WorkflowFixture.signed()
    fixture.foldFault.setLookups(failing: true)
    try expectEqual(fixture.notify(try sample.notification()), .retry(nil, afterSeconds: 5))
    fixture.foldFault.setLookups(failing: false)
    try expectEqual(fixture.events().count, 1)
    try expectEqual(fixture.notify(try sample.notification()), .recorded)
    expectEqual(fixture.notificationCounts, ["failed": 1, "recorded": 1])
  }

  @Test("a notification that cannot be appended is requested again from every sender")
  func closedWriter() throws {
    let fixture = try WorkflowFixture.signed()
    try fixture.writer.close()
    let text = try sample.notification()
    let answers = try (0..<4).map { _ in try fixture.post(text) }
    for answer in answers { try expectEqual(answer.wait().status, 503) }
    #expect(fixture.notificationCounts["recorded"] == nil)
  }

  @Test("a stopping server accepts none, and answers those in progress") func stopping() throws {
    let fixture = try WorkflowFixture.signed()
    let texts = try (0..<20).map { try sample.notification(uuid: SignedSample.uuid($0)) }
    let answers = try texts.map { try fixture.post($0) }
    let workflow = try fixture.workflow
    workflow.beginStopping()
    try expectEqual(fixture.notify(try sample.notification()), .retry(nil, afterSeconds: 1))
    fixture.stop()
    let statuses = answers.compactMap { $0.now?.status }
    expectEqual(statuses, Array(repeating: 200, count: 20))
    try expectEqual(fixture.notificationUUIDs().count, 20)
  }

  // MARK: Limits

  @Test("a limit of one suffices for one after the other, and changes in a running server")
  func limit() throws {
    let fixture = try WorkflowFixture.signed { $0.notifications.inProgressMax = 1 }
    try expectEqual(fixture.notify(try sample.notification()), .recorded)
    // Uploads that are held back do not count.
    fixture.appStore.follow { _, _ in nil }
    let held = try fixture.send(WorkflowFixture.file("9"))
    try waitUntil { fixture.appStore.heldCount == 1 }
    try expectEqual(fixture.notify(try sample.notification(uuid: SignedSample.uuid(1))), .recorded)
    var configuration = fixture.configuration
    configuration.notifications.inProgressMax = 64
    try fixture.workflow.apply(configuration)
    let texts = try (2..<40).map { try sample.notification(uuid: SignedSample.uuid($0)) }
    let answers = try texts.map { try fixture.post($0) }
    for answer in answers { try expectEqual(answer.wait().status, 200) }
    fixture.appStore.releaseConfirming()
    try expectEqual(held.wait().status, 200)
  }

  @Test("full uploads leave notifications alone") func fullUploads() throws {
    let root = try SignedSample.authority.get().root.fingerprint
    let fixture = try WorkflowFixture(ScriptedAppStore { _, _ in nil }, uploadsMax: 1) {
      $0.trust.additionalRoots = [root]
    }
    let held = try fixture.send(WorkflowFixture.file("9"))
    try waitUntil { fixture.appStore.heldCount == 1 }
    try expectEqual(fixture.upload("8").status, 503)
    try expectEqual(fixture.notify(try sample.notification()), .recorded)
    fixture.appStore.releaseConfirming()
    try expectEqual(held.wait().status, 200)
  }

  @Test("a bundle's Sandbox has a rate limit, Production has none") func sandbox() throws {
    let clock = MovableClock()
    let root = try SignedSample.authority.get().root.fingerprint
    let stopped = WorkflowClock(
      nowMs: { ms("2026-01-06") }, monotonicMs: { clock.monotonicOffsetMs })
    let fixture = try WorkflowFixture(.saying(.status(21000)), clock: stopped) {
      $0.trust.additionalRoots = [root]
      $0.notifications.sandboxPerSecond = 2
    }
    func sandbox(_ number: Int) throws -> NotificationResponse? {
      try fixture.notify(
        try sample.notification(uuid: SignedSample.uuid(number), ["environment": "\"Sandbox\""]))
    }
    for number in 0..<8 { try expectEqual(sandbox(number), .recorded) }
    try expectEqual(sandbox(8), .retry(nil, afterSeconds: 1))
    // A known notification costs nothing.
    try expectEqual(sandbox(0), .known)
    for number in 100..<120 {
      try expectEqual(
        fixture.notify(try sample.notification(uuid: SignedSample.uuid(number))), .recorded)
    }
    clock.set(aheadMs: 500)
    try expectEqual(sandbox(8), .recorded)
    try expectEqual(sandbox(9), .retry(nil, afterSeconds: 1))
    var configuration = fixture.configuration
    configuration.notifications.sandboxPerSecond = 1000
    try fixture.workflow.apply(configuration)
    clock.set(aheadMs: 510)
    try expectEqual(sandbox(9), .recorded)
    expectEqual(fixture.notificationCounts, ["recorded": 30, "known": 1, "sandbox_limit": 2])
    expectEqual(fixture.notes.lines.count, 1)
  }
}

extension WorkflowFixture {
  /// Whether the projections show a notification.
  func notificationIsFolded(_ uuid: String) throws -> Bool {
    try #require(projections).containsNotification(uuid: uuid)
  }
}
