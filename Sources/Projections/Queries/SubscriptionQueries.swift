// Queries about subscriptions (rule R13): by user, and by original transaction.
package import Ledger
package import Revenue

/// A subscription according to the events. Times are epoch milliseconds.
package struct SubscriptionDetail: Equatable, Sendable {
  package var environment: String
  package var bundleID: String
  package var originalTransactionID: String
  package var productID: String
  package var userIdentifier: String?
  /// `ZZ` if unknown.
  package var countryCode: String
  package var startedAtMs: Int64
  /// What determines the status: the current period, its revocation and the grace period.
  package var terms: SubscriptionTerms
  /// The time of the current statement; nil if it has none.
  package var statementMs: Int64?
  /// The event of the current statement.
  package var statementPosition: Position
  /// The event of the newest renewal information; nil if there is none.
  package var renewalPosition: Position?
  package var isAutoRenewing: Bool?
  package var autoRenewProductID: String?
  package var expirationIntent: String?
  /// The unit price of the current period's sale; nil for trials, family-shared and unpriced ones.
  package var unitPriceMicros: Int64?
  package var currency: Currency?
  package var offer: Subscription.Offer
  /// The number of the current period's sale.
  package var sale: Int

  package init(
    environment: String, bundleID: String, originalTransactionID: String, productID: String,
    userIdentifier: String? = nil, countryCode: String, startedAtMs: Int64,
    terms: SubscriptionTerms, statementMs: Int64? = nil, statementPosition: Position,
    renewalPosition: Position? = nil, isAutoRenewing: Bool? = nil,
    autoRenewProductID: String? = nil, expirationIntent: String? = nil,
    unitPriceMicros: Int64? = nil, currency: Currency? = nil, offer: Subscription.Offer, sale: Int
  ) {
    self.environment = environment
    self.bundleID = bundleID
    self.originalTransactionID = originalTransactionID
    self.productID = productID
    self.userIdentifier = userIdentifier
    self.countryCode = countryCode
    self.startedAtMs = startedAtMs
    self.terms = terms
    self.statementMs = statementMs
    self.statementPosition = statementPosition
    self.renewalPosition = renewalPosition
    self.isAutoRenewing = isAutoRenewing
    self.autoRenewProductID = autoRenewProductID
    self.expirationIntent = expirationIntent
    self.unitPriceMicros = unitPriceMicros
    self.currency = currency
    self.offer = offer
    self.sale = sale
  }

  /// The newer of the two events.
  package var position: Position { max(statementPosition, renewalPosition ?? -1) }

  /// Whether it is in its grace period at the time of the newest thing known of it; nil if nothing is known of its
  /// renewal. No clock is read: the value changes with events alone.
  package var isInGracePeriod: Bool? {
    guard renewalPosition != nil,
      let newestMs = [statementMs, terms.renewalMs].compactMap(\.self).max()
    else { return nil }
    return terms.status(atMs: newestMs) == .gracePeriod
  }

  /// The status at a moment, given in epoch milliseconds.
  package func status(atMs momentMs: Int64) -> Subscription.Status {
    terms.status(atMs: momentMs)
  }
}

