// `audit --signatures` and `verify POSITION`, on a log of signed objects, and on a log with forged events.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite(.bounded) struct SignatureAuditTests {
  /// A ledger of invented signed transactions and notifications in `shop`, which trusts their root.
  private func shop() throws -> Sandbox {
    let sandbox = try Sandbox()
    let made = try sandbox.run(
      "generate-history --uploads 30 --seed 1 --signed-percent 80 --authority authority -o in.ndjson && "
        + "ledgerctl init shop --origin receipts.example/test >out")
    try #require(made.exitCode == 0, "\(made.diagnostics)")
    let pem = try String(
      contentsOfFile: sandbox.path + "/authority/signed-root.pem", encoding: .utf8)
    let base64 = pem.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined()
    let root = [UInt8](try #require(Data(base64Encoded: base64)))
      .withUnsafeBytes { SHA256.hash($0) }
    let imported = try sandbox.run(
      """
      umask 077; echo '{"trust":{"additional_roots_sha256":["\(root.hex)"]}}' >shop/config.json
      ledgerctl import in.ndjson --register-apps --ledger shop >out
      """)
    try #require(imported.exitCode == 0, "\(imported.diagnostics)")
    return sandbox
  }

  private func directory(_ sandbox: Sandbox) throws -> LedgerDirectory {
    try LedgerDirectory.open(path: sandbox.path + "/shop")
  }

  /// The first event of a type, as its data.
  private func first(_ type: EventType, _ sandbox: Sandbox) throws -> (Position, String) {
    let reader = try LogReader(try directory(sandbox))
    var found: (Position, String)?
    try reader.read(from: 0) { chunk in
      try chunk.forEachEvent { event in
        if found == nil, EventType(event.type) == type {
          found = (event.position, String(decoding: event.data, as: UTF8.self))
        }
      }
      return true
    }
    return try #require(found)
  }

  @Test func whatWasRecordedIsJudgedAlikeAgain() throws {
    let sandbox = try shop()
    let outcome = try sandbox.run("ledgerctl audit --signatures --ledger shop | grep signatures")
    #expect(outcome.output.contains("judged again"), "\(outcome)")
    #expect(outcome.output.hasSuffix("each as recorded\n"))
    try expectEqual(sandbox.run("ledgerctl audit --signatures --ledger shop").exitCode, 0)
  }

  @Test(arguments: [
    (EventType.transactionsReceived, "transactions[0] is recorded as valid, but is not"),
    (.notificationReceived, "notification is recorded as valid, but is not"),
  ])
  func aForgedPayloadIsAFinding(_ type: EventType, _ cause: String) throws {
    let sandbox = try shop()
    let data = try first(type, sandbox).1
    let forged = data.replacingOccurrences(
      of: #""environment":"Production""#, with: #""environment":"Sandbox""#)
    try #require(forged != data)
    let writer = try LedgerWriter.open(try directory(sandbox), options: WriterOptions())
    let position = try writer.append([
      EventDraft(type: type.rawValue, version: 1, data: Array(forged.utf8))
    ]).firstPosition
    try writer.close()
    try expectEqual(sandbox.run("ledgerctl audit --ledger shop").exitCode, 0)
    let outcome = try sandbox.run("ledgerctl audit --signatures --ledger shop")
    expectEqual(outcome.exitCode, 20)
    #expect(outcome.output.contains("tampered"), "\(outcome.output)")
    #expect(outcome.output.contains("\(position)"), "\(outcome.output)")
    #expect(outcome.output.contains(cause), "\(outcome.output)")
    try expectEqual(sandbox.run("ledgerctl verify \(position) --ledger shop").exitCode, 3)
  }

  @Test func aPositionIsVerifiedByTheTrustOfToday() throws {
    let sandbox = try shop()
    let (position, _) = try first(.notificationReceived, sandbox)
    let good = try sandbox.run("ledgerctl verify \(position) --ledger shop")
    expectEqual(good.exitCode, 0, "\(good)")
    #expect(good.output.contains("signed object  notification"))
    let withdrawn = try sandbox.run(
      "echo '{}' >shop/config.json; ledgerctl verify \(position) --ledger shop")
    expectEqual(withdrawn.exitCode, 3)
    let other = try sandbox.run("ledgerctl verify 1 --ledger shop")
    expectEqual(
      other.diagnostics, "ledgerctl: verify: position 1: the event has no signed object\n")
  }
}
