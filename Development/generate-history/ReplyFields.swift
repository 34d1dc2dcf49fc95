// How a purchase stands in a reply.
import AppStoreAuthority
import Base

extension JSONWriter {
  /// `isTyped`: numbers and booleans are written as such, as some replies have them.
  fileprivate mutating func flag(_ key: StaticString, _ value: Bool, isTyped: Bool) {
    self.key(key)
    if isTyped { boolean(value) } else { string(value ? "true" : "false") }
  }
}

/// Where in a reply a purchase stands: some fields come in one place only.
enum RowPlace {
  case inApp, latest
}

/// Writes purchases as a reply shows them that the App Store gave at `atMs`.
struct RowWriter {
  let atMs: Int64
  let subscriptionGroup: String
  let isTyped: Bool

  func write(_ purchase: Purchase, _ place: RowPlace, to json: inout JSONWriter) {
    let isSubscription = purchase.product.kind == .autoRenewable
    json.beginObject()
    if isTyped {
      json.field("quantity", integer: purchase.quantity)
    } else {
      json.field("quantity", String(purchase.quantity))
    }
    json.field("product_id", purchase.product.id)
    json.field("transaction_id", String(purchase.transaction))
    json.field("original_transaction_id", String(purchase.original))
    json.dates(.purchase, purchase.purchasedMs)
    json.dates(.originalPurchase, purchase.originallyPurchasedMs)
    if isSubscription {
      json.dates(.expires, purchase.expiresMs)
      json.field("web_order_line_item_id", String(purchase.lineItem))
    }
    json.flag("is_trial_period", purchase.offer == .trial, isTyped: isTyped)
    if isSubscription {
      json.flag("is_in_intro_offer_period", purchase.offer == .introductory, isTyped: isTyped)
    }
    json.field(
      "in_app_ownership_type", purchase.isFamilyShared ? "FAMILY_SHARED" : "PURCHASED")
    if case .promotional(let id) = purchase.offer { json.field("promotional_offer_id", id) }
    if isSubscription, place == .latest {
      json.field("subscription_group_identifier", subscriptionGroup)
      if case .code(let name) = purchase.offer { json.field("offer_code_ref_name", name) }
      if purchase.upgradedMs <= atMs { json.flag("is_upgraded", true, isTyped: isTyped) }
    }
    writeCancellation(purchase, to: &json)
    json.endObject()
  }

  private func writeCancellation(_ purchase: Purchase, to json: inout JSONWriter) {
    guard purchase.isCancelled(atMs: atMs) else { return }
    json.dates(.cancellation, purchase.cancelledMs)
    json.field("cancellation_reason", String(purchase.cancellationReason))
  }
}
