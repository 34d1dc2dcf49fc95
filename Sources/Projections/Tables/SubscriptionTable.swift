// The tables `subscriptions` (current period and newest renewal information, rule R13) and `statement_times`.
import Ledger
package import Revenue

/// Writes the subscriptions of a store, and fetches those of earlier runs.
package final class SubscriptionTable: SubscriptionSource {
  private let database: Database
  private var target: RowTarget?
  private var turnTarget: RowTarget?
  /// How many subscriptions `storeSettled` has processed.
  private var settledCount = 0
  private lazy var selectByKey = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT * FROM subscriptions WHERE original_hash = ? AND original_transaction_id = ?
      AND environment = ? AND bundle = ?
      """)
  }

  private lazy var selectOfAccount = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT * FROM subscriptions INDEXED BY subscriptions_account
      WHERE account = ? AND account IS NOT NULL AND NOT \(UserBasis.isByUploadSQL("user_basis"))
      """)
  }

  package init(_ database: Database) { self.database = database }

  /// The number of the next subscription.
  package static func nextID(_ database: Database) throws(DatabaseError) -> Int {
    Int(try database.nextNumber(of: "subscriptions"))
  }

  // MARK: Fetching

  package func fetch(
    _ key: SubscriptionKey, into store: SubscriptionStore
  ) throws(DatabaseError) {
    let statement = try selectByKey.get()
    defer { statement.reset() }
    statement.bind(1, key.original.indexHash)
    statement.bind(2, text: key.original)
    statement.bind(3, Int(key.environment))
    statement.bind(4, Int(key.bundle))
    if try statement.step() { _ = store.takeIn(try Self.subscription(statement, store.arena)) }
  }

  package func fetchSubscriptions(
    ofAccount account: Int32, into store: SubscriptionStore
  ) throws(DatabaseError) {
    let statement = try selectOfAccount.get()
    defer { statement.reset() }
    statement.bind(1, Int(account))
    while try statement.step() {
      let subscription = try Self.subscription(statement, store.arena)
      if store.known(subscription.key) == nil { _ = store.takeIn(subscription) }
    }
  }

  /// All subscriptions in numerical order, with texts in `arena`.
  func all(_ arena: TextArena) throws(DatabaseError) -> [Subscription] {
    let rows = try database.prepare("SELECT * FROM subscriptions ORDER BY id")
    var result: [Subscription] = []
    while try rows.step() { result.append(try Self.subscription(rows, arena)) }
    return result
  }

  /// The sales of current periods that some statement called upgraded, by number.
  func upgradedSales() throws(DatabaseError) -> Set<Int> {
    let rows = try database.prepare(
      "SELECT c.sale FROM subscriptions c JOIN sales s ON s.id = c.sale WHERE s.is_upgraded = 1")
    var sales: Set<Int> = []
    while try rows.step() { sales.insert(try rows.ordinal(0)) }
    return sales
  }

  private static func subscription(
    _ row: Statement, _ arena: TextArena
  ) throws(DatabaseError) -> Subscription {
    var subscription = Subscription(
      id: try row.ordinal(0), environment: try row.number(1), bundle: try row.number(2),
      original: arena.keep(row.bytes(4)), firstPosition: -1)
    subscription.country = try row.symbol(5)
    subscription.user = try row.optionalNumber(6) ?? -1
    subscription.isCountrySigned = try row.flag(7)
    subscription.userBasis = try row.code(8)
    subscription.userPosition = try row.optionalOrdinal(9) ?? -1
    subscription.isTakenOver = try row.flag(10)
    if let position = row.optionalInteger(19) {
      subscription.period = Subscription.Period(
        sale: try row.ordinal(11), product: try row.number(12),
        startedAtMs: try row.instant(13), startMs: try row.instant(14),
        expiresAtMs: try row.instant(15),
        offer: try row.code(16),
        revokedAtMs: try row.optionalInstant(17),
        statementMs: try row.optionalInstant(18) ?? .min, position: Int(position))
    }
    if let position = row.optionalInteger(21) {
      var renewal = Subscription.Renewal(
        statementMs: try row.optionalInstant(20) ?? .min, position: Int(position))
      renewal.isAutoRenewing = try row.optionalFlag(22)
      renewal.product = try row.symbol(23)
      renewal.expirationIntent = try row.symbol(24)
      renewal.isInBillingRetry = try row.optionalFlag(25)
      renewal.gracePeriodExpiresAtMs = try row.optionalInstant(26)
      subscription.renewal = renewal
    }
    subscription.account = try row.optionalNumber(27) ?? -1
    subscription.token = row.optionalInteger(28) ?? 0
    subscription.tokenUser = try row.optionalNumber(29) ?? -1
    subscription.tokenPosition = try row.optionalOrdinal(30) ?? -1
    subscription.isChanged = false
    return subscription
  }

  // MARK: Writing

  /// Writes the changed subscriptions.
  package func store(_ store: SubscriptionStore, _ rows: RowWriter) throws(DatabaseError) {
    for place in store.subscriptions.indices where store.subscriptions[place].isChanged {
      try write(place, store, rows)
    }
    try writeTurns(store, rows)
  }

  /// Writes the transitions that were found since the last call. They never change.
  private func writeTurns(
    _ store: SubscriptionStore, _ rows: RowWriter
  ) throws(DatabaseError) {
    for turn in store.takeTurns() {
      if turnTarget == nil {
        // A notification may report the same transition by its type and by its renewal information.
        turnTarget = try rows.target("INSERT OR IGNORE INTO subscription_turns", valueCount: 7)
      }
      guard let turnTarget else { return }
      rows.begin(turnTarget)
      rows.add(turn.position)
      rows.add(Int(turn.kind.rawValue))
      rows.add(turn.subscription)
      rows.add(turn.expiresAtMs)
      rows.add(symbol: turn.expirationIntent)
      rows.add(turn.gracePeriodExpiresAtMs)
      rows.add(turn.statementMs)
      try rows.end()
    }
  }

  /// Writes, in order, the subscriptions first named before a position that have not changed since.
  func storeSettled(
    _ store: SubscriptionStore, before position: Position, _ rows: RowWriter
  ) throws(DatabaseError) {
    try writeTurns(store, rows)
    while settledCount < store.subscriptions.count,
      store.subscriptions[settledCount].firstPosition < position
    {
      let place = settledCount
      settledCount += 1
      if store.subscriptions[place].updatedPosition >= position { continue }
      try write(place, store, rows)
    }
  }

  /// Rewrites subscriptions that have changed since they were written, but not since a position.
  func storeAgain(
    _ store: SubscriptionStore, before position: Position, _ rows: RowWriter
  ) throws(DatabaseError) {
    for place in 0..<settledCount {
      let subscription = store.subscriptions[place]
      guard subscription.isChanged, subscription.updatedPosition < position else { continue }
      try write(place, store, rows)
    }
  }

  private static let columnCount = 31

  private func write(
    _ place: Int, _ store: SubscriptionStore, _ rows: RowWriter
  ) throws(DatabaseError) {
    let subscription = store.subscriptions[place]
    rows.begin(try target(rows))
    rows.add(subscription.id)
    rows.add(Int(subscription.environment))
    rows.add(Int(subscription.bundle))
    rows.add(subscription.original.indexHash)
    rows.add(kept: subscription.original)
    rows.add(symbol: subscription.country)
    rows.add(symbol: subscription.user)
    rows.add(subscription.isCountrySigned ? 1 : 0)
    rows.add(Int(subscription.userBasis.rawValue))
    rows.add(subscription.userPosition < 0 ? nil : Int64(subscription.userPosition))
    rows.add(subscription.isTakenOver ? 1 : 0)
    add(subscription.period, rows)
    add(subscription.renewal, rows)
    rows.add(symbol: subscription.account)
    rows.add(subscription.token == 0 ? nil : subscription.token)
    rows.add(symbol: subscription.tokenUser)
    rows.add(position: subscription.tokenPosition)
    try rows.end()
    store.update(place) { $0.isChanged = false }
  }

  private func add(_ period: Subscription.Period?, _ rows: RowWriter) {
    guard let period else {
      for _ in 0..<9 { rows.add(Int64?.none) }
      return
    }
    rows.add(period.sale)
    rows.add(Int(period.product))
    rows.add(period.startedAtMs)
    rows.add(period.startMs)
    rows.add(period.expiresAtMs)
    rows.add(Int(period.offer.rawValue))
    rows.add(period.revokedAtMs)
    rows.add(period.statementMs == .min ? nil : period.statementMs)
    rows.add(period.position)
  }

  private func add(_ renewal: Subscription.Renewal?, _ rows: RowWriter) {
    guard let renewal else {
      for _ in 0..<7 { rows.add(Int64?.none) }
      return
    }
    func flag(_ value: Bool?) -> Int64? { value.map { $0 ? 1 : 0 } }
    rows.add(renewal.statementMs == .min ? nil : renewal.statementMs)
    rows.add(renewal.position)
    rows.add(flag(renewal.isAutoRenewing))
    rows.add(symbol: renewal.product)
    rows.add(symbol: renewal.expirationIntent)
    rows.add(flag(renewal.isInBillingRetry))
    rows.add(renewal.gracePeriodExpiresAtMs)
  }

  private func target(_ rows: RowWriter) throws(DatabaseError) -> RowTarget {
    if let target { return target }
    let made = try rows.target(
      upserting: "subscriptions", valueCount: Self.columnCount, key: "id",
      changing: Self.changing)
    target = made
    return made
  }

  /// All columns but those that identify a subscription.
  private static let changing = [
    "country", "user", "is_country_signed", "user_basis", "user_position", "is_taken_over",
    "sale", "product", "started_at_ms", "current_period_start_at_ms", "expires_at_ms", "offer",
    "revoked_at_ms", "statement_ms", "statement_position", "renewal_ms",
    "renewal_position", "auto_renew", "auto_renew_product", "expiration_intent", "in_billing_retry",
    "grace_period_expires_at_ms", "account", "token", "token_user", "token_position",
  ]
}

