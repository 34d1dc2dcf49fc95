// The sales of one user, newest first, as the tables hold them.
import Ledger
import Revenue

/// A sale with the fields that queries about a user need. Symbols belong to the database.
struct UserSale {
  var number: Int64
  var environment: Symbol
  var bundle: Symbol
  var keyKind: KeyKind
  var key: [UInt8]
  var product: Symbol
  var quantity: Int64
  /// Epoch milliseconds.
  var saleDateMs: Int64
  var kind: SaleKind
  var transactionID: [UInt8]
  var originalTransactionID: [UInt8]
  var firstPosition: Position
  var country: Symbol
  var countryPosition: Position?
  var userPosition: Position?
  var unitPriceMicros: Int64?
  var currency: Symbol
  var priceBasis: PriceBasis
  var pricePosition: Position?
  var isUpgraded: Bool
  /// Whether anything of it is refunded.
  var cancellation: CancellationState
  var isTransactionAlias: Bool
  /// For the whole quantity.
  var amountMicros: Int64?
  /// When the paid period ends, in epoch milliseconds; nil if there is none.
  var periodEndMs: Int64?
  var flags: SaleFlags

  /// The events that it is based on, sorted, without those of Returns and Reversals.
  var positions: [Position] {
    Set([firstPosition, countryPosition, userPosition, pricePosition].compactMap { $0 }).sorted()
  }

  /// The place in a list of sales after which the list continues.
  var place: PurchaseCursor { PurchaseCursor(saleDateMs: saleDateMs, number: number) }
}

/// A place in the list of a user's sales, which is sorted by date and number, the greatest first.
package struct PurchaseCursor: Comparable, Sendable {
  /// Epoch milliseconds.
  var saleDateMs: Int64
  /// The sale's number.
  var number: Int64

  /// Before all sales.
  static let start = PurchaseCursor(saleDateMs: .max, number: .max)

  init(saleDateMs: Int64, number: Int64) {
    (self.saleDateMs, self.number) = (saleDateMs, number)
  }

  package static func < (left: PurchaseCursor, right: PurchaseCursor) -> Bool {
    (left.saleDateMs, left.number) < (right.saleDateMs, right.number)
  }

  // MARK: As text

  private static let digits = 16

  /// Its opaque text: 32 hexadecimal digits.
  package var text: String { Self.hex(saleDateMs) + Self.hex(number) }

  /// Parses the text that `text` produces; nil for any other.
  package init?(_ text: String) {
    guard text.utf8.count == 2 * Self.digits,
      text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }),
      let date = UInt64(text.prefix(Self.digits), radix: 16),
      let number = UInt64(text.dropFirst(Self.digits), radix: 16)
    else { return nil }
    self.init(saleDateMs: Int64(bitPattern: date), number: Int64(bitPattern: number))
  }

  private static func hex(_ value: Int64) -> String {
    let text = String(UInt64(bitPattern: value), radix: 16)
    return String(repeating: "0", count: digits - text.count) + text
  }
}

/// The refunds of a sale.
struct SaleReturns {
  /// Positive: how much of quantity and amount is refunded now.
  var quantity: Int64 = 0
  var amountMicros: Int64 = 0
  /// The date of the last Return, in epoch milliseconds; nil if nothing is refunded now.
  var returnedAtMs: Int64?
  /// The refunded share of the quantity.
  var share = RefundShare.Kind.none
  /// The events of all Returns and Reversals.
  var positions: [Position] = []
}

/// Reads the sales of users from one generation. Used by one thread at a time.
struct UserSales {
  private let selectUser: Statement
  private let selectSales: Statement
  private let selectPeriods: Statement
  private let selectUnclaimed: Statement
  private let selectLines: Statement
  private let selectAliases: Statement

  /// The columns of `UserSale`, in its order.
  static let columns = """
    s.id, s.environment, s.bundle, s.key_kind, s.sale_key, s.product, s.quantity, s.sale_date_ms, s.kind, \
    s.transaction_id, s.original_transaction_id, s.first_position, s.country, s.country_position, \
    s.user_position, s.unit_price_micros, s.currency, s.price_basis, s.price_position, s.is_upgraded, \
    s.cancellation_state, s.is_transaction_alias, s.amount_micros, s.period_end_ms, \
    s.flags
    """

  /// Whether a sale is a period of a subscription.
  private static let isPeriod =
    "s.chain_hash = ?1 AND s.original_transaction_id = ?2 AND s.environment = ?3 AND s.bundle = ?4"

  init(_ database: Database) throws(DatabaseError) {
    selectUser = try database.prepare("SELECT id FROM users WHERE user_identifier = ?")
    selectSales = try database.prepare(
      """
      SELECT \(Self.columns) FROM sales s INDEXED BY sales_user
      WHERE s.user = ?1 AND (s.sale_date_ms, s.id) < (?2, ?3)
      ORDER BY s.sale_date_ms DESC, s.id DESC
      """)
    selectPeriods = try database.prepare(
      "SELECT \(Self.columns) FROM sales s INDEXED BY sales_chain_hash WHERE \(Self.isPeriod) LIMIT ?5"
    )
    selectUnclaimed = try database.prepare(
      """
      SELECT \(Self.columns) FROM sales s INDEXED BY sales_chain_hash WHERE \(Self.isPeriod)
      AND (s.sale_date_ms, s.id) < (?6, ?7) AND s.user IS NOT ?8
      AND (s.user IS NULL OR (SELECT uploads FROM users WHERE id = s.user) = 0)
      ORDER BY s.sale_date_ms DESC, s.id DESC LIMIT ?5
      """)
    selectLines = try database.prepare(
      """
      SELECT line, date_ms, position, quantity, amount_micros, share FROM later_lines
      WHERE sale = ? ORDER BY ordinal
      """)
    selectAliases = try database.prepare(
      "SELECT transaction_id FROM sale_transactions WHERE sale = ? ORDER BY transaction_id LIMIT ?")
  }

