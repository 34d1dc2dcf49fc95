// One purchase as a reply shows it.
import AppStore
import AppStoreAuthority
import Base

/// Writes purchases of a unified reply.
struct RowWriter {
  let memory: StoreMemory
  let bundleID: String
  /// Numbers and booleans are written as such, as some replies have them.
  let isTyped: Bool

  /// `isLatest`: a row of `latest_receipt_info`, which says more about subscriptions.
  func write(_ purchase: ReceiptPurchase, isLatest: Bool, to json: inout JSONWriter) {
    let isSubscription = purchase.expiresDateMs != nil
    json.beginObject()
    number("quantity", purchase.quantity ?? "1", to: &json)
    json.field("product_id", purchase.productID ?? "")
    json.field("transaction_id", purchase.transactionID ?? "")
    json.field("original_transaction_id", purchase.originalTransactionID ?? "")
    dates(.purchase, purchase.purchaseDateMs, to: &json)
    dates(.originalPurchase, purchase.originalPurchaseDateMs, to: &json)
    dates(.expires, purchase.expiresDateMs, to: &json)
    if isSubscription, let item = purchase.webOrderLineItemID {
      json.field("web_order_line_item_id", item)
    }
    flag("is_trial_period", purchase.isTrialPeriod, to: &json)
    if isSubscription { flag("is_in_intro_offer_period", purchase.isInIntroOfferPeriod, to: &json) }
    if let refund = memory.refund(of: purchase) {
      dates(.cancellation, refund.atMs, to: &json)
      json.field("cancellation_reason", refund.reason)
    }
    json.field(
      "in_app_ownership_type", memory.isFamilyShared(purchase) ? "FAMILY_SHARED" : "PURCHASED")
    if let offer = purchase.promotionalOfferID { json.field("promotional_offer_id", offer) }
    if isSubscription, isLatest {
      let group = AppFacts.id("group \(bundleID)", isSandbox: false) % 100_000_000
      json.field("subscription_group_identifier", String(group))
    }
    json.endObject()
  }

  func dates(_ keys: DateKeys, _ epochMs: Int64?, to json: inout JSONWriter) {
    guard let epochMs else { return }
    guard isTyped else { return json.dates(keys, epochMs) }
    json.field(keys.greenwich, StoreTime.greenwich(epochMs))
    json.field(keys.epoch, raw: String(epochMs))
    json.field(keys.losAngeles, StoreTime.losAngeles(epochMs))
  }

  func number(_ key: StaticString, _ digits: String, to json: inout JSONWriter) {
    if isTyped, Int64(digits) != nil {
      json.field(key, raw: digits)
    } else {
      json.field(key, digits)
    }
  }

  func flag(_ key: StaticString, _ value: Bool, to json: inout JSONWriter) {
    if isTyped {
      json.field(key, raw: value ? "true" : "false")
    } else {
      json.field(key, value ? "true" : "false")
    }
  }
}
