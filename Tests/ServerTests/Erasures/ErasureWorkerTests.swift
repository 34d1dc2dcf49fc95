// The thread that carries out erasures, and how a request reaches it.
import Base
import Erasure
import Foundation
import Glibc
import Ledger
import Server
import Synchronization
import TestSupport
import Testing

/// Scripted passes: each removes all open requests, or fails.
final class ScriptedPasses: Sendable {
  let directory: LedgerDirectory
  let retentions = Monitor<[ErasureWorker.Retention?]>([])
  let held = Monitor<RetentionPass?>(nil)
  let finishes = Atomic<Int>(0)
  let fails = Monitor(false)
  let configuration = Monitor(Configuration())

  init(_ directory: LedgerDirectory) { self.directory = directory }

  var count: Int { retentions.withLock { $0.count } }

  func run(_ retention: ErasureWorker.Retention?) throws(ErasureError) -> ErasureWorker.Result {
    retentions.withLock { $0.append(retention) }
    if fails.withLock({ $0 }) { throw .refused(object: "request", cause: "the disk is full") }
    for record in try ErasureQueue(directory).open() {
      do throws(LedgerError) {
        try directory.root.folder(ErasureQueue.folderName).unlink("\(record.id).json")
      } catch { throw .ledger(error) }
    }
    return ErasureWorker.Result([], heldRetention: held.withLock { $0 })
  }
}

/// A worker over requests in files.
final class ErasureFixture {
  private let temporary: TemporaryDirectory
  let passes: ScriptedPasses
  let metrics = Metrics()
  let notes = WorkflowNotes()
  let clock = MovableClock()
  private let worker: ErasureWorker

  init(_ set: (inout Configuration) -> Void = { _ in }) throws {
    temporary = try TemporaryDirectory()
    let directory = try LedgerDirectory.create(
      path: temporary.path("ledger"), origin: "receipts.example/test")
    let passes = ScriptedPasses(directory)
    passes.configuration.withLock { set(&$0) }
    var parts = ErasureWorker.Parts(
      directory: directory, configuration: { passes.configuration.withLock { $0 } },
      finish: { () throws(ErasureError) in passes.finishes.add(1, ordering: .relaxed) },
      run: { (retention) throws(ErasureError) in try passes.run(retention) },
      metrics: metrics, log: { [notes] in notes.say($1) })
    parts.clock = clock.clock
    parts.pauseMs = 5
    self.passes = passes
    worker = ErasureWorker(parts)
  }

  deinit { stop() }

  func add(_ user: String, urgent: Bool) throws {
    try ErasureQueue(passes.directory).add(
      ErasureRecord(
        .user(user, appFamily: nil), reason: "user_request", requestedAtMs: Timestamp.now(),
        isUrgent: urgent))
  }

  func start() throws { try worker.start() }
  func stop() { worker.stop() }

  func metric(_ name: String) -> Int {
    String(decoding: metrics.exposition(), as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix("\(name) ") }.flatMap { Int($0.dropFirst(name.count + 1)) } ?? -1
  }
}

@Suite("erasures of a running server", .bounded) struct ErasureWorkerTests {
  @Test("an urgent request is carried out at once, and retention is left to the daily pass")
  func urgent() throws {
    let fixture = try ErasureFixture { $0.retention.ipAddress = RetentionPeriod("90d") }
    try fixture.start()
    try fixture.add("alice", urgent: true)
    try waitUntil { fixture.passes.count == 1 }
    fixture.stop()
    expectEqual(fixture.passes.retentions.withLock { $0.map(\.?.rules) }, [nil])
    expectEqual(fixture.metric("receipt_ledger_erasures_waiting"), 0)
  }

  @Test("a request that is not urgent waits, counted, until the daily time")
  func daily() throws {
    let fixture = try ErasureFixture { $0.retention.metadata = RetentionPeriod("7y") }
    try fixture.start()
    try fixture.add("alice", urgent: false)
    try waitUntil { fixture.metric("receipt_ledger_erasures_waiting") == 1 }
    expectEqual(fixture.passes.count, 0)
    fixture.clock.set(aheadMs: 86_400_000)
    try waitUntil { fixture.passes.count == 1 }
    fixture.stop()
    expectEqual(
      fixture.passes.retentions.withLock { $0.first??.rules.metadataMs },
      RetentionPeriod("7y")?.milliseconds)
    #expect(fixture.passes.retentions.withLock { $0.first??.isOrdered } == false)
  }

