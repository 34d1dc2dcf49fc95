// The purchases of invented customers as signed transactions and notifications tell of them.
private import AppStore
private import Base

/// What the App Store signs about the customers of `CustomerReceipts`: the same sales with the same ids and dates as
/// in their receipts, and the price that a client of theirs sends.
package struct CustomerTransactions: Sendable {
  package let customers: CustomerReceipts

  package init(customers: CustomerReceipts) { self.customers = customers }

  private typealias Receipts = CustomerReceipts

  /// A customer's first purchases, 1 to 100, as signed when the receipts are made.
  package func transactions(customer: Int, count: Int) -> [TransactionPayload] {
    // A receipt holds at least two purchases.
    let receipt = customers.receipt(customer: customer, ordinal: max(0, count - 2))
    return receipt.purchases.prefix(count).map {
      payload($0, of: receipt, customer: customer, signedMs: customers.atMs)
    }
  }

  private func payload(
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

  /// What happens to a purchase: the type that tells of it, what the transaction says then, and when.
  private typealias Incident = (
    type: String, subtype: String?, transaction: TransactionPayload?, atMs: Int64
  )

  /// What the App Store notifies of about a customer, in the order of time: each purchase, and now and then a
  /// renewal, a refund, its reversal, a test.
  package func notifications(customer: Int) -> [Notification] {
    let receipt = customers.receipt(customer: customer, ordinal: 0)
    var incidents: [Incident] = []
    for (number, purchase) in receipt.purchases.enumerated() {
      let boughtMs = purchase.purchaseDateMs ?? 0
      let bought = payload(purchase, of: receipt, customer: customer, signedMs: boughtMs)
      if bought.type == .autoRenewable {
        incidents += subscription(bought, customer: customer)
      } else {
        let isLast = number == receipt.purchases.count - 1
        incidents += single(bought, isRefunded: isLast && customer % 5 == 1, customer: customer)
      }
    }
    if customer % 50 == 0 { incidents.append(("TEST", nil, nil, customers.atMs)) }
    return incidents.enumerated().map {
      notification($1, of: receipt, customer: customer, ordinal: $0)
    }.sorted { $0.payload.signedMs < $1.payload.signedMs }
  }

  private func single(
    _ bought: TransactionPayload, isRefunded: Bool, customer: Int
  ) -> [Incident] {
    var incidents: [Incident] = [("ONE_TIME_CHARGE", nil, bought, bought.purchaseMs + 2_000)]
    guard isRefunded else { return incidents }
    let quarterMs = (customers.atMs - bought.purchaseMs) / 4
    let refundMs = bought.purchaseMs + 2 * quarterMs
    incidents.append(("REFUND", nil, refunded(bought, atMs: refundMs - 60_000), refundMs))
    if customer % 10 == 1 {
      incidents.append(("REFUND_REVERSED", nil, bought, refundMs + quarterMs))
    }
    return incidents
  }

  private func subscription(_ bought: TransactionPayload, customer: Int) -> [Incident] {
    let laterMs = customers.atMs - 1_000
    return [
      ("SUBSCRIBED", "INITIAL_BUY", bought, bought.purchaseMs + 2_000),
      customer % 2 == 0
        ? ("DID_RENEW", nil, renewed(bought, customer: customer), laterMs)
        : ("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", bought, laterMs),
    ]
  }

  private func refunded(_ bought: TransactionPayload, atMs: Int64) -> TransactionPayload {
    var refunded = bought
    refunded.revocation = TransactionPayload.Revocation(
      dateMs: atMs / 1000 * 1000, reason: 1, percentage: 100_000, type: "REFUND_FULL")
    return refunded
  }

  /// The next period. It begins when it is told of, whatever was left of the one before.
  private func renewed(_ bought: TransactionPayload, customer: Int) -> TransactionPayload {
    let isSandbox = bought.environment == "Sandbox"
    let name = "\(customers.seed) \(customer) \(bought.transactionID)"
    var renewed = bought
    renewed.transactionID = String(AppFacts.id("renewal " + name, isSandbox: isSandbox))
    renewed.webOrderLineItemID = String(
      AppFacts.id("renewal line item " + name, isSandbox: isSandbox))
    renewed.purchaseMs = customers.atMs / 1000 * 1000 - hourMs
    renewed.expiresMs = bought.expiresMs.map { renewed.purchaseMs + $0 - bought.purchaseMs }
    renewed.isRenewal = true
    return renewed
  }

  private func notification(
    _ incident: Incident, of receipt: Receipt, customer: Int, ordinal: Int
  ) -> Notification {
    let isSandbox = receipt.environment != "Production"
    var payload = NotificationPayload(
      type: incident.type, subtype: incident.subtype,
      uuid: uuid("notification", customer, ordinal), signedMs: incident.atMs,
      bundleID: receipt.bundleID, environment: isSandbox ? "Sandbox" : "Production")
    if !isSandbox { payload.appAppleID = AppFacts(receipt).adamID }
    guard var transaction = incident.transaction else { return Notification(payload: payload) }
    transaction.signedMs = incident.atMs
    var renewal: RenewalPayload?
    if transaction.type == .autoRenewable {
      renewal = RenewalPayload(of: transaction)
      renewal?.willRenew = incident.subtype != "AUTO_RENEW_DISABLED"
      payload.status = 1
    }
    return Notification(payload: payload, transaction: transaction, renewal: renewal)
  }
}
