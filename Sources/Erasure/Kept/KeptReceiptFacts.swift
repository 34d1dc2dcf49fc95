// What stays of a receipt file: the facts of its purchases, which pending sales and comparisons read.
import AppStore
import JSON

extension Receipt {
  /// One JSON object, which `Receipt(keptFacts:style:bundleID:)` reads.
  /// - Parameters:
  ///   - eventStyle: the style that the upload's event names.
  ///   - eventBundleID: the bundle that the event names.
  func keptFacts(eventStyle: String?, eventBundleID: String?, _ names: KeptNames) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("environment", ifPresent: environment)
    // Anyone can write it; only the App Store's names for environments mean anything.
    writer.member(
      "unsigned_environment",
      ifPresent: unsignedEnvironment.flatMap { EnvironmentName.isKnown($0) ? $0 : nil })
    if bundleID != eventBundleID { writer.member("bundle_id", bundleID) }
    if style.rawValue != eventStyle { writer.member("style", style.rawValue) }
    writer.key("purchases")
    writer.beginArray()
    for purchase in purchases {
      writer.beginObject()
      purchase.write(to: &writer, names)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }
}

extension ReceiptPurchase {
  fileprivate func write(to writer: inout JSONWriter, _ names: KeptNames) {
    if let quantity {
      writer.member("quantity", names.quantity(quantity, isInteger: Int64(quantity) != nil))
    }
    writer.member("product_id", ifPresent: productID)
    writer.member("transaction_id", ifPresent: transactionID)
    writer.member("original_transaction_id", ifPresent: originalTransactionID)
    writer.member("web_order_line_item_id", ifPresent: webOrderLineItemID)
    writer.member("purchase_date_ms", ifPresent: purchaseDateMs)
    writer.member("original_purchase_date_ms", ifPresent: originalPurchaseDateMs)
    writer.member("expires_date_ms", ifPresent: expiresDateMs)
    writer.member("cancellation_date_ms", ifPresent: cancellationDateMs)
    writer.member("is_trial_period", ifPresent: isTrialPeriod ? "true" : nil)
    writer.member("is_in_intro_offer_period", ifPresent: isInIntroOfferPeriod ? "true" : nil)
    writer.member("promotional_offer_id", ifPresent: promotionalOfferID == nil ? nil : "?")
    writer.member("product_type", ifPresent: productType)
  }
}
