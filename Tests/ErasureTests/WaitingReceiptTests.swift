// Receipts that wait for the App Store when their user is erased: they become revenue, and nothing of the user stays.
import Base
import Erasure
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct WaitingReceiptTests {
  private static let dayMs: Int64 = 86_400_000
  private static let nowMs = Timestamp.now()
  private static let file = ReceiptFileText.transaction(.init("500"))
  private static let report = "sales --environment all --include-pending"
  private static let pending = TestEvent.pending(
    file, user: "anna",
    metadata: [
      "note": "call Anna",
      "prices": [["product_id": "coins", "price": "9.99", "currency": "EUR"]],
    ])

  private static func erase(
    _ fixture: LedgerFixture, requestedMs: Int64? = nil, nowMs: Int64 = nowMs
  ) throws -> ErasureCertificate? {
    _ = try fixture.current()
    if let requestedMs {
      try ErasureQueue(fixture.directory).add(
        ErasureRecord(
          .user("anna", appFamily: nil), reason: "user_request", requestedAtMs: requestedMs,
          isUrgent: true))
    }
    let writer = try LedgerWriter.open(fixture.directory, options: WriterOptions())
    let records = try Eraser(fixture.directory, writer, projections: .standard).run(nowMs: nowMs)
    try writer.close()
    return records.first?.certificate
  }

  private static func size(_ fixture: LedgerFixture) throws -> Int {
    try LogReader(fixture.directory).head.size
  }

  private static func upload(_ fixture: LedgerFixture) throws -> JSONValue {
    let line = try LogReader(fixture.directory).event(at: 0)
    return try line.withUnsafeBytes { try JSONValue(Array(try #require(EventLine($0)).data)) }
  }

  private static func isWaiting(_ fixture: LedgerFixture) throws -> Bool {
    let count = try fixture.current().integer(
      "SELECT count(*) FROM open_uploads WHERE is_accepted = 1 AND is_refused = 0")
    return count == 1
  }

  @Test("The receipt alone stays, and pending figures stay as they were")
  func waits() throws {
    let fixture = try LedgerFixture()
    try fixture.append([Self.pending])
    let before = try fixture.figures(Self.report, at: 2)
    let certificate = try Self.erase(fixture, requestedMs: Self.nowMs)
    #expect(certificate?.receipts == 0 && certificate?.waitingReceipts == 1)
    expectEqual(certificate?.waitsUntilMs, Self.nowMs + 25 * Self.dayMs)
    let kept = try Self.upload(fixture)
    let text = String(decoding: Base64.encode(Self.file.bytes), as: UTF8.self)
    expectEqual(kept["receipt"]?.stringValue, text)
    expectEqual(
      kept["receipt_until"]?.stringValue, Timestamp.fixedText(ms: Self.nowMs + 25 * Self.dayMs))
    #expect(kept["receipt_sha256"] == nil && kept["user_identifier"]?.stringValue == "(redacted 2)")
    #expect(!String(decoding: kept.bytes, as: UTF8.self).contains("Anna"))
    try expectEqual(fixture.figures(Self.report, at: Self.size(fixture)), before)
    #expect(try Self.isWaiting(fixture))
    // Nothing is due yet.
    let count = try Self.size(fixture)
    _ = try Self.erase(fixture)
    try expectEqual(Self.size(fixture), count)
  }

  @Test("Once the App Store has replied, the sale counts, and receipt and reply are reduced")
  func replied() throws {
    let fixture = try LedgerFixture()
    try fixture.append([Self.pending])
    _ = try Self.erase(fixture, requestedMs: Self.nowMs)
    let device: Members = ["unique_identifier": "Anna's phone"]
    try fixture.append([.verify(0, reply(row("500", device)))])
    _ = try Self.erase(fixture)
    let kept = try Self.upload(fixture)
    #expect(kept["receipt_until"] == nil && kept["receipt"]?["purchases"] != nil)
    let lines = try (0..<Self.size(fixture)).map { position in
      String(decoding: try LogReader(fixture.directory).event(at: position), as: UTF8.self)
    }
    #expect(!lines.contains { $0.contains("Anna") || $0.contains("anna") })
    try expectEqual(fixture.salesUsers(), ["500 (redacted 2)"])
    #expect(try !Self.isWaiting(fixture))
    let sales = try fixture.figures("revenue --environment all", at: Self.size(fixture))
    #expect(sales.count == 1 && sales[0].contains("9.99"))
  }

  @Test("Nothing waits longer than 25 days after the request", arguments: [0, 24, 25, 30])
  func late(days: Int64) throws {
    let fixture = try LedgerFixture()
    try fixture.append([Self.pending])
    _ = try Self.erase(fixture, requestedMs: Self.nowMs)
    _ = try Self.erase(fixture, nowMs: Self.nowMs + days * Self.dayMs)
    try expectEqual((Self.upload(fixture)["receipt_until"] == nil), (days >= 25))
  }

  @Test("An older request leaves nothing to wait")
  func old() throws {
    let fixture = try LedgerFixture()
    try fixture.append([Self.pending])
    let certificate = try Self.erase(fixture, requestedMs: Self.nowMs - 26 * Self.dayMs)
    #expect(certificate?.receipts == 1 && certificate?.waitingReceipts == 0)
    #expect(try Self.upload(fixture)["receipt"]?["purchases"] != nil)
  }

  @Test("An export of an erased user does not show a receipt that waits")
  func export() throws {
    let fixture = try LedgerFixture()
    try fixture.append([Self.pending])
    _ = try Self.erase(fixture, requestedMs: Self.nowMs)
    var exported = ""
    try UserExport("(redacted 2)", appFamily: nil, LogReader(fixture.directory), fixture.current())
      .write { exported += String(decoding: $0, as: UTF8.self) }
    #expect(!exported.contains(String(decoding: Base64.encode(Self.file.bytes), as: UTF8.self)))
  }
}
