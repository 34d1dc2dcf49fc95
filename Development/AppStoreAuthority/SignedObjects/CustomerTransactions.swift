// The purchases of invented customers as signed transactions and notifications tell of them.
package import AppStore
private import Base

/// What the App Store signs about the customers of `CustomerReceipts`: the same sales with the same ids and dates as
/// in their receipts, and the price that a client of theirs sends.
package struct CustomerTransactions: Sendable {
  package let customers: CustomerReceipts

  package init(customers: CustomerReceipts) { self.customers = customers }

  private typealias Receipts = CustomerReceipts

  /// A customer's first purchases, 1 to 100, as signed when the receipts are made: what was refunded by then is.
  package func transactions(customer: Int, count: Int) -> [TransactionPayload] {
    statuses(customer: customer, atMs: customers.atMs, count: count)
      .filter { !$0.transaction.isRenewal }.sorted { $0.number < $1.number }
      .map { status in
        var transaction = status.transaction
        transaction.signedMs = customers.atMs
        return transaction
      }
  }

  /// A purchase as it was made.
  func payload(
    _ purchase: ReceiptPurchase, of receipt: Receipt, customer: Int, signedMs: Int64
  ) -> TransactionPayload {
    let isSandbox = receipt.environment != "Production"
    let id = purchase.transactionID ?? ""
    let purchaseMs = purchase.purchaseDateMs ?? 0
    let product = Receipts.products.first { $0.id == purchase.productID } ?? Receipts.products[0]
    let store = Receipts.storefront(customer: customer)
    let types: [TransactionPayload.PurchaseType] = [
      .nonConsumable, .consumable, .nonRenewing, .autoRenewable,
    ]
    var payload = TransactionPayload(
      transactionID: id, originalTransactionID: purchase.originalTransactionID ?? id,
      bundleID: receipt.bundleID, productID: product.id, type: types[product.type],
      purchaseMs: purchaseMs, originalPurchaseMs: purchase.originalPurchaseDateMs ?? purchaseMs,
      signedMs: signedMs, environment: isSandbox ? "Sandbox" : "Production")
    payload.webOrderLineItemID = purchase.webOrderLineItemID
    payload.subscriptionGroup = product.type == 3 ? "21480316" : nil
    payload.expiresMs = purchase.expiresDateMs
    payload.storefront = StoreCountry(alpha2: store.country)
    payload.currency = store.currency
    payload.priceMilliunits = Int64(Receipts.cents(product, customer: customer)) * 10
    payload.appTransactionID = String(
      AppFacts.id("app transaction \(customers.seed) \(customer)", isSandbox: isSandbox))
    if customer % 3 == 1 { payload.appAccountToken = uuid("account", customer, 0) }
    return payload
  }

  /// A UUID that goes by a name.
  private func uuid(_ name: String, _ customer: Int, _ ordinal: Int) -> String {
    let digest = SigningDigest.sha256.hash(
      Array("\(name) \(customers.seed) \(customer) \(ordinal)".utf8))
    return UUID16(random: Array(digest.prefix(16)))?.description ?? ""
  }

  // MARK: Notifications

  /// A notification before it is signed: what lies in it is signed too.
  package struct Notification: Sendable {
    package var payload: NotificationPayload
    package var transaction: TransactionPayload?
    package var renewal: RenewalPayload?
  }

  /// What befalls a customer's first purchases, in the order of time: each is made, and now and then one renews,
  /// ends, is refunded.
  package func incidents(customer: Int) -> [Incident] {
    let receipt = customers.receipt(customer: customer, ordinal: 0)
    var incidents: [Incident] = []
    for (number, purchase) in receipt.purchases.enumerated() {
      let bought = payload(
        purchase, of: receipt, customer: customer, signedMs: purchase.purchaseDateMs ?? 0)
      let story = CustomerScenario(
        customer: customer, bought: bought,
        renewed: { renewed(bought, customer: customer, number: $0, fromMs: $1, untilMs: $2) },
        atMs: customers.atMs)
      incidents +=
        bought.type == .autoRenewable
        ? story.subscription() : story.single(isLast: number == receipt.purchases.count - 1)
    }
    if customer % 50 == 0 { incidents.append(Incident("TEST", nil, nil, atMs: customers.atMs)) }
    // Of equal times the order stays, whatever sorts.
    return incidents.enumerated().sorted {
      ($0.element.atMs, $0.offset) < ($1.element.atMs, $1.offset)
    }
    .map(\.element)
  }

  /// The notifications that tell of a customer's incidents, in the same order.
  package func notifications(customer: Int) -> [Notification] {
    let receipt = customers.receipt(customer: customer, ordinal: 0)
    return incidents(customer: customer).enumerated().map { ordinal, incident in
      notification(incident, of: receipt, uuid: uuid("notification", customer, ordinal))
    }
  }

  /// The next period of a subscription.
  private func renewed(
    _ bought: TransactionPayload, customer: Int, number: Int, fromMs: Int64, untilMs: Int64
  ) -> TransactionPayload {
    let isSandbox = bought.environment == "Sandbox"
    let name =
      "\(customers.seed) \(customer) \(bought.transactionID)" + (number > 0 ? " \(number)" : "")
    var renewed = bought
    renewed.transactionID = String(AppFacts.id("renewal " + name, isSandbox: isSandbox))
    renewed.webOrderLineItemID = String(
      AppFacts.id("renewal line item " + name, isSandbox: isSandbox))
    renewed.purchaseMs = fromMs
    renewed.expiresMs = untilMs
    renewed.isRenewal = true
    return renewed
  }

  /// The notification of an incident among the purchases of a receipt.
  package func notification(_ incident: Incident, of receipt: Receipt, uuid: String) -> Notification
  {
    let isSandbox = receipt.environment != "Production"
    var payload = NotificationPayload(
      type: incident.type, subtype: incident.subtype, uuid: uuid, signedMs: incident.atMs,
      bundleID: receipt.bundleID, environment: isSandbox ? "Sandbox" : "Production")
    if !isSandbox { payload.appAppleID = AppFacts(receipt).adamID }
    payload.consumptionReason = incident.consumptionReason
    guard var transaction = incident.transaction else { return Notification(payload: payload) }
    transaction.signedMs = incident.atMs
    var renewal = incident.renewal
    renewal?.signedMs = incident.atMs
    payload.status = Incident.status(of: transaction, renewal, atMs: incident.atMs)
    return Notification(payload: payload, transaction: transaction, renewal: renewal)
  }
}

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
          TransactionStatus(
            transaction, incident.renewal, changedMs: incident.atMs, number: all.count))
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
