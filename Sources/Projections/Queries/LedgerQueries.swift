// Queries about one receipt, one event or one user.
import AppStore
import Base
package import Ledger
import Revenue

/// Queries of one generation of the projections, all in one read transaction.
package final class LedgerQueries {
  let database: Database
  let arena = TextArena()
  let symbols: StringInterner
  let table: SaleTable
  /// The sales queried so far.
  let store: SaleStore
  /// Reads an event's line.
  let readEvent: (Position) throws -> [UInt8]
  private var loadedPending: PendingSales?
  lazy var subscriptionQueries = SubscriptionQueries(database)

  package init(
    _ database: Database, readEvent: @escaping (Position) throws -> [UInt8]
  ) throws {
    self.database = database
    self.readEvent = readEvent
    symbols = StringInterner(arena)
    table = SaleTable(database, symbols, isFresh: false)
    store = SaleStore(arena, source: table)
    try database.execute("BEGIN")
    try symbols.load(from: database)
  }

  deinit { try? database.execute("COMMIT") }

  /// The sales that the App Store has not confirmed yet; nil if no receipt is pending.
  func pending() throws -> PendingSales? {
    if let loadedPending { return loadedPending }
    guard try database.integer("SELECT 1 FROM pending_receipts LIMIT 1") != nil else { return nil }
    loadedPending = try PendingSales(database, symbols, arena)
    return loadedPending
  }

  /// SQL: selects the receipt with an id, by the index on its hash. `bind(receipt:to:)` sets its two parameters.
  static let isReceipt = "r.receipt_hash = ?1 AND r.receipt_id = ?2"

  static func bind(receipt id: String, to statement: Statement) {
    statement.bind(1, withText(id) { $0.indexHash })
    statement.bind(2, text: id)
  }

  func text(_ row: Statement, symbolAt index: Int32) throws(DatabaseError) -> String? {
    row.isNull(index) ? nil : symbols.string(try row.symbol(index))
  }

  // MARK: Receipts

  /// The receipt with this id; nil if there is none.
  package func receipt(id: String) throws -> ReceiptDetail? {
    let row = try database.prepare(
      """
      SELECT r.receipt_id, r.app_family, r.bundle, r.style, \(PendingEnvironment.ofReceiptSQL), r.state,
      r.fraud_reason, r.country, u.user_identifier, r.first_position, r.last_position,
      r.reply_position, r.created_at_ms, r.updated_at_ms
      FROM receipts r LEFT JOIN users u ON u.id = r.user
      LEFT JOIN pending_receipts q ON q.receipt = r.id WHERE \(Self.isReceipt)
      """)
    Self.bind(receipt: id, to: row)
    guard try row.step() else { return nil }
    return ReceiptDetail(
      receiptID: row.text(0), appFamilyID: try text(row, symbolAt: 1) ?? "",
      bundleID: try text(row, symbolAt: 2) ?? "",
      style: try row.flag(3) ? "transaction" : "unified", environment: row.optionalText(4),
      state: "\(try row.code(5, as: ReceiptState.self).word)",
      fraudReason: try text(row, symbolAt: 6), countryCode: try text(row, symbolAt: 7),
      userIdentifier: row.optionalText(8), firstPosition: try row.ordinal(9),
      lastPosition: try row.ordinal(10), replyPosition: try row.optionalOrdinal(11),
      createdAtMs: try row.instant(12), updatedAtMs: try row.instant(13))
  }

  /// The id of the receipt that an upload contains; nil if there is no such upload of a receipt.
  package func receiptID(ofUpload position: Position) throws -> String? {
    try upload(at: position)?.receiptID
  }

  // MARK: Uploads and verifications

  /// The upload at a position; nil if there is none.
  package func upload(at position: Position) throws -> UploadDetail? {
    try uploads("p.position = ?") { $0.bind(1, position) }.first
  }

  /// The uploads of signed transactions with an id, in order.
  package func uploads(ofID id: String) throws -> [UploadDetail] {
    try uploads("g.upload_hash = ?1 AND g.upload_id = ?2") { Self.bind(receipt: id, to: $0) }
  }

  /// The uploads of a receipt, in order.
  package func uploads(ofReceipt id: String) throws -> [UploadDetail] {
    // All events of a receipt lie between its first and last position.
    try uploads(
      "\(Self.isReceipt) AND p.position BETWEEN r.first_position AND r.last_position"
    ) { Self.bind(receipt: id, to: $0) }
  }

  func uploads(_ condition: String, _ bind: (Statement) -> Void) throws -> [UploadDetail] {
    let rows = try database.prepare(
      """
      SELECT p.position, r.receipt_id, p.occurred_at_ms, p.country, u.user_identifier, p.line,
      g.upload_id, g.transactions, f.fraud_reason
      FROM uploads p LEFT JOIN receipts r ON r.id = p.receipt
      LEFT JOIN signed_uploads g ON g.position = p.position AND p.receipt IS NULL
      LEFT JOIN users u ON u.id = p.user LEFT JOIN upload_verdicts f ON f.upload = p.position
      WHERE \(condition) ORDER BY p.position
      """)
    bind(rows)
    var result: [UploadDetail] = []
    while try rows.step() {
      result.append(
        UploadDetail(
          position: try rows.ordinal(0), receiptID: rows.optionalText(1),
          uploadID: rows.optionalText(6), transactionCount: try rows.optionalOrdinal(7),
          fraudReason: try text(rows, symbolAt: 8), occurredAtMs: try rows.instant(2),
          countryCode: try text(rows, symbolAt: 3), userIdentifier: rows.optionalText(4),
          line: rows.optionalInteger(5)))
    }
    return result
  }

  /// The verification at a position; nil if there is none.
  package func verification(at position: Position) throws -> VerificationDetail? {
    try verifications("v.position = ?") { $0.bind(1, position) }.first
  }

  /// The verifications of a receipt, in order.
  package func verifications(ofReceipt id: String) throws -> [VerificationDetail] {
    try verifications(
      "\(Self.isReceipt) AND v.position BETWEEN r.first_position AND r.last_position"
    ) { Self.bind(receipt: id, to: $0) }
  }

  /// The verifications of an upload, in order.
  package func verifications(ofUpload position: Position) throws -> [VerificationDetail] {
    // These lie between the upload and the last event of its receipt.
    try verifications(
      """
      v.upload = ?1 AND v.position BETWEEN ?1 AND (SELECT last_position FROM receipts
      WHERE id = (SELECT receipt FROM uploads WHERE position = ?1))
      """
    ) { $0.bind(1, position) }
  }

  func verifications(
    _ condition: String, _ bind: (Statement) -> Void
  ) throws -> [VerificationDetail] {
    let rows = try database.prepare(
      """
      SELECT v.position, v.upload, r.receipt_id, v.authority, v.outcome, v.environment, v.status,
      v.reason, v.occurred_at_ms, v.reply_position
      FROM verifications v JOIN receipts r ON r.id = v.receipt
      WHERE \(condition) ORDER BY v.position
      """)
    bind(rows)
    var result: [VerificationDetail] = []
    while try rows.step() {
      let authority: Authority = try rows.flag(3) ? .appStore : .local
      let outcome: Outcome =
        switch try rows.code(4, as: OutcomeCode.self) {
        case .valid: .valid
        case .invalid: .invalid
        case .unreachable: .unreachable
        }
      result.append(
        VerificationDetail(
          position: try rows.ordinal(0), upload: try rows.ordinal(1), receiptID: rows.text(2),
          authority: authority.rawValue, outcome: outcome.rawValue,
          environment: try text(rows, symbolAt: 5) ?? "", status: rows.optionalInteger(6),
          reason: rows.optionalText(7), occurredAtMs: try rows.instant(8),
          replyPosition: try rows.optionalOrdinal(9)))
    }
    return result
  }

  // MARK: Users

  /// Everything known about a user; nil if neither an upload nor a sale names the user.
  package func user(_ identifier: String) throws -> UserDetail? {
    let row = try database.prepare(
      "SELECT id, first_seen_at_ms, last_seen_at_ms FROM users WHERE user_identifier = ?")
    let identifier = TokenUser.canonical(user: identifier)
    row.bind(1, text: identifier)
    guard try row.step() else { return nil }
    let number = row.integer(0)
    let sales =
      try sales("user = ?") { $0.bind(1, number) } + pendingSales { $0.user == Int32(number) }
    // A user known by a token only, all of whose sales now belong to users that uploads name.
    if row.isNull(1), sales.isEmpty { return nil }
    return UserDetail(
      userIdentifier: identifier, firstSeenAtMs: try row.optionalInstant(1),
      lastSeenAtMs: try row.optionalInstant(2),
      uploads: try uploads("p.user = ?") { $0.bind(1, number) },
      verifications: try verifications(
        """
        v.receipt IN (SELECT receipt FROM uploads WHERE user = ?1)
        AND v.upload IN (SELECT position FROM uploads WHERE user = ?1)
        """
      ) { $0.bind(1, number) },
      notifications: try notifications(about: sales), sales: sales)
  }

  // MARK: Exceptions and declarations

  /// The exceptions first found at a position.
  package func exceptions(at position: Position) throws -> [ExceptionDetail] {
    try exceptions("e.position = ?") { $0.bind(1, position) }
  }

  func exceptions(_ condition: String, _ bind: (Statement) -> Void) throws -> [ExceptionDetail] {
    let rows = try database.prepare(
      """
      SELECT e.type, s.sale_key, s.product, s.transaction_id, e.product_id, e.transaction_id,
      e.detail, e.sale, e.position
      FROM exceptions e LEFT JOIN sales s ON s.id = e.sale WHERE \(condition)
      ORDER BY e.position, e.type, e.rowid
      """)
    bind(rows)
    var result: [ExceptionDetail] = []
    while try rows.step() {
      let type: ExceptionType = try rows.code(0)
      let isOfSale = !rows.isNull(7)
      let product = isOfSale ? try text(rows, symbolAt: 2) : rows.optionalText(4)
      let transaction = rows.optionalText(isOfSale ? 3 : 5)
      result.append(
        ExceptionDetail(
          exception: type.word, saleKey: rows.optionalText(1),
          productID: product == "" ? nil : product,
          transactionID: transaction == "" ? nil : transaction, detail: rows.text(6),
          position: try rows.ordinal(8)))
    }
    return result
  }

  /// How many entries a declaration has, and the event that withdrew it.
  private func declared(
    at position: Position
  ) throws -> (entries: Int, withdrawnBy: Position?)? {
    let row = try database.prepare(
      "SELECT entries, withdrawn_by FROM declarations WHERE position = ?")
    row.bind(1, position)
    guard try row.step() else { return nil }
    return (try row.ordinal(0), row.isNull(1) ? nil : try row.ordinal(1))
  }

  /// The effect of the registration or declaration at a position; nil if the event is of another type.
  package func declaration(_ type: EventType, at position: Position) throws -> DeclarationDetail? {
    func count(_ sql: String) throws -> Int {
      let row = try database.prepare(sql)
      row.bind(1, position)
      return try row.step() ? try row.ordinal(0) : 0
    }
    switch type {
    case .appRegistered:
      return .app(
        receipts: try count(
          """
          SELECT count(*) FROM receipts WHERE app_family = (SELECT s.id FROM apps a
          JOIN symbols s ON s.text = a.app_family_id WHERE a.position = ?)
          """))
    case .pricesDeclared:
      guard let known = try declared(at: position) else { return nil }
      return .prices(
        entries: known.entries,
        pricedSales: try count(
          """
          SELECT count(*) FROM sales WHERE price_position = ?
          AND price_basis = \(PriceBasis.priceList.rawValue)
          """), withdrawnBy: known.withdrawnBy)
    case .ratesDeclared:
      let row = try database.prepare(
        "SELECT count(DISTINCT day), min(day), max(day) FROM rates WHERE position = ?")
      row.bind(1, position)
      guard let known = try declared(at: position), try row.step() else { return nil }
      func day(_ index: Int32) throws(DatabaseError) -> String? {
        row.isNull(index) ? nil : "\(CivilDate(dayNumber: try row.day(index)))"
      }
      return .rates(
        rates: known.entries, days: try row.ordinal(0), firstDay: try day(1),
        lastDay: try day(2), withdrawnBy: known.withdrawnBy)
    case .pricesWithdrawn, .ratesWithdrawn:
      let row = try database.prepare(
        "SELECT position, entries FROM declarations WHERE withdrawn_by = ?")
      row.bind(1, position)
      // The first withdrawal of a declaration counts; later ones have no row.
      guard try row.step() else { return nil }
      return .withdrawal(of: try row.ordinal(0), entries: try row.ordinal(1))
    case .settlementMapped:
      let row = try database.prepare(
        "SELECT sku, product_id FROM settlement_maps WHERE position = ?")
      row.bind(1, position)
      return try row.step()
        ? .mapping(sku: row.text(0), productID: row.optionalText(1)) : nil
    case .settlementDeclared:
      let row = try database.prepare(
        "SELECT kind, month, region, part, parts FROM settlement_files WHERE position = ?")
      row.bind(1, position)
      guard try row.step() else { return nil }
      return .settlement(
        kind: row.text(0),
        SettlementIdentity(month: row.text(1), region: row.optionalText(2)),
        part: try row.ordinal(3), parts: try row.ordinal(4))
    default: return nil
    }
  }
}
