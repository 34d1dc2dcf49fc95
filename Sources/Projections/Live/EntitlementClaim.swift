// What a purchase or a subscription says about an entitlement, and which of several counts.
import Ledger
import Revenue

/// Why a user has an entitlement, or has it no longer.
package enum EntitlementReason: String, CaseIterable, Sendable {
  case subscriptionActive = "subscription_active"
  case gracePeriod = "grace_period"
  /// Bought for good.
  case purchase
  /// Neither the app nor the App Store said whether it is a consumable.
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

  /// Those that give nothing: the one that an operator, then the user, can do something about comes first.
  fileprivate var rank: Int {
    switch self {
    case .typeNotDeclared: 2
    case .billingRetry: 1
    default: 0
    }
  }
}

/// What one purchase or subscription says about an entitlement at a moment.
struct EntitlementClaim: Equatable {
  var reason: EntitlementReason
  /// When it ends or ended, in epoch milliseconds; nil: for good, or not known.
  var untilMs: Int64?
  /// When the purchase was made or the period began, in epoch milliseconds.
  var sinceMs: Int64
  var productID: String
  var originalTransactionID: String
  var positions: [Position]

  /// Whether this claim is shown rather than another one. What is active comes first, then what lasts longest. Two
  /// claims of different purchases are never equal, so the order in which they are found decides nothing.
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
  /// What a subscription says about the product of its current period.
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

  /// What an earlier period of a subscription says about its own product: a change of products at the end of a period
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

  /// What a purchase that is no period of a subscription says; nil for one that gives no entitlement.
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
        // Coins that are spent would otherwise give it for good.
        reason = .typeNotDeclared
      }
    }
  }
}