  /// The number of a user; nil for an unknown one.
  func number(ofUser identifier: String) throws(DatabaseError) -> Int64? {
    selectUser.bind(1, text: TokenUser.canonical(user: identifier))
    defer { selectUser.reset() }
    return try selectUser.step() ? selectUser.integer(0) : nil
  }

  /// Calls `body` with the sales of a user after a place, newest first, until it returns false.
  func forEach(
    ofUser user: Int64, after place: PurchaseCursor, _ body: (UserSale) throws -> Bool
  ) throws {
    let row = selectSales
    row.bind(1, user)
    row.bind(2, place.saleDateMs)
    row.bind(3, place.number)
    defer { row.reset() }
    while try row.step() {
      guard try body(try Self.sale(row)) else { return }
    }
  }

  /// Calls `body` with the sales of a subscription, in no order, at most `limit`.
  func forEach(
    of subscription: SubscriptionDetail, _ symbols: StringInterner, limit: Int,
    _ body: (UserSale) throws -> Void
  ) throws {
    try forEach(selectPeriods, of: subscription, symbols, limit: limit, body)
  }

  /// Calls `body` with the sales of a subscription after a place that no upload of a user shows, the newest first, at
  /// most `limit`: they have no user, or one known by the App Store's token.
  /// - Parameter user: whose sales are left out.
  func forEachUnclaimed(
    of subscription: SubscriptionDetail, _ symbols: StringInterner, besides user: Int64,
    after place: PurchaseCursor, limit: Int, _ body: (UserSale) throws -> Void
  ) throws {
    selectUnclaimed.bind(6, place.saleDateMs)
    selectUnclaimed.bind(7, place.number)
    selectUnclaimed.bind(8, user)
    try forEach(selectUnclaimed, of: subscription, symbols, limit: limit, body)
  }

  private func forEach(
    _ row: Statement, of subscription: SubscriptionDetail, _ symbols: StringInterner, limit: Int,
    _ body: (UserSale) throws -> Void
  ) throws {
    guard let environment = symbols.known(subscription.environment),
      let bundle = symbols.known(subscription.bundleID)
    else { return }
    try withText(subscription.originalTransactionID) { original in
      row.bind(1, original.indexHash)
      row.bind(2, text: original)
      row.bind(3, Int(environment))
      row.bind(4, Int(bundle))
      row.bind(5, limit)
      defer { row.reset() }
      while try row.step() { try body(try Self.sale(row)) }
    }
  }

  private static func sale(_ row: Statement) throws(DatabaseError) -> UserSale {
    UserSale(
      number: row.integer(0), environment: try row.number(1), bundle: try row.number(2),
      keyKind: try row.code(3), key: Array(row.bytes(4)),
      product: try row.number(5), quantity: try row.number(6, in: 1...Sale.quantityMax),
      saleDateMs: try row.instant(7),
      kind: try row.code(8),
      transactionID: Array(row.bytes(9)), originalTransactionID: Array(row.bytes(10)),
      firstPosition: try row.ordinal(11),
      country: try row.symbol(12),
      countryPosition: try row.optionalOrdinal(13),
      userPosition: try row.optionalOrdinal(14),
      unitPriceMicros: try row.optionalUnsigned(15),
      currency: try row.symbol(16),
      priceBasis: try row.code(17),
      pricePosition: try row.optionalOrdinal(18),
      isUpgraded: try row.flag(19),
      cancellation: try row.code(20),
      isTransactionAlias: try row.flag(21), amountMicros: try row.optionalUnsigned(22),
      periodEndMs: try row.optionalInstant(23), flags: SaleFlags(rawValue: try row.number(24)))
  }

  /// The Returns and Reversals of a sale, summed up.
  func returns(of sale: UserSale) throws(DatabaseError) -> SaleReturns {
    let row = selectLines
    row.bind(1, sale.number)
    defer { row.reset() }
    var returns = SaleReturns()
    while try row.step() {
      returns.quantity -= row.integer(3)
      returns.amountMicros -= row.optionalInteger(4) ?? 0
      if row.integer(0) == LineType.return.rawValue { returns.returnedAtMs = row.integer(1) }
      returns.share = try row.share(5).fraction(ofQuantity: sale.quantity).kind
      returns.positions.append(try row.ordinal(2))
    }
    if sale.cancellation != .returned { returns.returnedAtMs = nil }
    return returns
  }

  /// The transaction ids of a sale, sorted, at most `limit` and its own.
  func transactionIDs(of sale: UserSale, limit: Int) throws(DatabaseError) -> [[UInt8]] {
    let row = selectAliases
    row.bind(1, sale.number)
    row.bind(2, limit)
    defer { row.reset() }
    var ids = sale.isTransactionAlias ? [sale.transactionID] : []
    while try row.step() { ids.append(Array(row.bytes(0))) }
    return ids.sorted { $0.lexicographicallyPrecedes($1) }
  }
}
