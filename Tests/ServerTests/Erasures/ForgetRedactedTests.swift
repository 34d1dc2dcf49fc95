// What a running server reads again into memory after stored events have lost data.
import AppStore
import Base
import Foundation
import HTTPClient
import Ledger
import Projections
import Server
import TestSupport
import Testing

@Suite("what a server forgets after an erasure", .bounded) struct ForgetRedactedTests {
  @Test("connections to a replaced generation are closed, even without another request")
  func connections() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    let answer = try fixture.upload("1", user: "alice")
    try expectEqual(fixture.look(answer).status, 200)
    let projections = try #require(fixture.projections)
    _ = try projections.changes(from: ChangePoint(0), limit: 10)
    _ = try projections.containsNotification(uuid: "n")
    _ = try projections.answer(
      .entitlements, about: "alice", of: fixture.family, atMs: ms("2026-01-05"))
    try Projector(try LogReader(fixture.directory)).rebuild()
    try fixture.workflow.forgetRedacted()
    try waitUntil { try Self.openGenerations(fixture.directory).count <= 1 }
    try expectEqual(fixture.look(answer).status, 200)
  }

  /// The generations that this process has open, removed ones included.
  private static func openGenerations(_ directory: LedgerDirectory) throws -> Set<String> {
    let folder = "\(directory.root.path)/projections/"
    var open: Set<String> = []
    for descriptor in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
      let path = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/\(descriptor)")
      guard let path, path.hasPrefix(folder), path.contains(".sqlite") else { continue }
      let name = path.dropFirst(folder.count)
      open.insert(String(name.prefix { $0 != "." }))
    }
    return open
  }

  @Test("the queue is read again, and the waiting receipts are still asked about")
  func queue() throws {
    let appStore = ScriptedAppStore.saying(.none(.timeout))
    let fixture = try WorkflowFixture(appStore) { configuration in
      configuration.verification.retryFirstMs = 3_600_000
      configuration.verification.retryCeilingMs = 3_600_000
    }
    let answer = try fixture.upload("1")
    expectEqual(answer.status, 206)
    appStore.follow { request, _ in .confirming(request) }
    try fixture.workflow.forgetRedacted()
    // Without retryNow, the attempts would be spread over the first pause.
    try waitUntil {
      try fixture.workflow.retryNow()
      return try fixture.look(answer).status == 200
    }
    try expectEqual(fixture.waitingAfterRebuild(), 0)
  }

  @Test("a waiting delivery goes out as the projections show it now, under its old id")
  func webhooks() throws {
    let fixture = try WebhookFixture()
    let isUp = Monitor(false)
    let receiver = try ScriptedServer { _ in .respond(isUp.withLock { $0 } ? 200 : 503, []) }
    fixture.start(receiver.url("hook"))
    try waitUntil { try fixture.state != nil }
    fixture.source.addSale("a", user: "alice")
    try waitUntil { fixture.count("failed") == 1 }
    fixture.source.replaceUser(at: 0, by: "(redacted 7)")
    fixture.forgetRedacted()
    isUp.withLock { $0 = true }
    fixture.clock.set(aheadMs: 5_100)
    try waitUntil { fixture.count("delivered") == 1 }
    let deliveries = try receiver.deliveries
    expectEqual(Set(deliveries.map(\.id)).count, 1)
    expectEqual(
      deliveries.map { $0.body["data"]?["user_identifier"]?.stringValue },
      ["alice", "(redacted 7)"])
    // The earlier failure still counts.
    expectEqual(fixture.count("failed"), 1)
  }
}
