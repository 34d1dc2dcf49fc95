// One purchase as a reply shows it, and one subscription's renewal.
package import AppStore
import Base

/// How a reply writes what is no text: as text, or, as some do, typed.
package struct ReplyStyle: Sendable {
  /// Quantities and flags.
  package var isTyped: Bool
  /// The epoch milliseconds of dates.
  package var hasTypedDates: Bool

  package init(isTyped: Bool, hasTypedDates: Bool) {
    self.isTyped = isTyped
    self.hasTypedDates = hasTypedDates
  }

  func dates(_ keys: DateKeys, _ epochMs: Int64?, to json: inout JSONWriter) {
    guard let epochMs else { return }
    json.member(keys.greenwich, StoreTime.greenwich(epochMs))
    if hasTypedDates {
      json.member(keys.epoch, epochMs)
    } else {
      json.member(keys.epoch, String(epochMs))
    }
    json.member(keys.losAngeles, StoreTime.losAngeles(epochMs))
  }

  func number(_ key: StaticString, _ digits: String, to json: inout JSONWriter) {
    if isTyped, let number = Int64(digits) {
      json.member(key, number)
    } else {
      json.member(key, digits)
    }
  }

  func flag(_ key: StaticString, _ value: Bool, to json: inout JSONWriter) {
    json.key(key)
    if isTyped { json.boolean(value) } else { json.string(value ? "true" : "false") }
  }
}

/// A refund as verifyReceipt shows it: when, and Apple's code for the reason, `0` or `1`.
package typealias ReplyRefund = (atMs: Int64, reason: String)

/// A purchase in a unified reply.
package struct PurchaseRow: Sendable {
  package var purchase: ReceiptPurchase
  package var isFamilyShared = false
  package var refund: ReplyRefund?
  package var subscriptionGroup: String
  package var offerCode: String?
  package var isUpgraded = false

  package init(_ purchase: ReceiptPurchase, subscriptionGroup: String) {
    self.purchase = purchase
    self.subscriptionGroup = subscriptionGroup
  }

  /// - Parameter isLatest: in `latest_receipt_info`, which says more about subscriptions.
  func write(isLatest: Bool, _ style: ReplyStyle, to json: inout JSONWriter) {
    let isSubscription = purchase.expiresDateMs != nil
    json.beginObject()
    style.number("quantity", purchase.quantity ?? "1", to: &json)
    json.member("product_id", purchase.productID ?? "")
    json.member("transaction_id", purchase.transactionID ?? "")
    json.member("original_transaction_id", purchase.originalTransactionID ?? "")
    style.dates(.purchase, purchase.purchaseDateMs, to: &json)
    style.dates(.originalPurchase, purchase.originalPurchaseDateMs, to: &json)
    if isSubscription {
      style.dates(.expires, purchase.expiresDateMs, to: &json)
      json.member("web_order_line_item_id", ifPresent: purchase.webOrderLineItemID)
    }
    style.flag("is_trial_period", purchase.isTrialPeriod, to: &json)
    if isSubscription {
      style.flag("is_in_intro_offer_period", purchase.isInIntroOfferPeriod, to: &json)
    }
    json.member("in_app_ownership_type", isFamilyShared ? "FAMILY_SHARED" : "PURCHASED")
    json.member("promotional_offer_id", ifPresent: purchase.promotionalOfferID)
    if isSubscription, isLatest {
      json.member("subscription_group_identifier", subscriptionGroup)
      json.member("offer_code_ref_name", ifPresent: offerCode)
      if isUpgraded { style.flag("is_upgraded", true, to: &json) }
    }
    if let refund {
      style.dates(.cancellation, refund.atMs, to: &json)
      json.member("cancellation_reason", refund.reason)
    }
    json.endObject()
  }
}

/// What a reply says of a subscription's next renewal.
package struct PendingRenewal: Sendable {
  /// What keeps a subscription from renewing.
  package enum End: Sendable {
    case voluntary, billing
  }

  private let last: ReceiptPurchase
  private let willRenew: Bool
  /// Why it has expired; nil where it has not, or for no reason.
  private let expiredBy: End?
  private let nowMs: Int64

  /// How long after the end of a period the App Store tries again to be paid, and how long it grants access.
  package static let retryMs = 60 * dayMs
  package static let graceMs = 16 * dayMs

  /// - Parameter last: the subscription's newest period.
  package init(after last: ReceiptPurchase, willRenew: Bool, end: End?, nowMs: Int64) {
    self.last = last
    self.willRenew = willRenew
    self.nowMs = nowMs
    expiredBy = (last.expiresDateMs ?? 0) <= nowMs ? end : nil
  }

  func write(_ style: ReplyStyle, to json: inout JSONWriter) {
    json.beginObject()
    if let expiredBy { json.member("expiration_intent", expiredBy == .billing ? "2" : "1") }
    json.member("auto_renew_product_id", last.productID ?? "")
    json.member("product_id", last.productID ?? "")
    json.member("original_transaction_id", last.originalTransactionID ?? "")
    json.member("auto_renew_status", willRenew ? "1" : "0")
    if expiredBy == .billing {
      let expiredMs = last.expiresDateMs ?? 0
      json.member("is_in_billing_retry_period", nowMs < expiredMs + Self.retryMs ? "1" : "0")
      if nowMs < expiredMs + Self.graceMs {
        style.dates(.gracePeriod, expiredMs + Self.graceMs, to: &json)
      }
    }
    json.endObject()
  }
}
