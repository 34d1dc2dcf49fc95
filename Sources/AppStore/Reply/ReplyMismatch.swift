// Whether a reply is about the receipt that it was given for.
package import JSON

/// What shows that a reply is about something else. The raw value is stored in events and exceptions.
package enum ReplyMismatch: String, Sendable {
  /// It is about an app that the receipt's app family does not have.
  case bundle
  /// Receipt and reply show purchases, and none that they have in common.
  case transactions
}

/// What a receipt is about, as far as a reply can be compared with it.
package struct ReceiptSubject {
  private var transactionIDs: Set<String> = []
  private var lineItems: Set<String> = []

  /// - Parameter receipt: nil where its file can't be read: any purchase may then be its own.
  package init(_ receipt: Receipt?) {
    for purchase in receipt?.purchases ?? [] {
      if let id = purchase.transactionID { transactionIDs.insert(id) }
      if let id = purchase.originalTransactionID { transactionIDs.insert(id) }
      if let id = purchase.webOrderLineItemID { lineItems.insert(id) }
    }
  }

  /// What speaks against a reply; nil where it fits.
  /// - Parameter isOwnBundle: whether the receipt's app family has this bundle id.
  package func mismatch(
    of reply: Reply, isOwnBundle: (JSONBytes) -> Bool
  ) -> ReplyMismatch? {
    guard Self.fitsBundle(reply, isOwnBundle) else { return .bundle }
    return showsOtherTransactions(reply.rows) ? .transactions : nil
  }

  /// A reply that names no bundle fits where it shows nothing.
  package static func fitsBundle(_ reply: Reply, _ isOwnBundle: (JSONBytes) -> Bool) -> Bool {
    reply.bundleID.map(isOwnBundle) ?? reply.rows.isEmpty
  }

  /// Whether receipt and rows both have purchases with ids, and no transaction id, original transaction id or line
  /// item in common.
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
