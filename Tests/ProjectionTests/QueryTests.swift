// Questions about receipts that the App Store has not confirmed; transcripts ask about confirmed ones.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite("Queries show pending and confirmed sales")
struct QueryTests {
  private static let receiptID = "11111111-1111-5111-8111-111111111111"
  private let temporary: TemporaryDirectory
  private var path: String { temporary.path("ledger") }

  init() throws { temporary = try TemporaryDirectory() }

  private static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  /// A transaction receipt with one purchase.
  private static func receipt() -> String {
    let info = """
      {"bid"="com.example.shop";"product-id"="coins";"transaction-id"="7";\
      "original-transaction-id"="7";"quantity"="2";"purchase-date-ms"="1547121540000";}
      """
    return base64("{\"purchase-info\"=\"\(base64(info))\";}")
  }

  private func upload() -> EventDraft {
    var upload = ReceiptUploaded(
      receiptID: Self.receiptID, appFamilyID: "22222222-2222-4222-8222-222222222222",
      style: "transaction", bundleID: "com.example.shop",
      receiptSHA256Hex: String(repeating: "0", count: 64), occurredAtMs: 1_547_121_600_000,
      origin: .http)
    upload.countryCode = "DE"
    upload.userIdentifier = "anna"
    upload.metadata = Array(#"{"price":"1.50","currency":"EUR"}"#.utf8)
    let data = Array(Self.receipt().utf8).withUnsafeBytes { upload.data(receipt: $0) }
    return EventDraft(type: EventType.receiptUploaded.rawValue, version: 1, data: data)
  }

  private func verification(_ result: ReceiptVerified, reply: String? = nil) -> EventDraft {
    EventDraft(
      type: EventType.receiptVerified.rawValue, version: 1,
      data: result.data(upload: 0, reply: reply.map { .json(Array($0.utf8)) } ?? .none))
  }

  /// The projections of these events, in the ledger at `path`.
  private func queries(_ drafts: [EventDraft]) throws -> LedgerQueries {
    let directory = try LedgerDirectory.create(path: path, origin: "example.com/test")
    let writer = try LedgerWriter.open(directory)
    for draft in drafts { _ = try writer.append([draft]) }
    try writer.close()
    let reader = try LogReader(directory)
    return try LedgerQueries(
      try Projector(reader).current(), readEvent: { try reader.event(at: $0) })
  }

  private var local: ReceiptVerified {
    ReceiptVerified(authority: .local, outcome: .valid, occurredAtMs: 1_547_121_600_500)
  }

  @Test("A receipt that was only verified locally has the purchases of its file, all pending")
  func pending() throws {
    let queries = try queries([upload(), verification(local)])
    let receipt = try #require(try queries.receipt(id: Self.receiptID))
    expectEqual(receipt.state, "pending")
    #expect(receipt.replyPosition == nil)
    let sale = try #require(try queries.purchases(of: receipt).first)
    #expect(sale.isPending)
    #expect(sale.saleKey == "7" && sale.productID == "coins" && sale.quantity == 2)
    #expect(sale.unitPriceMicros == 1_500_000 && sale.pricePosition == 0)
    #expect(sale.countryCode == "DE" && sale.countryPosition == 0)
    expectEqual(sale.firstPosition, 1)
    expectEqual(sale.lines.map(\.amountMicros), [3_000_000])
    try expectEqual(queries.sales(key: "7"), [sale])
    try expectEqual(queries.sales(changedByUpload: 0), [sale])
    try expectEqual(queries.user("anna")?.sales, [sale])
    try expectEqual(queries.exceptions(of: sale), [])
  }

  @Test("Once the App Store has replied, the same sale is confirmed, and found once")
  func confirmed() throws {
    var answer = ReceiptVerified(
      authority: .appStore, outcome: .valid, occurredAtMs: 1_547_121_700_000)
    answer.status = 0
    let reply = """
      {"status":0,"environment":"Production","receipt":{"bundle_id":"com.example.shop","in_app":[\
      {"product_id":"coins","transaction_id":"7","original_transaction_id":"7","quantity":"2",\
      "purchase_date_ms":"1547121540000"},{"product_id":"coins"}]}}
      """
    let queries = try queries([
      upload(), verification(local), verification(answer, reply: reply),
    ])
    let receipt = try #require(try queries.receipt(id: Self.receiptID))
    #expect(receipt.state == "valid" && receipt.replyPosition == 2)
    let purchases = try queries.purchases(of: receipt)
    expectEqual(purchases.map(\.saleKey), ["7"])
    #expect(purchases.first?.isPending == false && purchases.first?.firstPosition == 2)
    try expectEqual(queries.sales(key: "7"), purchases)
    try expectEqual(queries.user("anna")?.sales, purchases)
    let shown = try #require(try queries.verification(at: 2))
    try expectEqual(queries.sales(shownBy: shown), purchases)
    let malformed = try queries.exceptions(at: 2)
    expectEqual(malformed.map(\.exception), ["malformed_transaction"])
    expectEqual(malformed.first?.detail, "transaction_id+purchase_date")
    // A local result shows no sale by itself.
    let first = try #require(try queries.verification(at: 1))
    try expectEqual(queries.sales(shownBy: first), [])
  }

  @Test("Missing data is nil or empty")
  func unknown() throws {
    let queries = try queries([])
    #expect(try queries.receipt(id: Self.receiptID) == nil)
    #expect(try queries.receiptID(ofUpload: 0) == nil)
    #expect(try queries.verification(at: 0) == nil)
    #expect(try queries.user("anna") == nil)
    try expectEqual(queries.sales(key: "7"), [])
    try expectEqual(
      queries.positions(receiptID: Self.receiptID, userIdentifier: nil, appFamilyID: nil), [])
  }
}
