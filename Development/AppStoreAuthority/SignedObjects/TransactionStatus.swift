// What is so about an invented customer's transactions at a time.
private import AppStore

/// A transaction as it stands, with what its subscription does next.
package struct TransactionStatus: Sendable {
  package var transaction: TransactionPayload
  package var renewal: RenewalPayload?
  /// When it came to be so.
  package var changedMs: Int64
  /// The place among the customer's transactions.
  package let number: Int

  package init(
    _ transaction: TransactionPayload, _ renewal: RenewalPayload?, changedMs: Int64, number: Int
  ) {
    self.transaction = transaction
    self.renewal = renewal
    self.changedMs = changedMs
    self.number = number
  }

  /// The order of a history: what changed last comes last.
  package var order: (Int64, UInt64) { (changedMs, UInt64(transaction.transactionID) ?? 0) }
}

extension CustomerTransactions {
  /// A customer's transactions as they stand at a time, in the order in which they came to be so.
  /// - Parameter count: how many purchases the customer has made; by default those of the first receipt. Nothing
  ///   befalls the others.
  package func statuses(customer: Int, atMs: Int64, count: Int? = nil) -> [TransactionStatus] {
    let first = customers.receipt(customer: customer, ordinal: 0)
    let count = count ?? first.purchases.count
    let receipt = customers.receipt(
      customer: customer, ordinal: max(0, count - first.purchases.count))
    var all: [TransactionStatus] = []
    var places: [String: Int] = [:]
    for purchase in receipt.purchases.prefix(count) {
      let boughtMs = purchase.purchaseDateMs ?? 0
      places[purchase.transactionID ?? ""] = all.count
      all.append(
        TransactionStatus(
          payload(purchase, of: receipt, customer: customer, signedMs: boughtMs), nil,
          changedMs: boughtMs, number: all.count))
    }
    for incident in incidents(customer: customer) where incident.atMs <= atMs {
      guard let transaction = incident.transaction else { continue }
      guard let place = places[transaction.transactionID] else {
        guard transaction.isRenewal, places[transaction.originalTransactionID] != nil else {
          continue
        }
        places[transaction.transactionID] = all.count
        all.append(
          TransactionStatus(transaction, incident.renewal, changedMs: incident.atMs, number: all.count))
        continue
      }
      if transaction.revocation?.dateMs != all[place].transaction.revocation?.dateMs {
        all[place].changedMs = incident.atMs
      }
      all[place].transaction = transaction
      all[place].renewal = incident.renewal
    }
    return all.filter { $0.transaction.purchaseMs <= atMs }.sorted { $0.order < $1.order }
  }
}
