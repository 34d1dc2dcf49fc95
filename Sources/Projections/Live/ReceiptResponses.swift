// The client API's responses about receipts, read from the projections and from the events that hold replies.
import AppStore
import Base
import Ledger
import Revenue

/// Answers questions about receipts, from one generation. Used by one thread at a time.
final class ReceiptResponses {
  let database: Database
  let readEvent: (Position) throws -> [UInt8]
  private let recent: RecentEvents
  private let arena = TextArena()
  private let symbols: StringInterner
  let keeper = TextKeeper()
  private let selectUpload: Statement
  private let selectNewest: Statement
  let selectSignedUpload: Statement
  private let selectReply: Statement
  private let selectSale: Statement
  private let selectUser: Statement
  private let selectMetadata: Statement
  private let packing = ReplyPacking()
  let subscriptions: SubscriptionQueries
  private let begin: Statement
  private let commit: Statement

  /// - Parameters:
  ///   - recent: of the same generation.
  ///   - readEvent: returns the line of an event that is not among the recent ones.
  init(
    _ database: Database, _ recent: RecentEvents,
    readEvent: @escaping (Position) throws -> [UInt8]
  ) throws(DatabaseError) {
    self.database = database
    self.recent = recent
    self.readEvent = { try recent.line(at: $0, readEvent) }
    symbols = StringInterner(arena)
    subscriptions = SubscriptionQueries(database)
    begin = try database.prepare("BEGIN")
    commit = try database.prepare("COMMIT")
    selectNewest = try database.prepare(
      """
      SELECT last_upload, app_family FROM receipts WHERE receipt_hash = ? AND receipt_id = ?
      """)
    selectUpload = try database.prepare(
      """
      SELECT r.receipt_id, r.app_family, r.bundle, r.style, \(PendingEnvironment.ofReceiptSQL), r.reply_position,
      r.created_at_ms, r.updated_at_ms, u.user_identifier, p.ip_address, p.metadata, p.country,
      f.fraud_reason, o.upload IS NOT NULL, q.environment, q.purchases, v.occurred_at_ms, r.id
      FROM uploads p JOIN receipts r ON r.id = p.receipt LEFT JOIN users u ON u.id = p.user
      LEFT JOIN upload_verdicts f ON f.upload = p.position
      LEFT JOIN open_uploads o ON o.upload = p.position
      LEFT JOIN pending_receipts q ON q.receipt = r.id
      LEFT JOIN verifications v ON v.position = r.reply_position
      WHERE p.position = ?
      """)
    selectSignedUpload = try database.prepare(Self.signedUploadSQL)
    selectReply = try database.prepare(
      "SELECT content FROM recent_replies WHERE position = ? AND receipt = ?")
    selectSale = try database.prepare(
      """
      SELECT version, quantity, product, sale_date_ms, country, user, currency, created_at_ms,
      updated_at_ms, first_position
      FROM sales WHERE sale_key = ? AND key_kind = ? AND environment = ? AND bundle = ?
      """)
    selectUser = try database.prepare("SELECT user_identifier FROM users WHERE id = ?")
    selectMetadata = try database.prepare(
      """
      SELECT metadata FROM uploads
      WHERE position = coalesce((SELECT upload FROM verifications WHERE position = ?1), ?1)
      """)
  }

  /// Calls `body` in a transaction, so that everything it reads is of one moment.
  func withSnapshot<Result>(_ body: () throws -> Result) throws -> Result {
    try begin.run()
    defer { try? commit.run() }
    return try body()
  }

  // MARK: Receipts

  /// The resource of a receipt as its newest upload sees it; nil if the family has no such receipt.
  func answer(receiptID: UUID16, apps: AppDirectory, family: UUID16) throws -> ClientReceipt? {
    try withSnapshot {
      let upload: Position? = try withText(receiptID.description) { (id) throws(DatabaseError) in
        selectNewest.bind(1, id.indexHash)
        selectNewest.bind(2, text: id)
        defer { selectNewest.reset() }
        guard try selectNewest.step(),
          try text(selectNewest.number(1)).elementsEqual(family.description.utf8)
        else { return nil }
        return try selectNewest.ordinal(0)
      }
      return try upload.flatMap { try resource(FoldedUpload(at: $0), apps: apps) }
    }
  }

