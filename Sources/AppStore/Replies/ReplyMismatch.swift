// Checks whether a reply belongs to the receipt that it was given for.
package import JSON

/// Why a reply belongs to another receipt. The raw value is stored in events and exceptions.
package enum ReplyMismatch: String, Sendable {
  /// The reply is about an app outside the receipt's app family, or names none and shows nothing of the receipt.
  case bundle
  /// Receipt and reply both show purchases but have none in common.
  case transactions
}

/// The content of a receipt that can be compared with a reply.
package struct ReceiptSubject {
  private let isReadable: Bool
  private var transactionIDs: Set<String> = []
  private var lineItems: Set<String> = []

  /// - Parameter receipt: nil if its file cannot be read; any purchase may then belong to it.
  package init(_ receipt: Receipt?) {
    isReadable = receipt != nil
    for purchase in receipt?.purchases ?? [] {
      if let id = purchase.transactionID { transactionIDs.insert(id) }
      if let id = purchase.originalTransactionID { transactionIDs.insert(id) }
      if let id = purchase.webOrderLineItemID, id != "0" { lineItems.insert(id) }
    }
  }

  /// Why the reply does not fit; nil if it fits.
  /// - Parameter isOwnBundle: whether the receipt's app family has this bundle id.
  package func mismatch(
    of reply: Reply, isOwnBundle: (JSONBytes) -> Bool
  ) -> ReplyMismatch? {
    guard let bundleID = reply.bundleID else { return mismatchOfNameless(reply) }
    guard isOwnBundle(bundleID) else { return .bundle }
    return showsOtherTransactions(reply.rows) ? .transactions : nil
  }

  /// The same for a reply that names no bundle. It is about a receipt that can be read only if it shows something of
  /// it (rule R2), and about any other if it shows no purchases.
  package func mismatchOfNameless(_ reply: Reply) -> ReplyMismatch? {
    if isReadable { return shares(reply.rows) ? nil : .bundle }
    return reply.rows.isEmpty ? nil : .bundle
  }

  /// Whether a transaction id, original transaction id or line item of the rows is the receipt's.
  package func shares(_ rows: [ReplyRow]) -> Bool {
    rows.contains { row in
      [row.transactionID, row.originalTransactionID].contains { id in
        id.map { transactionIDs.contains(String(decoding: $0, as: UTF8.self)) } ?? false
      }
        || row.webOrderLineItemID.map { lineItems.contains(String(decoding: $0, as: UTF8.self)) }
          ?? false
    }
  }

  /// Whether receipt and rows both have purchases with ids, but no transaction id, original transaction id or
  /// line item in common.
  package func showsOtherTransactions(_ rows: [ReplyRow]) -> Bool {
    if transactionIDs.isEmpty, lineItems.isEmpty { return false }
    let hasIDs = rows.contains {
      $0.transactionID != nil || $0.originalTransactionID != nil || $0.webOrderLineItemID != nil
    }
    return hasIDs && !shares(rows)
  }
}
