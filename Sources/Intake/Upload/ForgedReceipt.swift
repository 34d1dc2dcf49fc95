// How much of a forged receipt is kept: small ones whole, of large ones facts, which are bounded.
import AppStore

/// What an event keeps of a receipt that was altered or made up.
package enum ForgedReceipt {
  /// Files of this size and more are reduced to facts.
  package static let reducedFromBytes = 256 << 10
  /// Whoever makes a receipt up decides how much it says.
  private static let purchaseCountMax = 20
  private static let textBytesMax = 255

  /// Facts of its first purchases as one JSON object, without texts that no genuine receipt has.
  static func facts(of receipt: Receipt, eventStyle: String, eventBundleID: String) -> [UInt8] {
    var kept = receipt
    kept.environment = bounded(receipt.environment)
    kept.purchases = receipt.purchases.prefix(purchaseCountMax).map { purchase in
      var kept = purchase
      kept.productID = bounded(purchase.productID)
      kept.transactionID = bounded(purchase.transactionID)
      kept.originalTransactionID = bounded(purchase.originalTransactionID)
      kept.webOrderLineItemID = bounded(purchase.webOrderLineItemID)
      kept.quantity = bounded(purchase.quantity)
      return kept
    }
    return kept.keptFacts(eventStyle: eventStyle, eventBundleID: eventBundleID)
  }

  private static func bounded(_ text: String?) -> String? {
    text.flatMap { $0.utf8.count <= textBytesMax ? $0 : nil }
  }
}