/// Reads subscriptions. The caller owns the connection, and the read transaction if one is needed.
package final class SubscriptionQueries {
  private let database: Database
  private lazy var selectOfUser = Result { () throws(DatabaseError) in
    try database.prepare(
      Self.select("s.user = (SELECT id FROM users WHERE user_identifier = ?)"))
  }
  private lazy var selectOfOriginal = Result { () throws(DatabaseError) in
    try database.prepare(Self.select("s.original_hash = ? AND s.original_transaction_id = ?"))
  }

  package init(_ database: Database) { self.database = database }

  /// The subscriptions of a user, in the order in which the events named them.
  package func subscriptions(
    ofUser identifier: String
  ) throws(DatabaseError) -> [SubscriptionDetail] {
    let rows = try selectOfUser.get()
    rows.bind(1, text: TokenUser.canonical(user: identifier))
    return try details(rows)
  }

  /// The subscriptions with this original transaction id: one, unless several apps or environments have it.
  package func subscriptions(
    originalTransactionID id: String
  ) throws(DatabaseError) -> [SubscriptionDetail] {
    let rows = try selectOfOriginal.get()
    rows.bind(1, withText(id) { $0.indexHash })
    rows.bind(2, text: id)
    return try details(rows)
  }

  /// The subscription with a number; nil if no statement shows it.
  func subscription(number: Int) throws(DatabaseError) -> SubscriptionDetail? {
    let rows = try database.prepare(Self.select("s.id = ?"))
    rows.bind(1, number)
    return try details(rows).first
  }

  /// The subscription with a key; nil if no statement shows it.
  package func subscription(
    environment: String, bundleID: String, originalTransactionID: String
  ) throws(DatabaseError) -> SubscriptionDetail? {
    try subscriptions(originalTransactionID: originalTransactionID)
      .first { $0.environment == environment && $0.bundleID == bundleID }
  }

  /// Renewal information alone does not make a subscription.
  private static func select(_ condition: String) -> String {
    func symbol(_ column: String) -> String {
      "(SELECT text FROM symbols WHERE id = \(column))"
    }
    return """
      SELECT \(symbol("s.environment")), \(symbol("s.bundle")), s.original_transaction_id,
      \(symbol("s.product")), u.user_identifier, coalesce(\(symbol("s.country")), 'ZZ'),
      s.started_at_ms, s.current_period_start_at_ms, s.expires_at_ms, s.revoked_at_ms,
      p.is_upgraded, s.grace_period_expires_at_ms, s.in_billing_retry, s.renewal_ms,
      s.statement_ms, s.statement_position, s.renewal_position, s.auto_renew,
      \(symbol("s.auto_renew_product")), \(symbol("s.expiration_intent")), p.unit_price_micros,
      \(symbol("p.currency")), s.offer, s.sale
      FROM subscriptions s LEFT JOIN users u ON u.id = s.user JOIN sales p ON p.id = s.sale
      WHERE s.statement_position IS NOT NULL AND \(condition) ORDER BY s.id
      """
  }

  private func details(_ rows: Statement) throws(DatabaseError) -> [SubscriptionDetail] {
    defer { rows.reset() }
    var result: [SubscriptionDetail] = []
    while try rows.step() { result.append(try Self.detail(rows)) }
    return result
  }

  private static func detail(_ row: Statement) throws(DatabaseError) -> SubscriptionDetail {
    var terms = SubscriptionTerms(
      periodStartMs: try row.instant(7), expiresAtMs: try row.instant(8))
    terms.revokedAtMs = try row.optionalInstant(9)
    terms.isUpgraded = try row.flag(10)
    terms.gracePeriodExpiresAtMs = try row.optionalInstant(11)
    terms.isInBillingRetry = try row.optionalFlag(12)
    terms.renewalMs = try row.optionalInstant(13)
    return SubscriptionDetail(
      environment: row.text(0), bundleID: row.text(1), originalTransactionID: row.text(2),
      productID: row.text(3), userIdentifier: row.optionalText(4), countryCode: row.text(5),
      startedAtMs: try row.instant(6), terms: terms, statementMs: try row.optionalInstant(14),
      statementPosition: try row.ordinal(15),
      renewalPosition: try row.optionalOrdinal(16), isAutoRenewing: try row.optionalFlag(17),
      autoRenewProductID: row.optionalText(18), expirationIntent: row.optionalText(19),
      unitPriceMicros: try row.optionalUnsigned(20), currency: Currency.parse(row.bytes(21)),
      offer: try row.code(22),
      sale: try row.ordinal(23))
  }
}

extension LedgerQueries {
  /// The subscription to which a sale belongs; nil if no statement shows it as one.
  package func subscription(of sale: SaleDetail) throws -> SubscriptionDetail? {
    if sale.isPending { return nil }
    let original = sale.originalTransactionID
    return try subscriptionQueries.subscription(
      environment: sale.environment, bundleID: sale.bundleID,
      originalTransactionID: original.isEmpty ? sale.transactionID : original)
  }

  /// When the last folded event was recorded, in epoch milliseconds; nil if there is none.
  package func lastEventAtMs() throws -> Int64? { try Progress(database).lastEventAtMs }
}