  @Test("retention that would erase too much raises an alarm with its count and times")
  func heldRetention() throws {
    let fixture = try ErasureFixture { $0.retention.metadata = RetentionPeriod("7y") }
    fixture.passes.held.withLock {
      $0 = RetentionPass(
        eventCount: 5_000, firstRecordedAtMs: ms("2020-01-01"), lastRecordedAtMs: ms("2026-01-01"),
        isUnusual: true)
    }
    try fixture.add("alice", urgent: false)
    try fixture.start()
    try waitUntil { fixture.metric("receipt_ledger_erasures_waiting") == 1 }
    fixture.clock.set(aheadMs: 86_400_000)
    try waitUntil { fixture.notes.lines.count == 1 }
    fixture.stop()
    #expect(
      fixture.notes.lines.first?.hasPrefix(
        "retention: 5000 events, recorded from 2020-01-01T00:00:00.000Z to 2026-01-01T00:00:00.000Z: "
      )
        == true)
    expectEqual(fixture.metric(#"receipt_ledger_operator_alarms_total{alarm="retention_held"}"#), 1)
  }

  @Test("retention that an operator orders runs at once, as of then, and the order ends")
  func orderedRetention() throws {
    let fixture = try ErasureFixture { $0.retention.metadata = RetentionPeriod("7y") }
    let queue = ErasureQueue(fixture.passes.directory)
    try queue.orderRetention(nowMs: ms("2020-01-01"))
    try fixture.start()
    try waitUntil { try queue.orderedRetentionMs() == nil }
    fixture.stop()
    let made = fixture.passes.retentions.withLock { $0 }
    expectEqual(made.count, 1)
    #expect(made.first??.isOrdered == true)
    expectEqual(made.first??.nowMs, ms("2020-01-01"))
  }

  @Test("a failed pass is logged without a name and retried a minute later")
  func failure() throws {
    let fixture = try ErasureFixture()
    fixture.passes.fails.withLock { $0 = true }
    try fixture.start()
    try fixture.add("alice", urgent: true)
    try waitUntil { fixture.notes.lines.count == 1 }
    expectEqual(
      fixture.notes.lines,
      [
        "erasures: erase request: the disk is full; the next attempt is in a minute"
      ])
    expectEqual(fixture.passes.finishes.load(ordering: .relaxed), 0)
    fixture.passes.fails.withLock { $0 = false }
    fixture.clock.set(aheadMs: 60_100)
    try waitUntil { fixture.passes.count == 2 }
    fixture.stop()
    expectEqual(fixture.passes.finishes.load(ordering: .relaxed), 1)
    expectEqual(fixture.notes.lines.count, 1)
  }

  @Test("a request over HTTP is durable under the id in the response, and only its app sees it")
  func intake() throws {
    let fixture = try WorkflowFixture(.saying(.reply(row("1"))))
    let accepted = AwaitedResponse()
    try fixture.workflow.erase(
      ErasureOrder(
        user: "alice", reason: "user_request", isUrgent: true, appFamily: fixture.family,
        receivedAtMs: ms("2026-01-05"))
    ) { accepted.set($0) }
    let answer = try accepted.wait()
    expectEqual(answer.status, 202)
    guard case .erasureAccepted(let id, _) = answer else {
      Issue.record("not accepted")
      return
    }
    let record = try #require(try ErasureQueue(fixture.directory).record(id))
    expectEqual(record.subject, .user("alice", appFamily: fixture.family))
    #expect(record.isUrgent && record.state == .waiting)
    func look(_ family: UUID16) throws -> ClientResponse {
      let found = AwaitedResponse()
      try fixture.workflow.erasure(id, of: family) { found.set($0) }
      return try found.wait()
    }
    let shown = try look(fixture.family)
    expectEqual(
      shown.body?.bytes,
      Array(
        (#"{"id":"\#(id)","state":"waiting","reason":"user_request","#
          + #""requested_at":"2026-01-05T00:00:00.000Z","certificate":null,"failure":null}"#).utf8
      ))
    try expectEqual(look(.random()).status, 404)
  }

  @Test("a request that the copy does not confirm is answered 503, and stays on disk")
  func unconfirmed() throws {
    let isAway = Monitor(true)
    let ledger = try ConfiguredLedger()
    let notes = WorkflowNotes()
    let intake = ErasureIntake(
      ledger.directory, OperatorNotes(WorkflowClock(), Metrics(), write: { notes.say($1) }),
      confirm: { () throws(LedgerError) in
        guard isAway.withLock({ $0 }) else { return }
        throw LedgerError(
          .unconfirmed, operation: "append", object: "s3://copy", cause: "the store is away")
      })
    try intake.start()
    defer { intake.stop() }
    func statuses(_ users: [String]) throws -> [Int] {
      let answers = users.map { user in
        let answer = AwaitedResponse()
        intake.receive(
          ErasureOrder(
            user: user, reason: "user_request", isUrgent: false, appFamily: .random(),
            receivedAtMs: ms("2026-01-05"))
        ) { answer.set($0) }
        return answer
      }
      return try answers.map { Int(try $0.wait().status) }
    }
    try expectEqual(statuses(["alice", "bob"]), [503, 503])
    try expectEqual(ErasureQueue(ledger.directory).open().count, 2)
    #expect(notes.lines.contains { $0.contains("the store is away") })
    isAway.withLock { $0 = false }
    try expectEqual(statuses(["alice", "bob", "carol"]), [202, 202, 202])
  }

  @Test("a server counts the waiting requests, and stops without carrying them out")
  func server() throws {
    let ledger = try ConfiguredLedger()
    try ErasureQueue(ledger.directory).add(
      ErasureRecord(
        .user("alice", appFamily: nil), reason: "user_request", requestedAtMs: Timestamp.now(),
        isUrgent: false))
    var options = LedgerServerOptions()
    options.listen = "127.0.0.1:0"
    options.metricsListen = "127.0.0.1:0"
    let server = try LedgerServer(ledger.directory, options: options)
    let port = try #require(server.metricsPort)
    let isCounted = eventually {
      guard let client = try? WireClient(port: port) else { return false }
      client.send(ServerFixture.get("/metrics", headers: []))
      guard let answer = try? client.answer() else { return false }
      return String(decoding: answer.body, as: UTF8.self)
        .contains("\nreceipt_ledger_erasures_waiting 1\n")
    }
    try server.stop()
    #expect(isCounted)
    try expectEqual(ErasureQueue(ledger.directory).open().count, 1)
  }

  @Test("responses and logs about a request name no person, and another app's token finds nothing")
  func overHTTP() throws {
    let ledger = try ConfiguredLedger()
    let family = ConfigurationSample.family
    let other = UUID16.random().description
    let token = try ledger.file.addToken(appFamilyID: family, scope: .erase).token
    let stranger = try ledger.file.addToken(appFamilyID: other, scope: .erase).token
    let log = try TemporaryDirectory()
    let descriptor = open(log.path("access"), O_WRONLY | O_CREAT, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let notes = WorkflowNotes()
    var options = LedgerServerOptions()
    options.listen = "127.0.0.1:0"
    options.accessLogDescriptor = descriptor
    options.log = { notes.say($1) }
    let server = try LedgerServer(ledger.directory, options: options)
    func ask(_ request: String) throws -> WireResponse {
      let client = try WireClient(port: server.port)
      client.send(request)
      return try #require(try client.answer())
    }
    let accepted = try ask(
      ServerFixture.question(
        #"{"user_identifier":"alice-4711","reason":"user_request"}"#, path: "/v1/erasures",
        token: token))
    let path = try #require(accepted.header("location"))
    let shown = try ask(ServerFixture.get(path, headers: ["Authorization: Bearer \(token)"]))
    let hidden = try ask(ServerFixture.get(path, headers: ["Authorization: Bearer \(stranger)"]))
    try server.stop()
    expectEqual(accepted.status, 202)
    expectEqual(shown.status, 200)
    expectEqual(hidden.status, 404)
    expectEqual(shown.json?["state"]?.stringValue, "waiting")
    let waiting = try #require(try ErasureQueue(ledger.directory).open().first)
    expectEqual(waiting.appFamily, UUID16(family))
    let logged = try String(contentsOfFile: log.path("access"), encoding: .utf8)
    #expect(logged.contains(#""route":"/v1/erasures/{id}""#))
    let said =
      logged + notes.lines.joined()
      + [accepted, shown, hidden].map { String(decoding: $0.body, as: UTF8.self) }.joined()
    #expect(!said.contains("alice"))
    #expect(!logged.contains(String(path.dropFirst("/v1/erasures/".count))))
  }

  @Test("with sync, a request that is answered 202 is in the copy")
  func copied() throws {
    let ledger = try ConfiguredLedger()
    let target = try TemporaryDirectory()
    let path = target.path("copy")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    try ledger.write(
      #"{"replication":{"target":"file://\#(path)","mode":"sync","sync_limit_ms":60000}}"#)
    let token = try ledger.file.addToken(
      appFamilyID: ConfigurationSample.family, scope: .erase
    ).token
    var options = LedgerServerOptions()
    options.listen = "127.0.0.1:0"
    let server = try LedgerServer(ledger.directory, options: options)
    let client = try WireClient(port: server.port)
    client.send(
      ServerFixture.question(
        #"{"user_identifier":"alice-4711","reason":"user_request"}"#, path: "/v1/erasures",
        token: token))
    let answer = try client.answer()
    let works = try FileManager.default.contentsOfDirectory(
      at: URL(fileURLWithPath: path).appendingPathComponent("work"),
      includingPropertiesForKeys: nil)
    let found = try works.map { try String(contentsOf: $0, encoding: .utf8) }
    try server.stop()
    expectEqual(answer?.status, 202)
    #expect(found.contains { $0.contains("alice-4711") })
  }
}
