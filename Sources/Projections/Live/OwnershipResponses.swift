// Responses to back ends about users, read from the projections.
import Base
import Ledger
import Revenue

/// Answers questions about users, from one generation. Used by one thread at a time.
final class OwnershipResponses {
  /// A list of purchases continues in the next response once it has this many bytes, so that a response stays below 1
  /// MiB.
  private static let listByteCountMax = 512 << 10
  /// The most transaction ids of one sale that a response shows.
  private static let transactionIDCountMax = 100
  /// The most subscriptions of one user that are read.
  private static let subscriptionCountMax = 1000

  private let database: Database
  private let arena = TextArena()
  let symbols: StringInterner
  let sales: UserSales
  private let subscriptions: SubscriptionQueries
  /// Subscriptions that the current question has looked up, by environment, bundle and original transaction id.
  private var knownSubscriptions: [[String]: SubscriptionDetail?] = [:]
  private let begin: Statement
  private let commit: Statement
  private let selectPosition: Statement
  private let countSubscriptions: Statement
  /// How many events were folded when the symbols were loaded.
  private var symbolsPosition: Position?

  init(_ database: Database) throws(DatabaseError) {
    self.database = database
    symbols = StringInterner(arena)
    sales = try UserSales(database)
    subscriptions = SubscriptionQueries(database)
    begin = try database.prepare("BEGIN")
    commit = try database.prepare("COMMIT")
    selectPosition = try database.prepare("SELECT position FROM progress")
    countSubscriptions = try database.prepare(
      "SELECT count(*) FROM (SELECT 1 FROM subscriptions WHERE user = ? LIMIT ?)")
  }

  /// Answers a question about a user of an app family.
  /// - Parameters:
  ///   - family: nil if it is not registered.
  ///   - atMs: the moment that decides what has ended, in epoch milliseconds.
  func answer(
    _ question: OwnershipQuestion, about user: String, of id: UUID16, _ family: AppFamily?,
    atMs: Int64
  ) throws -> OwnershipResponse {
    try begin.run()
    defer {
      try? commit.run()
      knownSubscriptions.removeAll()
    }
    let position = try foldedCount()
    if symbolsPosition != position {
      try symbols.load(from: database)
      symbolsPosition = position
    }
    var resource = ReceiptResource()
    resource.begin()
    resource.add("at", timeMs: atMs)
    resource.add("position", position > 0 ? Int64(position - 1) : nil)
    resource.add("app_family_id", id)
    let isAnswered =
      switch question {
      case .purchases(let place, let limit):
        try addPurchases(
          of: user, family, after: place ?? .start, limit: limit, atMs: atMs, to: &resource)
      case .entitlements: try addEntitlements(of: user, family, atMs: atMs, to: &resource)
      }
    guard isAnswered else { return .tooManyPurchases }
    resource.end()
    return .found(resource.finish())
  }

  private func foldedCount() throws(DatabaseError) -> Position {
    defer { selectPosition.reset() }
    return try selectPosition.step() ? selectPosition.ordinal(0) : 0
  }

  // MARK: Subscriptions

  /// The subscriptions of a user of an app family; nil if there are too many.
  func subscriptions(
    ofUser user: String, _ number: Int64, _ family: AppFamily
  ) throws -> [SubscriptionDetail]? {
    countSubscriptions.bind(1, number)
    countSubscriptions.bind(2, Self.subscriptionCountMax + 1)
    defer { countSubscriptions.reset() }
    guard try countSubscriptions.step(),
      countSubscriptions.integer(0) <= Self.subscriptionCountMax
    else { return nil }
    let found = try subscriptions.subscriptions(ofUser: user).filter {
      family.bundleIDs.contains($0.bundleID)
    }
    for subscription in found { knownSubscriptions[subscription.key] = subscription }
    return found
  }

  /// The subscription of which a sale is a period.
  func subscription(of sale: UserSale) throws -> SubscriptionDetail? {
    let original =
      sale.originalTransactionID.isEmpty ? sale.transactionID : sale.originalTransactionID
    let key = [
      symbols.string(sale.environment), symbols.string(sale.bundle),
      String(decoding: original, as: UTF8.self),
    ]
    if let known = knownSubscriptions[key] { return known }
    let found = try subscriptions.subscription(
      environment: key[0], bundleID: key[1], originalTransactionID: key[2])
    knownSubscriptions[key] = .some(found)
    return found
  }

