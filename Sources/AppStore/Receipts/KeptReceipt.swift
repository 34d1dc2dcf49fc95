// The facts of a receipt that are kept in place of its file, under the names that replies use.
package import Base

extension Receipt {
  /// Reads what an event kept of a receipt; nil if it is not such an object.
  /// - Parameters:
  ///   - facts: one JSON object.
  ///   - style: the style that the upload's event names.
  ///   - bundleID: the bundle that the event names. Facts name another one if the receipt did.
  package init?(keptFacts facts: JSONBytes, style: ReceiptStyle, bundleID: String) {
    self.init(style: style, bundleID: bundleID, purchases: [])
    let keeper = TextKeeper()
    do throws(JSONError) {
      var cursor = JSONCursor(facts)
      try cursor.beginObject()
      while let key = try cursor.nextKey() {
        if key == "purchases", try cursor.kind() == .array {
          try cursor.beginArray()
          while try cursor.nextElement() {
            guard purchases.count < ReceiptFile.maximumPurchaseCount else { return nil }
            purchases.append(try ReceiptPurchase(keptFacts: &cursor, keeper))
          }
        } else {
          guard let text = try keeper.read(&cursor).id.map({ String(decoding: $0, as: UTF8.self) })
          else { continue }
          if key == "environment" {
            environment = text
          } else if key == "unsigned_environment" {
            unsignedEnvironment = text
          } else if key == "bundle_id" {
            self.bundleID = text
          } else if key == "style" {
            self.style = ReceiptStyle(rawValue: text) ?? style
          }
        }
      }
    } catch { return nil }
  }
}

extension ReceiptPurchase {
  /// Reads the object at the cursor.
  fileprivate init(keptFacts cursor: inout JSONCursor, _ keeper: TextKeeper) throws(JSONError) {
    self.init()
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let value = try keeper.read(&cursor)
      let text = value.id.map { String(decoding: $0, as: UTF8.self) }
      if key == "product_id" {
        productID = text
      } else if key == "transaction_id" {
        transactionID = text
      } else if key == "original_transaction_id" {
        originalTransactionID = text
      } else if key == "web_order_line_item_id" {
        webOrderLineItemID = text
      } else if key == "quantity" {
        quantity = text
      } else if key == "purchase_date_ms" {
        purchaseDateMs = value.integer
      } else if key == "original_purchase_date_ms" {
        originalPurchaseDateMs = value.integer
      } else if key == "expires_date_ms" {
        expiresDateMs = value.integer
      } else if key == "cancellation_date_ms" {
        cancellationDateMs = value.integer
      } else if key == "product_type" {
        productType = value.integer.map { Int($0) }
      } else if key == "is_trial_period" {
        isTrialPeriod = value.flag
      } else if key == "is_in_intro_offer_period" {
        isInIntroOfferPeriod = value.flag
      } else if key == "promotional_offer_id" {
        promotionalOfferID = text
      }
    }
  }
}

extension Receipt {
  /// Facts as `init(keptFacts:style:bundleID:)` reads them: one JSON object.
  /// - Parameters:
  ///   - eventStyle: the style that the upload's event names.
  ///   - eventBundleID: the bundle that the event names.
  ///   - quantity: what to write for a quantity.
  package func keptFacts(
    eventStyle: String?, eventBundleID: String?, quantity: (String) -> String = { $0 }
  ) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("environment", ifPresent: environment)
    // Anyone can write this text; only the App Store's names of environments have a meaning.
    writer.member(
      "unsigned_environment",
      ifPresent: unsignedEnvironment.flatMap { EnvironmentName.isKnown($0) ? $0 : nil })
    if bundleID != eventBundleID { writer.member("bundle_id", bundleID) }
    if style.rawValue != eventStyle { writer.member("style", style.rawValue) }
    writer.key("purchases")
    writer.beginArray()
    for purchase in purchases {
      writer.beginObject()
      purchase.write(to: &writer, quantity)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }
}

extension ReceiptPurchase {
  fileprivate func write(to writer: inout JSONWriter, _ shown: (String) -> String) {
    writer.member("quantity", ifPresent: quantity.map(shown))
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