  /// The resources of receipts as single uploads see them, all at one moment; nil if a position has no upload. Returns
  /// at least one, and stops once they take this many bytes in memory.
  func answers(
    uploads: some Sequence<FoldedUpload>, apps: AppDirectory, byteCountMax: Int
  ) throws -> [Result<ClientReceipt?, any Error>] {
    try withSnapshot {
      var answers: [Result<ClientReceipt?, any Error>] = []
      var byteCount = 0
      for upload in uploads where answers.isEmpty || byteCount < byteCountMax {
        let answer = Result {
          try resource(upload, apps: apps) ?? signedResource(upload: upload.position, apps: apps)
        }
        if case .success(let receipt?) = answer { byteCount += receipt.body.heldByteCount }
        answers.append(answer)
      }
      return answers
    }
  }

  private func resource(_ upload: FoldedUpload, apps: AppDirectory) throws -> ClientReceipt? {
    let row = selectUpload
    row.bind(1, upload.position)
    defer {
      row.reset()
      keeper.removeAll()
    }
    guard try row.step() else { return nil }
    let family = try text(row.number(1))
    let environment = row.isNull(4) ? nil : row.bytes(4)
    let fraudReason = row.isNull(12) ? nil : try text(row.number(12))
    var resource = ReceiptResource()
    let metadata = row.isNull(10) ? nil : resource.share(row.bytes(10))
    resource.begin()
    resource.add("id", text: row.bytes(0))
    resource.add("style", word: try row.flag(3) ? "transaction" : "unified")
    resource.add("app_family_id", text: family)
    resource.add("bundle_id", text: try text(row.number(2)))
    resource.add("is_fraud", fraudReason != nil)
    resource.add("fraud_reason", text: fraudReason)
    resource.add("environment", word: environment.flatMap(ReceiptResource.environment))
    resource.add("user_identifier", text: row.isNull(8) ? nil : row.bytes(8))
    resource.add("metadata", shared: metadata)
    resource.add("ip_address", text: row.isNull(9) ? nil : row.bytes(9))
    resource.beginArray("in_app_purchases")
    try addPurchases(row, upload, metadata, family, environment, apps, to: &resource)
    resource.endArray()
    resource.add("created_at", instantMs: try row.instant(6))
    resource.add("updated_at", instantMs: try row.instant(7))
    resource.end()
    return ClientReceipt(
      isFraud: fraudReason != nil,
      fraudReason: fraudReason.map { String(decoding: $0, as: UTF8.self) },
      isPending: try row.flag(13), body: resource.finish())
  }

  /// The text of a symbol; loads those that were added since the last read.
  func text(_ symbol: Symbol) throws(DatabaseError) -> Text {
    if !symbols.holds(symbol) { try symbols.load(from: database) }
    return symbols.text(symbol)
  }

  // MARK: Purchases

  private func addPurchases(
    _ row: Statement, _ folded: FoldedUpload, _ metadata: ReceiptResource.SharedValue?,
    _ family: Text, _ environment: Text?, _ apps: AppDirectory, to resource: inout ReceiptResource
  ) throws {
    let familyID = UUID16(String(decoding: family, as: UTF8.self))
    guard let familyID else { return }
    let products = apps.families[familyID]?.products ?? [:]
    if let position = try row.optionalOrdinal(5), let environment {
      let bundle = try text(row.number(2))
      try withReply(row, at: position) { reply, notification in
        var purchases = try ReceiptPurchases(
          reply, notification: notification, family: familyID, environment, receiptBundle: bundle,
          keeper)
        purchases.products = products
        if purchases.hasUndeclaredProduct {
          // Every upload of a receipt holds the same file.
          purchases.filedTypes =
            try folded.filedTypes
            ?? PendingReceipts.file(of: readEvent(folded.position)).map(FoldedUpload.types)
            ?? [:]
        }
        purchases.lastSyncedAtMs = try row.optionalInstant(16)
        try add(purchases, metadata, to: &resource)
      }
    } else if !row.isNull(15) {
      let fallback = PurchaseFallback(
        country: row.isNull(11) ? nil : try text(row.number(11)),
        user: row.isNull(8) ? nil : row.bytes(8), metadata: metadata,
        createdAtMs: try row.instant(6), updatedAtMs: try row.instant(7))
      var purchases = try ReceiptPurchases(
        row.bytes(15), family: familyID, row.bytes(14), receiptBundle: try text(row.number(2)),
        keeper, fallback: fallback)
      purchases.products = products
      try add(purchases, metadata, to: &resource)
    }
  }

  /// Roughly what a purchase adds to the text in addition to its row of the reply.
  private static let purchaseByteCount = 1100

  private func add(
    _ purchases: ReceiptPurchases, _ metadata: ReceiptResource.SharedValue?,
    to resource: inout ReceiptResource
  ) throws {
    let environment = try known(purchases.environment)
    let bundle = try known(purchases.bundle)
    var common = CommonReads(metadata: metadata)
    resource.reserve(
      purchases.all.reduce(0) { $0 + Self.purchaseByteCount + ($1.rows[0].object?.count ?? 0) })
    for purchase in purchases.all {
      try withSale(
        (purchase.keyKind, purchase.key), environment, bundle, &common, &resource
      ) { sale, resource in
        purchases.write(purchase, sale: sale, to: &resource)
      }
    }
  }