// MARK: - Times of statements

/// The times of the newest statements about a sale (rules R12 and R13), apart from the sale's row because nearly every
/// statement changes them. Epoch milliseconds; the minimum if no such statement had a time.
package struct StatementTime: Equatable, SaleRecord {
  var newestReplyMs: Int64
  /// The time of the event with that reply.
  var newestReplyEventMs: Int64
  var newestSignedMs: Int64
  /// The time of the statement that gives the end of the sale's period.
  var periodEndMs: Int64

  package init(
    newestReplyMs: Int64, newestReplyEventMs: Int64, newestSignedMs: Int64, periodEndMs: Int64
  ) {
    (self.newestReplyMs, self.newestReplyEventMs) = (newestReplyMs, newestReplyEventMs)
    (self.newestSignedMs, self.periodEndMs) = (newestSignedMs, periodEndMs)
  }

  init(_ sale: Sale) {
    self.init(
      newestReplyMs: sale.newestReplyMs, newestReplyEventMs: sale.newestReplyEventMs,
      newestSignedMs: sale.newestSignedMs, periodEndMs: sale.periodEndStatementMs)
  }

  // MARK: As bytes

  package static let table: StaticString = "statement_times"
  package static let byteCount = 32
  /// Small, because a catch-up rewrites the rows of all sales that it touches.
  package static let rowCapacity = 64

  package func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: newestReplyMs.littleEndian, as: Int64.self)
    bytes.storeBytes(of: newestSignedMs.littleEndian, toByteOffset: 8, as: Int64.self)
    bytes.storeBytes(of: periodEndMs.littleEndian, toByteOffset: 16, as: Int64.self)
    bytes.storeBytes(of: newestReplyEventMs.littleEndian, toByteOffset: 24, as: Int64.self)
  }

  package init?(_ bytes: UnsafeRawPointer) {
    newestReplyMs = Int64(littleEndian: bytes.loadUnaligned(as: Int64.self))
    newestSignedMs = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
    periodEndMs = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: Int64.self))
    newestReplyEventMs = Int64(
      littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: Int64.self))
  }

  /// The bytes of the times of a row of `sales`.
  static let ofSaleSQL = """
    (SELECT substr(records, sales.id % \(rowCapacity) * \(byteCount) + 1, \(byteCount))
    FROM \(table) WHERE statement_times.id = sales.id / \(rowCapacity))
    """
}
