// Responses about a user's entitlements.
import Ledger
import Revenue

extension OwnershipResponses {
  /// The most purchases of one user that are read. Only identifiers that stand for several people have more.
  static let purchaseCountMax = 10_000

  /// The claims that were found for the entitlements of an app, by their index in its list.
  private struct Claims {
    private let entitlements: [Entitlement]
    private var matches: [Symbol: [(place: Int, match: Entitlement.Match)]] = [:]
    /// By index; of Production, and of the Sandbox.
    private(set) var production: [EntitlementClaim?]
    private(set) var sandbox: [EntitlementClaim?]

    init(_ entitlements: [Entitlement]) {
      self.entitlements = entitlements
      production = Array(repeating: nil, count: entitlements.count)
      sandbox = production
    }

    /// The entitlements whose patterns name a product.
    mutating func matches(
      _ product: Symbol, _ id: @autoclosure () -> String
    ) -> [(place: Int, match: Entitlement.Match)] {
      if let known = matches[product] { return known }
      let id = id()
      let found = entitlements.indices.compactMap { place in
        entitlements[place].match(id).map { (place, $0) }
      }
      matches[product] = found
      return found
    }

    /// Adds a claim; of two the better one is kept.
    mutating func add(_ claim: EntitlementClaim, _ place: Int, isSandbox: Bool) {
      let known = isSandbox ? sandbox[place] : production[place]
      if let known, !claim.precedes(known) { return }
      if isSandbox { sandbox[place] = claim } else { production[place] = claim }
    }
  }

  /// Adds a user's entitlements; false if the user has too many purchases.
  func addEntitlements(
    of user: String, _ family: AppFamily?, atMs: Int64, to resource: inout ReceiptResource
  ) throws -> Bool {
    var claims = Claims(family?.entitlements ?? [])
    if let family, !family.entitlements.isEmpty, let number = try sales.number(ofUser: user) {
      let bundles = family.bundleIDs.compactMap { symbols.known($0) }
      guard let subscriptions = try subscriptions(ofUser: user, number, family) else {
        return false
      }
      for subscription in subscriptions { try claim(subscription, atMs, &claims) }
      guard try claimPurchases(of: number, family, bundles, &claims) else { return false }
    }
    add(claims.production, family, to: &resource)
    resource.begin("sandbox")
    add(claims.sandbox, family, to: &resource)
    resource.end()
    return true
  }

  private func add(
    _ claims: [EntitlementClaim?], _ family: AppFamily?, to resource: inout ReceiptResource
  ) {
    resource.beginArray("entitlements")
    for (place, claim) in claims.enumerated() {
      guard let claim, let family else { continue }
      resource.begin()
      resource.add("name", family.entitlements[place].name)
      resource.add("is_active", claim.reason.isActive)
      resource.add("until", timeMs: claim.untilMs)
      resource.add("reason", claim.reason.rawValue)
      resource.add("product_id", claim.productID)
      resource.add(
        "original_transaction_id",
        claim.originalTransactionID.isEmpty ? nil : claim.originalTransactionID)
      resource.add("positions", positions: Set(claim.positions).sorted())
      resource.end()
    }
    resource.endArray()
  }

  // MARK: Claims

  /// Adds the claims of a subscription's current period, and those of earlier periods for other products.
  private func claim(
    _ subscription: SubscriptionDetail, _ atMs: Int64, _ claims: inout Claims
  ) throws {
    let isSandbox = isSandbox(subscription.environment)
    let hasBegun = subscription.terms.periodStartMs <= atMs
    // A period that has not begun also gives what the previous one gives, or is all that is known.
    var hasEarlier = false
    var continued: Set<Int> = []
    try sales.forEach(of: subscription, symbols, limit: Self.purchaseCountMax) { sale in
      if sale.saleDateMs <= atMs { hasEarlier = true }
      let product = symbols.string(sale.product)
      let matches = claims.matches(sale.product, product)
      let isOfCurrentProduct = product == subscription.productID
      guard !isOfCurrentProduct || !hasBegun, !matches.isEmpty else { return }
      let returns = try returns(of: sale)
      guard
        let claim = EntitlementClaim(sale, of: subscription, product, returns, atMs: atMs)
      else { return }
      for (place, _) in matches {
        claims.add(claim, place, isSandbox: isSandbox)
        if claim.reason.isActive { continued.insert(place) }
      }
    }
    guard let product = symbols.known(subscription.productID) else { return }
    let current = EntitlementClaim(subscription, atMs: atMs)
    for (place, _) in claims.matches(product, subscription.productID)
    where hasBegun || !hasEarlier || continued.contains(place) {
      claims.add(current, place, isSandbox: isSandbox)
    }
  }

  /// Adds the claims of a user's purchases that are not periods of subscriptions; false if there are too many.
  private func claimPurchases(
    of user: Int64, _ family: AppFamily, _ bundles: [Symbol], _ claims: inout Claims
  ) throws -> Bool {
    var count = 0
    try sales.forEach(ofUser: user, after: .start) { sale in
      count += 1
      guard count <= Self.purchaseCountMax else { return false }
      guard bundles.contains(sale.bundle) else { return true }
      let matches = claims.matches(sale.product, symbols.string(sale.product))
      if matches.isEmpty { return true }
      // A period belongs to its subscription, whose user may differ.
      if sale.periodEndMs != nil { return true }
      let product = symbols.string(sale.product)
      let isSandbox = isSandbox(symbols.string(sale.environment))
      let returns = try returns(of: sale)
      for (place, match) in matches {
        let type = family.products[product] ?? ProductType(sale.flags)
        if let claim = EntitlementClaim(sale, product, type, match, returns) {
          claims.add(claim, place, isSandbox: isSandbox)
        }
      }
      return true
    }
    return count <= Self.purchaseCountMax
  }

