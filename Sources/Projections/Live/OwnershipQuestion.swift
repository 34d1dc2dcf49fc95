// What a company's own back end asks about one user of one app.
import Revenue

/// A question about a user. It is answered from the projections as they are, at a moment.
package enum OwnershipQuestion: Sendable {
  /// The user's purchases, the newest first: at most `limit`, from a place in the list on.
  case purchases(after: PurchaseCursor?, limit: Int)
  /// What the user is entitled to.
  case entitlements
}

/// What came of a question.
package enum OwnershipAnswer: Sendable {
  case found(AnswerBody)
  /// The user has more purchases than one answer may look at.
  case tooManyPurchases
}

/// What became of a sale, for its user.
package enum SaleState: String, CaseIterable, Sendable {
  case owned
  /// Some of its units are refunded.
  case partlyRefunded = "partly_refunded"
  case refunded
  /// It was shared by a family, and no longer is.
  case revoked
  /// Another product of the subscription took its place, with or without a credit.
  case upgraded
  /// Its period is over.
  case expired

  /// The state of a sale at a moment, in epoch milliseconds.
  /// - Parameter subscription: that of which it is a period.
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

  /// The state of a sale whatever has ended, with its Returns and Reversals.
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