  /// The Returns and Reversals of a sale; most sales have none.
  func returns(of sale: UserSale) throws -> SaleReturns {
    sale.cancellation == .none ? SaleReturns() : try sales.returns(of: sale)
  }

  // MARK: Purchases

  /// Adds a part of the list of purchases; false if the user has too many subscriptions.
  private func addPurchases(
    of user: String, _ family: AppFamily?, after place: PurchaseCursor, limit: Int, atMs: Int64,
    to resource: inout ReceiptResource
  ) throws -> Bool {
    guard let (page, hasMore) = try purchases(of: user, family, after: place, limit: limit) else {
      return false
    }
    var next = hasMore ? page.last?.place : nil
    resource.beginArray("purchases")
    for (index, sale) in page.enumerated() {
      try add(sale, family, atMs: atMs, to: &resource)
      if resource.byteCount >= Self.listByteCountMax, index + 1 < page.count {
        next = sale.place
        break
      }
    }
    resource.endArray()
    resource.add("next", next?.text)
    return true
  }

  private func purchases(
    of user: String, _ family: AppFamily?, after place: PurchaseCursor, limit: Int
  ) throws -> (page: [UserSale], hasMore: Bool)? {
    guard let family, let number = try sales.number(ofUser: user) else { return ([], false) }
    guard let subscriptions = try subscriptions(ofUser: user, number, family) else { return nil }
    let bundles = family.bundleIDs.compactMap { symbols.known($0) }
    var page: [UserSale] = []
    try sales.forEach(ofUser: number, after: place) { sale in
      // A user of several apps may have the same identifier in all of them.
      if bundles.contains(sale.bundle) { page.append(sale) }
      return page.count <= limit
    }
    // A renewal that no upload of a user shows belongs to the subscription's user (rule R13).
    for subscription in subscriptions {
      try sales.forEachUnclaimed(
        of: subscription, symbols, besides: number, after: place, limit: limit + 1
      ) { page.append($0) }
    }
    page.sort { $0.place > $1.place }
    let hasMore = page.count > limit
    if hasMore { page.removeSubrange(limit...) }
    return (page, hasMore)
  }

  private func add(
    _ sale: UserSale, _ family: AppFamily?, atMs: Int64, to resource: inout ReceiptResource
  ) throws {
    let environment = symbols.text(sale.environment)
    let bundle = symbols.text(sale.bundle)
    let product = symbols.string(sale.product)
    let returns = try returns(of: sale)
    let subscription = sale.periodEndMs == nil ? nil : try subscription(of: sale)
    let type =
      family?.products[product] ?? ProductType(sale.flags)
      ?? (subscription == nil ? nil : .autoRenewable)
    resource.begin()
    if let family {
      sale.key.withUnsafeBytes { key in
        resource.addPurchaseID(
          family: family.id, environment: environment, bundle: bundle, kind: sale.keyKind, key: key)
      }
    }
    resource.add("environment", word: ReceiptResource.environment(environment))
    resource.add("bundle_id", text: bundle)
    resource.add("product_id", product)
    resource.add("type", type?.rawValue)
    resource.add("kind", word: sale.kind.word)
    resource.add("quantity", sale.quantity)
    resource.add("purchased_at", timeMs: sale.saleDateMs)
    resource.add("period_ends_at", timeMs: sale.periodEndMs)
    resource.add("state", SaleState(sale, returns, subscription, atMs: atMs).rawValue)
    addAmounts(of: sale, returns, to: &resource)
    resource.add("country_code", text: sale.country == .none ? nil : symbols.text(sale.country))
    sale.transactionID.withUnsafeBytes { id in
      resource.add("transaction_id", text: id.isEmpty ? nil : id)
    }
    sale.originalTransactionID.withUnsafeBytes { id in
      resource.add("original_transaction_id", text: id.isEmpty ? nil : id)
    }
    let ids = try sales.transactionIDs(of: sale, limit: Self.transactionIDCountMax)
    resource.add("transaction_ids", texts: ids)
    if let subscription {
      add(subscription, atMs: atMs, to: &resource)
    } else {
      resource.add("subscription", nil as String?)
    }
    resource.add("positions", positions: sale.positions + returns.positions)
    resource.end()
  }