  private func isSandbox(_ environment: String) -> Bool {
    withText(environment) { ReceiptResource.environment($0)?.text.elementsEqual("sandbox".utf8) }
      ?? true
  }
}

// MARK: - Claims and their order

/// Why an entitlement is or is no longer active for a user.
package enum EntitlementReason: String, CaseIterable, Sendable {
  case subscriptionActive = "subscription_active"
  case gracePeriod = "grace_period"
  /// Bought for good.
  case purchase
  /// Neither the app nor the App Store declares whether it is a consumable.
  case typeNotDeclared = "type_not_declared"
  case billingRetry = "billing_retry"
  case expired
  case refunded
  case revoked

  package var isActive: Bool {
    switch self {
    case .subscriptionActive, .gracePeriod, .purchase: true
    case .typeNotDeclared, .billingRetry, .expired, .refunded, .revoked: false
    }
  }

  /// The rank of reasons that give nothing: first one that an operator can act on, then one that the user can.
  fileprivate var rank: Int {
    switch self {
    case .typeNotDeclared: 2
    case .billingRetry: 1
    default: 0
    }
  }
}

/// The claim of one purchase or subscription to an entitlement at a moment.
struct EntitlementClaim: Equatable {
  var reason: EntitlementReason
  /// When it ends or ended, in epoch milliseconds; nil if it has no end, or if that is unknown.
  var untilMs: Int64?
  /// When the purchase was made or the period began, in epoch milliseconds.
  var sinceMs: Int64
  var productID: String
  var originalTransactionID: String
  var positions: [Position]

  /// Whether this claim is shown rather than another one. Active claims come first, then those that last longest. Two
  /// claims of different purchases are never equal, so the order in which they are found does not matter.
  func precedes(_ other: EntitlementClaim) -> Bool {
    if reason.isActive != other.reason.isActive { return reason.isActive }
    if reason.rank != other.reason.rank { return reason.rank > other.reason.rank }
    let (mine, theirs) = (untilMs ?? .max, other.untilMs ?? .max)
    if mine != theirs { return mine > theirs }
    if sinceMs != other.sinceMs { return sinceMs > other.sinceMs }
    if originalTransactionID != other.originalTransactionID {
      return originalTransactionID.utf8.lexicographicallyPrecedes(other.originalTransactionID.utf8)
    }
    return productID.utf8.lexicographicallyPrecedes(other.productID.utf8)
  }
}

extension EntitlementClaim {
  /// The claim of a subscription to the product of its current period.
  init(_ subscription: SubscriptionDetail, atMs: Int64) {
    let terms = subscription.terms
    self.init(
      reason: .expired, untilMs: terms.expiresAtMs, sinceMs: terms.periodStartMs,
      productID: subscription.productID, originalTransactionID: subscription.originalTransactionID,
      positions: subscription.positions)
    switch subscription.status(atMs: atMs) {
    case .active: reason = .subscriptionActive
    case .gracePeriod:
      reason = .gracePeriod
      untilMs = terms.gracePeriodExpiresAtMs
    case .billingRetry: reason = .billingRetry
    case .expired: untilMs = max(terms.expiresAtMs, terms.gracePeriodExpiresAtMs ?? .min)
    case .revoked:
      reason = .revoked
      untilMs = terms.revokedAtMs
    }
  }

  /// The claim of an earlier period of a subscription to its own product: a change of products at the end of a period
  /// is known before that end. Nil for a period that has not begun.
  init?(
    _ sale: UserSale, of subscription: SubscriptionDetail, _ product: String,
    _ returns: SaleReturns,
    atMs: Int64
  ) {
    guard sale.saleDateMs <= atMs, let endMs = sale.periodEndMs else { return nil }
    self.init(
      reason: .expired, untilMs: endMs, sinceMs: sale.saleDateMs, productID: product,
      originalTransactionID: subscription.originalTransactionID,
      positions: sale.positions + returns.positions)
    switch SaleState(sale, returns) {
    case .refunded, .partlyRefunded:
      reason = .refunded
      untilMs = returns.returnedAtMs
    case .revoked:
      reason = .revoked
      untilMs = returns.returnedAtMs
    case .upgraded:
      untilMs = min(endMs, max(sale.saleDateMs, subscription.terms.periodStartMs))
    case .owned, .expired: if atMs < endMs { reason = .subscriptionActive }
    }
  }

  /// The claim of a purchase that is not a period of a subscription; nil if it gives no entitlement.
  /// - Parameters:
  ///   - type: what the app declared, else what the App Store signed; nil if neither is known.
  ///   - match: how a pattern of the entitlement names the product.
  init?(
    _ sale: UserSale, _ product: String, _ type: ProductType?, _ match: Entitlement.Match,
    _ returns: SaleReturns
  ) {
    guard type != .consumable else { return nil }
    self.init(
      reason: .purchase, untilMs: nil, sinceMs: sale.saleDateMs, productID: product,
      originalTransactionID: String(decoding: sale.originalTransactionID, as: UTF8.self),
      positions: sale.positions + returns.positions)
    switch SaleState(sale, returns) {
    case .refunded,
      .upgraded where sale.cancellation == .returned:
      reason = .refunded
      untilMs = returns.returnedAtMs
    case .revoked:
      reason = .revoked
      untilMs = returns.returnedAtMs
    case .owned, .partlyRefunded, .upgraded, .expired:
      if type == nil, match == .prefix {
        // Spent consumables would otherwise keep the entitlement active for ever.
        reason = .typeNotDeclared
      }
    }
  }
}
