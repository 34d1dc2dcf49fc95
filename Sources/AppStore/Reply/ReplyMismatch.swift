// Checks whether a reply belongs to the receipt that it was given for.
package import JSON

/// Why a reply belongs to another receipt. The raw value is stored in events and exceptions.
package enum ReplyMismatch: String, Sendable {
  /// The reply is about an app outside the receipt's app family.
  case bundle
  /// Receipt and reply both show purchases but have none in common.
  case transactions
}

/// The content of a receipt that can be compared with a reply.
package struct ReceiptSubject {
  private var transactionIDs: Set<String> = []
  private var lineItems: Set<String> = []

  /// - Parameter receipt: nil if its file cannot be read; any purchase may then belong to it.
  package init(_ receipt: Receipt?) {
    for purchase in receipt?.purchases ?? [] {
      if let id = purchase.transactionID { transactionIDs.insert(id) }
      if let id = purchase.originalTransactionID { transactionIDs.insert(id) }
      if let id = purchase.webOrderLineItemID { lineItems.insert(id) }
    }
  }

  /// Why the reply does not fit; nil if it fits.
  /// - Parameter isOwnBundle: whether the receipt's app family has this bundle id.
  package func mismatch(
    of reply: Reply, isOwnBundle: (JSONBytes) -> Bool
  ) -> ReplyMismatch? {
    guard Self.fitsBundle(reply, isOwnBundle) else { return .bundle }
    return showsOtherTransactions(reply.rows) ? .transactions : nil
  }

  /// A reply without a bundle id fits if it shows no purchases.
  package static func fitsBundle(_ reply: Reply, _ isOwnBundle: (JSONBytes) -> Bool) -> Bool {
    reply.bundleID.map(isOwnBundle) ?? reply.rows.isEmpty
  }

  /// Whether receipt and rows both have purchases with ids, but no transaction id, original transaction id or
  /// line item in common.
  package func showsOtherTransactions(_ rows: [ReplyRow]) -> Bool {
    if transactionIDs.isEmpty, lineItems.isEmpty { return false }
    var hasIDs = false
    for row in rows {
      for id in [row.transactionID, row.originalTransactionID] {
        guard let id else { continue }
        hasIDs = true
        if transactionIDs.contains(String(decoding: id, as: UTF8.self)) { return false }
      }
      guard let id = row.webOrderLineItemID else { continue }
      hasIDs = true
      if lineItems.contains(String(decoding: id, as: UTF8.self)) { return false }
    }
    return hasIDs
  }
}