  private func add(
    _ subscription: SubscriptionDetail, atMs: Int64, to resource: inout ReceiptResource
  ) {
    let terms = subscription.terms
    resource.begin("subscription")
    resource.add("original_transaction_id", subscription.originalTransactionID)
    resource.add("product_id", subscription.productID)
    resource.add("status", subscription.status(atMs: atMs).rawValue)
    resource.add("started_at", timeMs: subscription.startedAtMs)
    resource.add("current_period_start_at", timeMs: terms.periodStartMs)
    resource.add("expires_at", timeMs: terms.expiresAtMs)
    resource.add("grace_period_expires_at", timeMs: terms.gracePeriodExpiresAtMs)
    resource.add("revoked_at", timeMs: terms.revokedAtMs)
    resource.add("auto_renew", subscription.isAutoRenewing)
    resource.add("auto_renew_product_id", subscription.autoRenewProductID)
    resource.add("expiration_intent", subscription.expirationIntent)
    resource.add("in_billing_retry", terms.isInBillingRetry)
    resource.add("offer", word: subscription.offer == .none ? nil : subscription.offer.word)
    resource.add("position", Int64(subscription.position))
    resource.end()
  }

  private func addAmounts(
    of sale: UserSale, _ returns: SaleReturns, to resource: inout ReceiptResource
  ) {
    let currency = sale.currency == .none ? nil : Currency.parse(symbols.text(sale.currency))
    func text(_ micros: Int64?) -> String? {
      guard let micros, currency != nil else { return nil }
      return Amount.text(micros: micros, currency: currency)
    }
    resource.add("unit_price", text(sale.unitPriceMicros))
    resource.add("amount", text(sale.amountMicros))
    resource.add("currency", currency?.description)
    resource.add(
      "price_basis", word: sale.priceBasis == .notApplicable ? nil : sale.priceBasis.word)
    resource.add("refunded_quantity", returns.quantity)
    resource.add("refunded_amount", text(sale.amountMicros.map { _ in returns.amountMicros }))
    resource.add("refunded_at", timeMs: returns.returnedAtMs)
  }
}

extension SubscriptionDetail {
  /// Identifies the subscription.
  fileprivate var key: [String] { [environment, bundleID, originalTransactionID] }

  /// The events that it is based on.
  var positions: [Position] { [statementPosition] + (renewalPosition.map { [$0] } ?? []) }
}

// MARK: - Questions

/// A back end's question about a user of one app. It is answered from the current projections, at a moment.
package enum OwnershipQuestion: Sendable {
  /// The user's purchases, the newest first: at most `limit`, after a place in the list.
  case purchases(after: PurchaseCursor?, limit: Int)
  /// The user's entitlements.
  case entitlements
}

/// The outcome of a question.
package enum OwnershipResponse: Sendable {
  case found(ResponseBody)
  /// The user has more purchases than one response may read.
  case tooManyPurchases
}

/// The state of a sale, for its user.
package enum SaleState: String, CaseIterable, Sendable {
  case owned
  /// Some of its units are refunded.
  case partlyRefunded = "partly_refunded"
  case refunded
  /// It was shared by a family, and no longer is.
  case revoked
  /// Another product of the subscription replaced it, with or without a credit.
  case upgraded
  /// Its period is over.
  case expired

  /// The state of a sale at a moment, in epoch milliseconds.
  /// - Parameter subscription: the subscription of which it is a period.
  init(
    _ sale: UserSale, _ returns: SaleReturns, _ subscription: SubscriptionDetail?, atMs: Int64
  ) {
    self.init(sale, returns)
    guard self == .owned else { return }
    if let subscription, subscription.sale == sale.number {
      switch subscription.status(atMs: atMs) {
      case .active, .gracePeriod: break
      case .billingRetry, .expired: self = .expired
      case .revoked: self = .revoked
      }
    } else if let endMs = sale.periodEndMs, endMs <= atMs {
      self = .expired
    }
  }

  /// The state of a sale regardless of expiry, with its Returns and Reversals.
  init(_ sale: UserSale, _ returns: SaleReturns) {
    if sale.cancellation == .returned {
      if sale.kind == .familyShared {
        self = .revoked
      } else if sale.isUpgraded {
        self = .upgraded
      } else {
        self = returns.share == .units ? .partlyRefunded : .refunded
      }
    } else {
      self = sale.isUpgraded ? .upgraded : .owned
    }
  }
}
