// One purchase through its life, and what of it shows at a given time.
import AppStore
import AppStoreAuthority

enum Offer: Sendable, Equatable {
  case regular, trial, introductory
  case promotional(String)
  case code(String)
}

/// How a subscription's period ends where no renewal follows it.
enum Lapse: Sendable {
  case none
  /// The customer turned renewal off at that time.
  case voluntary(atMs: Int64)
  case billing
}

struct Purchase: Sendable {
  let product: Product
  var transaction: UInt64
  var original: UInt64
  /// 0 where the purchase is no subscription's.
  var lineItem: UInt64 = 0
  var purchasedMs: Int64
  var originallyPurchasedMs: Int64
  /// 0 where it never expires.
  var expiresMs: Int64 = 0
  var quantity = 1
  var offer = Offer.regular
  var isFamilyShared = false
  var lapse = Lapse.none
  /// Times of a refund, of its reversal, and of an upgrade; `.max` where there is none.
  var cancelledMs = Int64.max
  var cancellationReason = 0
  var reversedMs = Int64.max
  var upgradedMs = Int64.max
  /// The transaction under which a second device shows the same line item, and since when.
  var secondTransaction: UInt64 = 0
  var secondSinceMs = Int64.max
  /// The transaction of a restore, and its time.
  var restoredTransaction: UInt64 = 0
  var restoredMs = Int64.max
  /// What the customer paid for one unit.
  var unitMicros: Int64

  func isCancelled(atMs: Int64) -> Bool {
    cancelledMs <= atMs && !(reversedMs <= atMs)
  }

  /// The purchase as receipts and replies show it that the App Store makes at `atMs`.
  func inReceipt(atMs: Int64) -> ReceiptPurchase {
    var purchase = ReceiptPurchase()
    purchase.productID = product.id
    purchase.transactionID = String(transaction)
    purchase.originalTransactionID = String(original)
    purchase.webOrderLineItemID = lineItem > 0 ? String(lineItem) : nil
    purchase.quantity = String(quantity)
    purchase.purchaseDateMs = purchasedMs
    purchase.originalPurchaseDateMs = originallyPurchasedMs
    purchase.expiresDateMs = expiresMs > 0 ? expiresMs : nil
    purchase.cancellationDateMs = isCancelled(atMs: atMs) ? cancelledMs : nil
    purchase.productType = product.kind.rawValue
    purchase.isTrialPeriod = offer == .trial
    purchase.isInIntroOfferPeriod = offer == .introductory
    if case .promotional(let id) = offer { purchase.promotionalOfferID = id }
    return purchase
  }

  func refund(atMs: Int64) -> ReplyRefund? {
    isCancelled(atMs: atMs) ? (cancelledMs, String(cancellationReason)) : nil
  }

  /// The purchase under its second transaction.
  var onSecondDevice: Purchase {
    var copy = self
    copy.transaction = secondTransaction
    return copy
  }

  /// The purchase as a device shows it whose receipt was made at `atMs`.
  func shown(atMs: Int64, device: Int) -> Purchase {
    var copy = self
    if restoredMs <= atMs {
      copy.transaction = restoredTransaction
      copy.purchasedMs = restoredMs
    }
    if device == 1, secondSinceMs <= atMs { copy.transaction = secondTransaction }
    return copy
  }
}
