// What a notification and renewal information say: members in, the payload's JSON out.
package import Base

/// A payload of Apple's `JWSRenewalInfoDecodedPayload`. Nil leaves a member out; times are epoch milliseconds.
package struct RenewalPayload: Sendable {
  package var originalTransactionID: String
  package var productID: String
  package var willRenew = true
  package var isInBillingRetry = false
  /// 1 voluntary, 2 billing.
  package var expirationIntent: Int?
  package var renewalPriceMilliunits: Int64?
  package var currency: String?
  package var signedMs: Int64
  package var environment: String
  package var subscriptionStartMs: Int64
  package var renewalMs: Int64
  package var appTransactionID: String?
  /// Until when the customer keeps what was not paid for.
  package var graceExpiresMs: Int64?

  /// The renewal of the subscription that a transaction belongs to, as told at the time of its signing.
  package init(of transaction: TransactionPayload) {
    originalTransactionID = transaction.originalTransactionID
    productID = transaction.productID
    renewalPriceMilliunits = transaction.priceMilliunits
    currency = transaction.currency
    signedMs = transaction.signedMs
    environment = transaction.environment
    subscriptionStartMs = transaction.originalPurchaseMs
    renewalMs = transaction.expiresMs ?? transaction.purchaseMs
    appTransactionID = transaction.appTransactionID
  }

  package var json: [UInt8] {
    var json = JSONWriter()
    json.reserve(512)
    json.beginObject()
    json.member("expirationIntent", ifPresent: expirationIntent)
    json.member("originalTransactionId", originalTransactionID)
    json.member("autoRenewProductId", productID)
    json.member("productId", productID)
    json.member("autoRenewStatus", willRenew ? 1 : 0)
    if isInBillingRetry {
      json.key("isInBillingRetryPeriod")
      json.boolean(true)
    }
    json.member("gracePeriodExpiresDate", ifPresent: graceExpiresMs)
    json.member("renewalPrice", ifPresent: renewalPriceMilliunits)
    json.member("currency", ifPresent: currency)
    json.member("signedDate", signedMs)
    json.member("environment", environment)
    json.member("recentSubscriptionStartDate", subscriptionStartMs)
    json.member("renewalDate", renewalMs)
    json.member("appTransactionId", ifPresent: appTransactionID)
    json.endObject()
    return json.bytes
  }
}

/// A payload of version 2 of Apple's notifications, of those that have `data`.
package struct NotificationPayload: Sendable {
  package var type: String
  package var subtype: String?
  package var uuid: String
  package var signedMs: Int64
  package var bundleID: String
  package var environment: String
  /// Production has one.
  package var appAppleID: Int64?
  package var bundleVersion = "1142"
  /// 1 active, 2 expired, 3 billing retry, 4 grace period, 5 revoked.
  package var status: Int?
  /// Why the customer asks for a refund; of `CONSUMPTION_REQUEST`.
  package var consumptionReason: String?
  /// JWS texts.
  package var transaction: [UInt8]?
  package var renewal: [UInt8]?

  package init(
    type: String, subtype: String? = nil, uuid: String, signedMs: Int64, bundleID: String,
    environment: String
  ) {
    self.type = type
    self.subtype = subtype
    self.uuid = uuid
    self.signedMs = signedMs
    self.bundleID = bundleID
    self.environment = environment
  }

  package var json: [UInt8] {
    var json = JSONWriter()
    json.reserve(1_024 + (transaction?.count ?? 0) + (renewal?.count ?? 0))
    json.beginObject()
    json.member("notificationType", type)
    json.member("subtype", ifPresent: subtype)
    json.member("notificationUUID", uuid)
    json.key("data")
    json.beginObject()
    json.member("appAppleId", ifPresent: appAppleID)
    json.member("bundleId", bundleID)
    json.member("bundleVersion", bundleVersion)
    json.member("environment", environment)
    if let transaction { json.member("signedTransactionInfo", text: transaction) }
    if let renewal { json.member("signedRenewalInfo", text: renewal) }
    json.member("status", ifPresent: status)
    json.member("consumptionRequestReason", ifPresent: consumptionReason)
    json.endObject()
    json.member("version", "2.0")
    json.member("signedDate", signedMs)
    json.endObject()
    return json.bytes
  }
}

extension JSONWriter {
  /// A member whose value is text in bytes.
  package mutating func member(_ key: StaticString, text: [UInt8]) {
    self.key(key)
    text.withUnsafeBytes { string($0) }
  }
}
