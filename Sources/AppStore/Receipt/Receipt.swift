// The content of a receipt file of either style.

/// The two file formats in which the App Store has issued receipts.
package enum ReceiptStyle: String, Sendable {
  /// PKCS#7 over a set of attributes: the whole app's receipt, since 2013.
  case unified
  /// A property list around one purchase: the legacy transaction receipt.
  case transaction
}

/// A decoded receipt. Nothing in it is trusted before `ReceiptVerifier` has said so.
package struct Receipt: Equatable, Sendable {
  package var style: ReceiptStyle
  /// As the signed content says (`Production`, `ProductionSandbox`, `Xcode`, ...). Nil for a
  /// transaction receipt: its environment line lies outside the signature.
  package var environment: String?
  /// The environment line of a transaction receipt, which is not signed: never evidence, but all that
  /// there is until the App Store has said which it is.
  package var unsignedEnvironment: String?
  package var bundleID: String
  package var applicationVersion: String?
  package var originalApplicationVersion: String?
  /// Epoch milliseconds. Nil for a transaction receipt, which has only its purchase's date.
  package var creationDateMs: Int64?
  /// Epoch milliseconds; only volume purchases expire as a whole.
  package var expirationDateMs: Int64?
  package var purchases: [ReceiptPurchase]

  package init(
    style: ReceiptStyle, environment: String? = nil, bundleID: String,
    applicationVersion: String? = nil, originalApplicationVersion: String? = nil,
    creationDateMs: Int64? = nil, expirationDateMs: Int64? = nil, purchases: [ReceiptPurchase]
  ) {
    self.style = style
    self.environment = environment
    self.bundleID = bundleID
    self.applicationVersion = applicationVersion
    self.originalApplicationVersion = originalApplicationVersion
    self.creationDateMs = creationDateMs
    self.expirationDateMs = expirationDateMs
    self.purchases = purchases
  }
}

/// One purchase as a receipt describes it. Ids stay text; what the receipt leaves out is nil.
/// Dates are epoch milliseconds.
package struct ReceiptPurchase: Equatable, Sendable {
  package var productID: String?
  package var transactionID: String?
  package var originalTransactionID: String?
  /// Decimal text; nil where the receipt has none or 0.
  package var webOrderLineItemID: String?
  package var quantity: String?
  package var purchaseDateMs: Int64?
  package var originalPurchaseDateMs: Int64?
  package var expiresDateMs: Int64?
  package var cancellationDateMs: Int64?
  /// 0 non-consumable, 1 consumable, 2 non-renewing, 3 auto-renewable, 4 free subscription.
  package var productType: Int?
  package var isTrialPeriod = false
  package var isInIntroOfferPeriod = false
  package var promotionalOfferID: String?

  package init() {}
}
