// Payloads of signed objects, read leniently.
@testable import AppStore
@testable import Base

extension FuzzTarget {
  static let signedPayload = FuzzTarget(
    name: "signed-payload", inputByteCountMax: 3072,
    words: [
      "\"transactionId\":", "\"originalTransactionId\":", "\"webOrderLineItemId\":",
      "\"productId\":", "\"bundleId\":", "\"purchaseDate\":", "\"originalPurchaseDate\":",
      "\"expiresDate\":", "\"quantity\":", "\"inAppOwnershipType\":\"FAMILY_SHARED\"",
      "\"signedDate\":", "\"revocationDate\":", "\"revocationPercentage\":",
      "\"revocationReason\":", "\"isUpgraded\":", "\"offerType\":",
      "\"offerDiscountType\":\"FREE_TRIAL\"", "\"environment\":\"Xcode\"", "\"storefront\":",
      "\"price\":", "\"currency\":", "\"multiSeatInfo\":{", "\"advancedCommerceInfo\":{",
      "\"items\":[{", "\"refunds\":[{", "\"refundDate\":", "\"refundAmount\":", "\"data\":{",
      "\"summary\":{", "\"appData\":{", "\"externalPurchaseToken\":{\"externalPurchaseId\":",
      "\"SANDBOX\"", "\"notificationUUID\":", "\"notificationType\":", "\"appAppleId\":",
      "\"signedTransactionInfo\":", "\"autoRenewStatus\":", "\"autoRenewProductId\":",
      "\"expirationIntent\":", "\"isInBillingRetryPeriod\":", "\"gracePeriodExpiresDate\":",
      "\"type\":", "\"receiptType\":", "\"receiptCreationDate\":", "\"\\u0070",
      "99999999999999", "1697679936056.485", "null",
    ],
    seeds: { SampleSignedObjects.payloads },
    check: { input in
      var compact: [UInt8] = []
      do throws(JSONError) { try JSONValidator.compact(input, to: &compact) } catch {
        // Not validated: the readers may refuse it or not, but keep to its bytes.
        _ = SignedPayloadCheck.description(input)
        return
      }
      let written = SignedPayloadCheck.description(input)
      require(
        written != nil || compact.first != UInt8(ascii: "{"), "a payload that is an object is read")
      require(
        compact.withUnsafeBytes { SignedPayloadCheck.description($0) } == written,
        "space means nothing")
    })
}

private enum SignedPayloadCheck {
  /// All that was read, as text; nil where it was refused.
  static func description(_ bytes: JSONBytes) -> String? {
    let keeper = TextKeeper()
    guard let transaction = try? SignedTransaction(payload: bytes, keeper),
      let notification = try? SignedNotification(payload: bytes, keeper),
      let appTransaction = try? SignedAppTransaction(payload: bytes, keeper),
      let renewal = try? SignedRenewal(payload: bytes, keeper),
      let facts = try? SignedObjectFacts(bytes)
    else { return nil }
    let row = transaction.row
    for id in [row.productID, row.transactionID, row.originalTransactionID, transaction.bundleID] {
      require(id?.isEmpty != true, "an id is not empty")
    }
    require(0...99_999_999_999_999 ~= transaction.priceMilliunits ?? 0, "a price has 14 digits")
    require(transaction.priceMilliunits == nil || transaction.hasPrice, "a price is there")
    require(0...100_000 ~= transaction.revocationPercentage ?? 0, "a percentage has limits")
    require(
      transaction.isAdvancedCommerce || transaction.advancedRefunds.isEmpty, "refunds lie in items")
    let ids = [
      row.productID, row.transactionID, row.originalTransactionID, row.webOrderLineItemID,
      transaction.bundleID, transaction.environment, transaction.storefront,
      transaction.appAccountToken, transaction.revocationReason, transaction.currency,
      notification.notificationUUID, notification.type, notification.subtype,
      notification.bundleID, notification.environment, notification.signedTransactionInfo,
      notification.signedRenewalInfo, notification.signedAppTransactionInfo,
      appTransaction.bundleID, appTransaction.environment, renewal.info.originalTransactionID,
      renewal.info.autoRenewProductID, renewal.info.expirationIntent, renewal.environment,
    ]
    let numbers = [
      row.purchaseDateMs, row.originalPurchaseDateMs, row.cancellationDateMs,
      transaction.signedDateMs, transaction.revocationPercentage, transaction.offerType,
      transaction.priceMilliunits, notification.signedDateMs, notification.appAppleID,
      appTransaction.signedDateMs, appTransaction.appAppleID, facts.signedDateMs,
      row.expiresAtMs, renewal.signedDateMs, renewal.info.gracePeriodEndMs,
    ]
    let flags = [
      row.isTrialPeriod, transaction.isOfOtherType, renewal.info.isAutoRenewing,
      renewal.info.isInBillingRetry,
    ]
    let refunds = transaction.advancedRefunds.map {
      "\($0.dateMs ?? -1) \($0.amountMilliunits ?? -1)"
    }
    return "\(ids.map(text)) \(numbers) \(refunds) \(facts.environment) \(flags)"
  }

  private static func text(_ bytes: JSONBytes?) -> String {
    bytes.map { String(decoding: $0, as: UTF8.self) } ?? "-"
  }
}
