// Uploads without a final reply from the App Store, and the receipts that are pending.
package import AppStore
import Base
package import Ledger

/// Keeps uploads without a final reply. Most get one at once and never reach the table.
final class OpenUploads {
  private struct Entry {
    var receipt: Int32
    /// Whether the local check found no reason against asking the App Store.
    var isAccepted = false
    /// Whether an event records that the App Store could not be reached.
    var isUnreachable = false
    /// Whether the App Store has rejected it permanently, without a final status.
    var isRefused = false

    mutating func note(_ result: ReceiptVerifiedView) {
      switch (result.authority, result.outcome) {
      // A local check that could not decide leaves the decision to the App Store.
      case (.local, .valid), (.local, .unreachable): isAccepted = true
      case (.local, .invalid): isAccepted = false
      case (.appStore, .invalid): isRefused = true
      case (.appStore, .unreachable): isUnreachable = true
      case (.appStore, .valid): break
      }
    }
  }

  private let rows: RowWriter
  private var entries: [Int: Entry] = [:]
  /// The newest upload, kept outside the dictionary to save a lookup.
  private var last: (position: Int, entry: Entry)?
  private let insert: RowTarget
  private let update: RowTarget
  private let remove: RowTarget

  init(_ rows: RowWriter) throws(DatabaseError) {
    self.rows = rows
    insert = try rows.target("INSERT INTO open_uploads", valueCount: 5)
    // An upload may change twice in one batch, so each row runs as a separate statement.
    update = try rows.target(
      reading: """
        UPDATE open_uploads SET is_accepted = coalesce(c0, is_accepted),
        is_unreachable = is_unreachable | c1, is_refused = is_refused | c2
        FROM row_batch WHERE upload = c3
        """, valueCount: 4, inOrderWith: insert, isSingle: true)
    remove = try rows.target(
      reading: "DELETE FROM open_uploads WHERE upload IN (SELECT c0 FROM row_batch)",
      valueCount: 1, inOrderWith: insert)
  }

  /// Adds an upload.
  func add(_ position: Int, receipt: Int32) {
    if let last { entries[last.position] = last.entry }
    last = (position, Entry(receipt: receipt))
  }

  /// Records a verification result for the upload it names. A final result closes the upload.
  func note(_ result: ReceiptVerifiedView, isFinal: Bool) throws(DatabaseError) {
    let position = result.upload
    if isFinal { return try close(position) }
    if last?.position == position {
      last?.entry.note(result)
    } else if entries[position] != nil {
      entries[position]?.note(result)
    } else {
      var change = Entry(receipt: 0)
      change.note(result)
      rows.begin(update)
      rows.add(result.authority == .local ? (change.isAccepted ? 1 : 0) : Int64?.none)
      rows.add(change.isUnreachable ? 1 : 0)
      rows.add(change.isRefused ? 1 : 0)
      rows.add(position)
      try rows.end()
    }
  }

  private func close(_ position: Int) throws(DatabaseError) {
    if last?.position == position {
      last = nil
    } else if entries.isEmpty || entries.removeValue(forKey: position) == nil {
      rows.begin(remove)
      rows.add(position)
      try rows.end()
    }
  }

  /// Writes the open uploads before a position to the table, and forgets them.
  func store(before limit: Int = .max) throws(DatabaseError) {
    if let open = last, open.position < limit {
      entries[open.position] = open.entry
      last = nil
    }
    if entries.isEmpty { return }
    for (position, entry) in entries.filter({ $0.key < limit }).sorted(by: { $0.key < $1.key }) {
      rows.begin(insert)
      rows.add(position)
      rows.add(Int(entry.receipt))
      rows.add(entry.isAccepted ? 1 : 0)
      rows.add(entry.isUnreachable ? 1 : 0)
      rows.add(entry.isRefused ? 1 : 0)
      try rows.end()
      entries[position] = nil
    }
  }
}

// MARK: - Pending receipts

/// Stores the contents of the file of each receipt that was verified locally and has no final reply yet (rule R1,
/// *pending*), in the form of a reply.
package struct PendingReceipts {
  private let database: Database
  private let readEvent: EventAccess

  init(_ database: Database, _ readEvent: @escaping EventAccess) {
    self.database = database
    self.readEvent = readEvent
  }

  /// Adds receipts that have become pending, and removes those with a final reply.
  func update(
    added: [(number: Int32, upload: Int)], removed: [Int32]
  ) throws(ProjectionError) {
    if !removed.isEmpty {
      do throws(DatabaseError) {
        let delete = try database.prepare("DELETE FROM pending_receipts WHERE receipt = ?")
        for number in removed {
          delete.bind(1, Int(number))
          try delete.run()
        }
      } catch { throw .database(error) }
    }
    if added.isEmpty { return }
    let insert: Statement
    do throws(DatabaseError) {
      insert = try database.prepare("INSERT INTO pending_receipts VALUES(?, ?, ?)")
    } catch { throw .database(error) }
    for entry in added { try add(entry.number, upload: entry.upload, insert) }
  }

  private func add(
    _ receipt: Int32, upload position: Int, _ insert: Statement
  ) throws(ProjectionError) {
    let line: [UInt8]
    do throws(LedgerError) { line = try readEvent(position) } catch { throw .ledger(error) }
    // If the receipt can't be read, nothing is known about it until the App Store replies. No upload over HTTP leaves
    // such a receipt.
    guard let file = Self.file(of: line) else { return }
    do throws(DatabaseError) {
      insert.bind(1, Int(receipt))
      insert.bind(2, text: PendingEnvironment.environment(of: file))
      insert.bind(3, text: String(decoding: Self.reply(of: file), as: UTF8.self))
      try insert.run()
    } catch { throw .database(error) }
  }

  /// The receipt in an upload's event, with its signature unchecked; nil if it can't be read.
  static func file(of line: [UInt8]) -> Receipt? {
    line.withUnsafeBytes { bytes in
      guard let event = EventLine(bytes),
        let upload = try? ReceiptUploadedView(
          data: event.data, isRedacted: event.isRedacted, version: event.version)
      else { return nil }
      return file(of: upload)
    }
  }

  /// As above, of an upload that was read.
  package static func file(of upload: ReceiptUploadedView) -> Receipt? {
    if let facts = upload.receiptFacts {
      let isTransactionStyle = upload.style.map { $0 == "transaction" } ?? false
      return Receipt(
        keptFacts: facts, style: isTransactionStyle ? .transaction : .unified,
        bundleID: upload.bundleID?.string ?? "")
    }
    guard let text = upload.receipt, let content = try? Base64.decode(text.raw) else { return nil }
    return try? content.withUnsafeBytes { try ReceiptFile.decode($0) }
  }

  /// The receipt file's purchases in the form of a reply, so that one reader handles both.
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
    // Replies have no such field. It is the product type as numbered in the receipt's attribute 1707.
    text("product_type", purchase.productType.map { String($0) })
    writer.endObject()
  }
}

extension PendingEnvironment {
  /// SQL: a receipt's environment as text, taken from the file if only the file names one. The query must read
  /// `receipts r LEFT JOIN pending_receipts q ON q.receipt = r.id`.
  static let ofReceiptSQL =
    "coalesce(nullif(\(storedSQL), 'Unknown'), q.environment, \(storedSQL))"

  private static let storedSQL = "(SELECT text FROM symbols WHERE id = r.environment)"
}
