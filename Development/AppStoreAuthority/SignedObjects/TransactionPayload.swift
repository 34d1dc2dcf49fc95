// What a signed transaction says: members in, the payload's JSON out.
import Base

/// A payload of Apple's `JWSTransactionDecodedPayload`, with members in the order in which the App Store writes
/// them. Nil leaves a member out; times are epoch milliseconds.
package struct TransactionPayload: Sendable {
  package var transactionID: String
  package var originalTransactionID: String
  package var webOrderLineItemID: String?
  package var bundleID: String
  package var productID: String
  package var subscriptionGroup: String?
  package var purchaseMs: Int64
  package var originalPurchaseMs: Int64
  package var expiresMs: Int64?
  package var quantity = 1
  package var type: PurchaseType
  package var appAccountToken: String?
  package var isFamilyShared = false
  package var signedMs: Int64
  package var revocation: Revocation?
  package var isUpgraded = false
  package var offer: TransactionOffer?
  package var environment: String
  package var isRenewal = false
  package var storefront: StoreCountry?
  /// Of the whole quantity, in thousandths of the currency.
  package var priceMilliunits: Int64?
  package var currency: String?
  package var appTransactionID: String?

  /// What a product is, as the member `type` names it.
  package enum PurchaseType: String, Sendable {
    case autoRenewable = "Auto-Renewable Subscription"
    case nonConsumable = "Non-Consumable"
    case consumable = "Consumable"
    case nonRenewing = "Non-Renewing Subscription"
  }

  /// A refund that is in force.
  package struct Revocation: Sendable {
    package var dateMs: Int64
    package var reason: Int
    /// 100000 is all.
    package var percentage: Int?
    package var type: String?

    package init(dateMs: Int64, reason: Int, percentage: Int? = nil, type: String? = nil) {
      self.dateMs = dateMs
      self.reason = reason
      self.percentage = percentage
      self.type = type
    }
  }

  package init(
    transactionID: String, originalTransactionID: String, bundleID: String, productID: String,
    type: PurchaseType, purchaseMs: Int64, originalPurchaseMs: Int64, signedMs: Int64,
    environment: String
  ) {
    self.transactionID = transactionID
    self.originalTransactionID = originalTransactionID
    self.bundleID = bundleID
    self.productID = productID
    self.type = type
    self.purchaseMs = purchaseMs
    self.originalPurchaseMs = originalPurchaseMs
    self.signedMs = signedMs
    self.environment = environment
  }

  package var json: [UInt8] {
    var json = JSONWriter()
    json.reserve(1_024)
    json.beginObject()
    writePurchase(to: &json)
    writeState(to: &json)
    writeStore(to: &json)
    json.endObject()
    return json.bytes
  }

  private func writePurchase(to json: inout JSONWriter) {
    json.member("transactionId", transactionID)
    json.member("originalTransactionId", originalTransactionID)
    json.member("webOrderLineItemId", ifPresent: webOrderLineItemID)
    json.member("bundleId", bundleID)
    json.member("productId", productID)
    json.member("subscriptionGroupIdentifier", ifPresent: subscriptionGroup)
    json.member("purchaseDate", purchaseMs)
    json.member("originalPurchaseDate", originalPurchaseMs)
    json.member("expiresDate", ifPresent: expiresMs)
    json.member("quantity", quantity)
    json.member("type", type.rawValue)
    json.member("appAccountToken", ifPresent: appAccountToken)
    json.member("inAppOwnershipType", isFamilyShared ? "FAMILY_SHARED" : "PURCHASED")
  }

  private func writeState(to json: inout JSONWriter) {
    json.member("signedDate", signedMs)
    if let revocation {
      json.member("revocationReason", revocation.reason)
      json.member("revocationDate", revocation.dateMs)
      json.member("revocationType", ifPresent: revocation.type)
      json.member("revocationPercentage", ifPresent: revocation.percentage)
    }
    if isUpgraded {
      json.key("isUpgraded")
      json.boolean(true)
    }
    if let offer { offer.write(to: &json) }
  }

  private func writeStore(to json: inout JSONWriter) {
    json.member("environment", environment)
    json.member("transactionReason", isRenewal ? "RENEWAL" : "PURCHASE")
    if let storefront {
      json.member("storefront", storefront.alpha3)
      json.member("storefrontId", String(storefront.number))
    }
    json.member("price", ifPresent: priceMilliunits)
    json.member("currency", ifPresent: currency)
    json.member("appTransactionId", ifPresent: appTransactionID)
  }
}

/// The offer under which a transaction was made.
package struct TransactionOffer: Sendable {
  /// 1 introductory, 2 promotional, 3 offer code, 4 win-back.
  package var type: Int
  package var identifier: String?
  package var discount: String?
  /// As ISO 8601 writes a duration.
  package var period: String?

  package init(
    type: Int, identifier: String? = nil, discount: String? = nil, period: String? = nil
  ) {
    self.type = type
    self.identifier = identifier
    self.discount = discount
    self.period = period
  }

  fileprivate func write(to json: inout JSONWriter) {
    json.member("offerType", type)
    json.member("offerIdentifier", ifPresent: identifier)
    json.member("offerDiscountType", ifPresent: discount)
    json.member("offerPeriod", ifPresent: period)
  }
}
