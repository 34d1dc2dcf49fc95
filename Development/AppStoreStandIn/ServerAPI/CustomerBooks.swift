// What the App Store knows of an invented customer now: the customer's story, and what was asked for since.
import AppStore
import AppStoreAuthority

/// The transactions of one customer.
struct CustomerBooks {
  /// In the order in which they came to be as they are.
  private(set) var statuses: [TransactionStatus]
  let customer: Int

  /// - Parameter nowMs: the stand-in's time.
  init(
    _ sales: CustomerTransactions, customer: Int, transactionCount: Int?, memory: StoreMemory,
    nowMs: Int64
  ) {
    self.customer = customer
    statuses = sales.statuses(customer: customer, atMs: nowMs, count: transactionCount)
    addRenewals(memory, nowMs: nowMs)
    for index in statuses.indices { statuses[index].apply(memory) }
    statuses.sort { $0.order < $1.order }
  }

  /// The periods that came with time, or on request.
  private mutating func addRenewals(_ memory: StoreMemory, nowMs: Int64) {
    var number = (statuses.map(\.number).max() ?? 0) + 1
    for original in originals {
      var memory = memory
      guard let last = latest(of: original) else { continue }
      if last.renewal.map({ !$0.willRenew || $0.isInBillingRetry }) ?? false {
        memory.lapses[original] = memory.lapses[original] ?? .voluntary
      }
      let held = last.transaction
      let periods = memory.periods(
        of: [held.asPurchase], isSandbox: held.environment == "Sandbox", nowMs: nowMs)
      for period in periods.dropFirst() {
        var transaction = held
        transaction.transactionID = period.transactionID ?? ""
        transaction.webOrderLineItemID = period.webOrderLineItemID
        transaction.purchaseMs = period.purchaseDateMs ?? nowMs
        transaction.expiresMs = period.expiresDateMs
        transaction.isRenewal = true
        transaction.revocation = nil
        statuses.append(
          TransactionStatus(
            transaction, RenewalPayload(of: transaction), changedMs: transaction.purchaseMs,
            number: number))
        number += 1
      }
      endRenewals(of: original, memory.lapses[original], nowMs: nowMs)
    }
  }

  /// Says of the latest period why no other follows, where that was asked for.
  private mutating func endRenewals(
    of original: String, _ cause: StoreMemory.LapseCause?, nowMs: Int64
  ) {
    guard let cause, let last = latest(of: original), let expiresMs = last.transaction.expiresMs,
      last.renewal?.willRenew ?? true, last.renewal?.isInBillingRetry != true,
      let place = statuses.firstIndex(where: { $0.number == last.number })
    else { return }
    var renewal = last.renewal ?? RenewalPayload(of: last.transaction)
    renewal.willRenew = cause == .billing
    if expiresMs <= nowMs {
      renewal.expirationIntent = cause == .billing ? 2 : 1
      if cause == .billing {
        renewal.isInBillingRetry = nowMs < expiresMs + PendingRenewal.retryMs
        renewal.graceExpiresMs = expiresMs + PendingRenewal.graceMs
      }
    }
    statuses[place].renewal = renewal
  }

  private var subscriptions: [TransactionStatus] {
    statuses.filter { $0.transaction.type == .autoRenewable }
  }

  /// The original transactions of the subscriptions, in the order of their numbers.
  var originals: [String] {
    Set(subscriptions.map(\.transaction.originalTransactionID)).sorted()
  }

  /// The period of a subscription that begins last.
  func latest(of original: String) -> TransactionStatus? {
    subscriptions.filter { $0.transaction.originalTransactionID == original }
      .max { ($0.transaction.purchaseMs, $0.number) < ($1.transaction.purchaseMs, $1.number) }
  }

  func status(of transaction: String) -> TransactionStatus? {
    statuses.first { $0.transaction.transactionID == transaction }
  }
}

extension TransactionStatus {
  /// Refunds and sharing that were asked for.
  fileprivate mutating func apply(_ memory: StoreMemory) {
    let id = transaction.transactionID
    if let refund = memory.refunds[id] {
      transaction.revocation = TransactionPayload.Revocation(
        dateMs: refund.atMs, reason: Int(refund.reason) ?? 0, percentage: refund.percentage,
        type: refund.percentage == 100_000 ? "REFUND_FULL" : "REFUND_PRORATED")
      changedMs = max(changedMs, refund.askedMs ?? refund.atMs)
    } else if let undoneMs = memory.undoneRefunds[id] {
      transaction.revocation = nil
      changedMs = max(changedMs, undoneMs)
    }
    if memory.familyShared.contains(id)
      || memory.familyShared.contains(transaction.originalTransactionID)
    {
      transaction.isFamilyShared = true
      transaction.priceMilliunits = nil
      transaction.currency = nil
    }
  }
}

extension TransactionPayload {
  /// As a receipt holds it.
  fileprivate var asPurchase: ReceiptPurchase {
    var purchase = ReceiptPurchase()
    purchase.productID = productID
    purchase.transactionID = transactionID
    purchase.originalTransactionID = originalTransactionID
    purchase.webOrderLineItemID = webOrderLineItemID
    purchase.purchaseDateMs = purchaseMs
    purchase.originalPurchaseDateMs = originalPurchaseMs
    purchase.expiresDateMs = expiresMs
    return purchase
  }
}
