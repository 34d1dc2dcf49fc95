// The content of a receipt file of either style.

/// The two file formats in which the App Store has issued receipts.
package enum ReceiptStyle: String, Sendable {
  /// PKCS#7 that contains a set of attributes: the receipt of the whole app, since 2013.
  case unified
  /// A property list for one purchase: the legacy transaction receipt.
  case transaction
}

/// A decoded receipt. Do not trust its content until `ReceiptVerifier` has checked the signature.
package struct Receipt: Equatable, Sendable {
  package var style: ReceiptStyle
  /// As in the signed content (`Production`, `ProductionSandbox`, `Xcode`, ...). Nil for a transaction
  /// receipt: its environment line is outside the signature.
  package var environment: String?
  /// The environment line of a transaction receipt. It is not signed, so it is never evidence, but nothing
  /// better exists until the App Store has answered.
  package var unsignedEnvironment: String?
  package var bundleID: String
  package var applicationVersion: String?
  package var originalApplicationVersion: String?
  /// Epoch milliseconds. Nil for a transaction receipt, which has only the date of its purchase.
  package var creationDateMs: Int64?
  /// Epoch milliseconds. Only volume purchases expire as a whole.
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

/// One purchase as a receipt describes it. Ids stay text; a field that the receipt omits is nil. Dates are
/// epoch milliseconds.
package struct ReceiptPurchase: Equatable, Sendable {
  package var productID: String?
  package var transactionID: String?
  package var originalTransactionID: String?
  /// Decimal text; nil if the receipt has none or 0.
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
