// Receipts that were verified locally and that the App Store still owes an answer for (rule R1, *pending*).
import AppStore
import JSON
import Ledger

/// Keeps, for each pending receipt, what its file holds, in the shape of a reply.
struct PendingReceipts {
  private let database: Database
  private let readEvent: EventAccess

  init(_ database: Database, _ readEvent: @escaping EventAccess) {
    self.database = database
    self.readEvent = readEvent
  }

  /// Adds those that have become pending, and removes those that have an answer.
  func refresh() throws(ProjectionError) {
    let new: [(receipt: Int64, position: Int)]
    do throws(DatabaseError) {
      try database.execute(
        """
        DELETE FROM pending_receipts WHERE receipt NOT IN
        (SELECT id FROM receipts WHERE is_final = 0 AND is_locally_valid = 1)
        """)
      new = try newReceipts()
    } catch { throw .database(error) }
    for entry in new { try add(entry.receipt, position: entry.position) }
  }

  private func newReceipts() throws(DatabaseError) -> [(receipt: Int64, position: Int)] {
    let rows = try database.prepare(
      """
      SELECT id, first_position FROM receipts WHERE is_final = 0 AND is_locally_valid = 1
      AND id NOT IN (SELECT receipt FROM pending_receipts) ORDER BY id
      """)
    var result: [(receipt: Int64, position: Int)] = []
    while try rows.step() { result.append((rows.integer(0), Int(rows.integer(1)))) }
    return result
  }

  private func add(_ receipt: Int64, position: Int) throws(ProjectionError) {
    let line: [UInt8]
    do throws(LedgerError) { line = try readEvent(position) } catch { throw .ledger(error) }
    let file: Receipt? = line.withUnsafeBytes { bytes in
      guard let event = EventLine(bytes),
        let text = try? ReceiptUploadedView(data: event.data).receipt,
        let content = try? Base64.decode(text.raw)
      else { return nil }
      return try? content.withUnsafeBytes { try ReceiptFile.decode($0) }
    }
    guard let file else { throw .missingEvent(position: position, names: position) }
    do throws(DatabaseError) {
      let insert = try database.prepare("INSERT INTO pending_receipts VALUES(?, ?, ?)")
      insert.bind(1, receipt)
      insert.bind(2, text: Self.environment(of: file))
      insert.bind(3, text: String(decoding: Self.reply(of: file), as: UTF8.self))
      try insert.run()
    } catch { throw .database(error) }
  }

  /// R1: `ProductionSandbox` is Sandbox; a legacy receipt counts as Production until the App Store says
  /// otherwise.
  static func environment(of file: Receipt) -> String {
    if file.style == .transaction { return "Production" }
    return file.environment == "ProductionSandbox" ? "Sandbox" : file.environment ?? "Production"
  }

  /// The receipt file's purchases in the shape of a reply, so that one reader serves both.
  static func reply(of file: Receipt) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("receipt")
    writer.beginObject()
    writer.key("bundle_id")
    writer.string(file.bundleID)
    writer.key("in_app")
    writer.beginArray()
    for purchase in file.purchases { write(purchase, &writer) }
    writer.endArray()
    writer.endObject()
    writer.endObject()
    return writer.bytes
  }

  private static func write(_ purchase: ReceiptPurchase, _ writer: inout JSONWriter) {
    func text(_ key: StaticString, _ value: String?) {
      guard let value else { return }
      writer.key(key)
      writer.string(value)
    }
    func instant(_ key: StaticString, _ epochMs: Int64?) { text(key, epochMs.map(String.init)) }
    writer.beginObject()
    text("quantity", purchase.quantity)
    text("product_id", purchase.productID)
    text("transaction_id", purchase.transactionID)
    text("original_transaction_id", purchase.originalTransactionID)
    text("web_order_line_item_id", purchase.webOrderLineItemID)
    instant("purchase_date_ms", purchase.purchaseDateMs)
    instant("original_purchase_date_ms", purchase.originalPurchaseDateMs)
    instant("expires_date_ms", purchase.expiresDateMs)
    instant("cancellation_date_ms", purchase.cancellationDateMs)
    text("is_trial_period", purchase.isTrialPeriod ? "true" : nil)
    text("is_in_intro_offer_period", purchase.isInIntroOfferPeriod ? "true" : nil)
    text("promotional_offer_id", purchase.promotionalOfferID)
    writer.endObject()
  }
}
