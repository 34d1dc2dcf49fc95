// Finds invented customers by their transactions, and their notifications by time, without keeping either.
import AppStoreAuthority
import Base

/// What is kept of each customer: the numbers of transactions, and when something befell them. The rest is made when it
/// is asked for.
struct CustomerIndex: Sendable {
  struct Owner: Sendable {
    let transaction: UInt64
    let customer: Int32
    let isSandbox: Bool
  }

  /// An incident of a customer.
  struct Told: Sendable {
    let atMs: Int64
    let customer: Int32
    /// Among the customer's.
    let ordinal: UInt16
    let isSandbox: Bool
  }

  /// In the order of the transactions' numbers.
  private var owners: [Owner] = []
  /// In the order of time.
  private(set) var told: [Told] = []

  init(_ sales: CustomerTransactions, count: Int, transactionCount: Int?) {
    owners.reserveCapacity(count * 5)
    told.reserveCapacity(count * 5)
    for customer in 0..<count {
      let statuses = sales.statuses(
        customer: customer, atMs: sales.customers.atMs, count: transactionCount)
      for status in statuses {
        guard let id = UInt64(status.transaction.transactionID) else { continue }
        owners.append(
          Owner(
            transaction: id, customer: Int32(customer),
            isSandbox: status.transaction.environment == "Sandbox"))
      }
      let isSandbox = owners.last?.isSandbox ?? false
      for (ordinal, incident) in sales.incidents(customer: customer).enumerated() {
        told.append(
          Told(
            atMs: incident.atMs, customer: Int32(customer), ordinal: UInt16(ordinal),
            isSandbox: isSandbox))
      }
    }
    owners.sort { $0.transaction < $1.transaction }
    told.sort { ($0.atMs, $0.customer, $0.ordinal) < ($1.atMs, $1.customer, $1.ordinal) }
  }

  func owner(of transaction: UInt64) -> Owner? {
    let place = lowerBound(owners.indices) { owners[$0].transaction < transaction }
    guard place < owners.count, owners[place].transaction == transaction else { return nil }
    return owners[place]
  }

  /// The place of the first incident at a time or later.
  func firstTold(fromMs: Int64) -> Int { lowerBound(told.indices) { told[$0].atMs < fromMs } }
}