  /// What the sales of one response usually have in common, read once.
  struct CommonReads {
    /// That of the response's upload.
    let metadata: ReceiptResource.SharedValue?
    /// By the position that showed a sale first.
    var metadataByPosition: [Position: ReceiptResource.SharedValue?] = [:]
    /// Identifiers by number.
    var users: [Int32: Text] = [:]

    init(metadata: ReceiptResource.SharedValue?) { self.metadata = metadata }
  }

  /// Calls `body` with what the projections know of a sale; with nil if there is none. A purchase without a number
  /// belongs to no sale.
  func withSale(
    _ key: (kind: KeyKind, text: Text), _ environment: Symbol?, _ bundle: Symbol?,
    _ common: inout CommonReads, _ resource: inout ReceiptResource,
    _ body: (SaleFields?, inout ReceiptResource) throws -> Void
  ) throws {
    guard let environment, let bundle else { return try body(nil, &resource) }
    let sale = selectSale
    sale.bind(1, text: key.text)
    sale.bind(2, Int(key.kind.rawValue))
    sale.bind(3, Int(environment))
    sale.bind(4, Int(bundle))
    defer { sale.reset() }
    guard try sale.step() else { return try body(nil, &resource) }
    let fields = SaleFields(
      version: try sale.unsigned(0),
      quantity: try sale.number(1, in: 1...Sale.quantityMax),
      product: try text(sale.number(2)), saleDateMs: try sale.instant(3),
      country: sale.isNull(4) ? nil : try text(sale.number(4)),
      user: try sale.optionalNumber(5).map { try user($0, &common) },
      currency: sale.isNull(6) ? nil : try text(sale.number(6)),
      createdAtMs: try sale.instant(7), updatedAtMs: try sale.instant(8),
      metadata: try metadata(of: try sale.ordinal(9), &common, &resource))
    try body(fields, &resource)
  }

  private func user(
    _ number: Int32, _ common: inout CommonReads
  ) throws(DatabaseError) -> Text {
    if let known = common.users[number] { return known }
    let row = selectUser
    row.bind(1, Int(number))
    defer { row.reset() }
    guard try row.step() else {
      throw DatabaseError(inconsistency: "a sale's user is not in its table")
    }
    let identifier = keeper.keep(Array(row.bytes(0)))
    common.users[number] = identifier
    return identifier
  }

  /// The metadata of the upload that an event is or verifies. A notification may have shown a sale before any upload did:
  /// then that of the response's upload.
  private func metadata(
    of position: Position, _ common: inout CommonReads, _ resource: inout ReceiptResource
  ) throws(DatabaseError) -> ReceiptResource.SharedValue? {
    if let known = common.metadataByPosition[position] { return known }
    let row = selectMetadata
    row.bind(1, position)
    defer { row.reset() }
    var value = common.metadata
    if try row.step() { value = row.isNull(0) ? nil : resource.share(row.bytes(0)) }
    common.metadataByPosition[position] = .some(value)
    return value
  }

  func known(_ text: Text) throws(DatabaseError) -> Symbol? {
    if let symbol = symbols.known(text) { return symbol }
    try symbols.load(from: database)
    return symbols.known(text)
  }

  /// Calls `body` with what is kept of a receipt's reply, otherwise with the reply that its event holds and the version 1
  /// notification that delivered it.
  private func withReply(
    _ row: Statement, at position: Position, _ body: (Text, _ notification: Text?) throws -> Void
  ) throws {
    if let reply = recent.reply(at: position) { return try withText(reply) { try body($0, nil) } }
    selectReply.bind(1, position)
    selectReply.bind(2, row.integer(17))
    defer { selectReply.reset() }
    if try selectReply.step() {
      return try withText(try packing.unpacked(selectReply.bytes(0))) { try body($0, nil) }
    }
    try readEvent(position).withUnsafeBytes { bytes in
      guard let event = EventLine(bytes), EventType(event.type) == .receiptVerified else {
        throw ProjectionError.missingEvent(position: position, names: position)
      }
      let view: ReceiptVerifiedView
      do throws(EventError) {
        try EventType.receiptVerified.checkVersion(event.version)
        view = try ReceiptVerifiedView(data: event.data)
      } catch { throw ProjectionError.event(position: position, error) }
      if let reply = view.reply { try body(reply, view.notification) }
    }
  }
}
