// One line of the import file that holds what the App Store signs today: transactions, or a notification.
import AppStoreAuthority
import Base
import ProgramSupport

/// Some uploads of the history as signed objects in place of receipts: the same sales with the same ids, dates and
/// prices.
struct SignedLines {
  let signer: ObjectSigner
  /// How many of a thousand uploads are signed ones.
  let perMille: Int

  /// - Parameter percent: of the events. A receipt makes two of them with its reply, a signed upload one.
  init(signer: ObjectSigner, percent: Int) {
    self.signer = signer
    perMille = 2_000 * percent / (100 + percent)
  }

  /// What an upload shows, newest last; nil where it remains a receipt's.
  func purchases(
    _ customer: Customer, _ upload: PlannedUpload, random: inout RandomSource
  ) -> [Purchase]? {
    guard random.chance(perMille) else { return nil }
    if let prompt = upload.prompt { return [customer.purchases[prompt]] }
    let known = customer.purchases.filter { $0.purchasedMs + 5_000 <= upload.atMs }
      .sorted { ($0.purchasedMs, $0.transaction) < ($1.purchasedMs, $1.transaction) }
    return known.isEmpty ? nil : known.suffix(random.within(1...6))
  }
}

/// The payloads about one customer's purchases as the App Store signs them at a time.
struct SignedFacts {
  let simulation: Simulation
  let customer: Customer
  /// When it signs, in epoch milliseconds.
  let signedMs: Int64

  private var environment: String { customer.isSandbox ? "Sandbox" : "Production" }

  func transaction(_ purchase: Purchase) -> TransactionPayload {
    let product = purchase.product
    var payload = TransactionPayload(
      transactionID: String(purchase.transaction),
      originalTransactionID: String(purchase.original), bundleID: customer.app.bundleID,
      productID: product.id, type: product.kind.signedType, purchaseMs: purchase.purchasedMs,
      originalPurchaseMs: purchase.originallyPurchasedMs, signedMs: signedMs,
      environment: environment)
    if product.kind == .autoRenewable {
      payload.webOrderLineItemID = String(purchase.lineItem)
      payload.subscriptionGroup = customer.app.subscriptionGroup
      payload.expiresMs = purchase.expiresMs
    }
    payload.quantity = purchase.quantity
    payload.appAccountToken = accountToken
    payload.isFamilyShared = purchase.isFamilyShared
    payload.isUpgraded = purchase.upgradedMs <= signedMs
    payload.revocation = revocation(of: purchase)
    payload.offer = purchase.offer.signed
    payload.isRenewal = purchase.transaction != purchase.original
    payload.storefront = StoreCountry(alpha2: customer.storefront.countryCode)
    if !purchase.isFamilyShared {
      let isFree = purchase.offer == .trial
      payload.priceMilliunits = isFree ? 0 : purchase.unitMicros / 1000 * Int64(purchase.quantity)
      payload.currency = customer.storefront.currency.code
    }
    payload.appTransactionID = String(
      simulation.identifiers.transaction(
        customer: customer.index, ordinal: 0xFFFF, isSandbox: customer.isSandbox))
    return payload
  }

  /// The app gives a token to every fourth customer.
  private var accountToken: String? {
    guard customer.index % 4 == 0 else { return nil }
    var random = RandomSource(seed: simulation.seed, 42, UInt64(customer.index))
    return UUID16(random: random.bytes(16))?.description
  }

  private func revocation(of purchase: Purchase) -> TransactionPayload.Revocation? {
    guard purchase.isCancelled(atMs: signedMs) else { return nil }
    // The same share in every statement about the purchase.
    var random = RandomSource(seed: simulation.seed, 43, purchase.transaction)
    let share = [100_000, 50_000, 33_333, 12_500][random.index(weighted: [70, 15, 10, 5])]
    var revocation = TransactionPayload.Revocation(
      dateMs: purchase.cancelledMs, reason: purchase.cancellationReason)
    if random.chance(800) {
      revocation.percentage = share
      revocation.type = share == 100_000 ? "REFUND_FULL" : "REFUND_PRORATED"
    }
    return revocation
  }

  // MARK: Notifications

  /// The notification that tells of a purchase as it stands.
  func notification(
    of purchase: Purchase, _ signer: ObjectSigner, random: inout RandomSource
  ) throws(AuthorityError) -> NotificationPayload {
    let transaction = transaction(purchase)
    let (type, subtype) = kind(of: purchase)
    var payload = NotificationPayload(
      type: type, subtype: subtype, uuid: UUID16(random: random.bytes(16))?.description ?? "",
      signedMs: signedMs, bundleID: customer.app.bundleID, environment: environment)
    if !customer.isSandbox { payload.appAppleID = Int64(customer.app.adamID) }
    payload.transaction = try signer.sign(transaction.json)
    if purchase.product.kind == .autoRenewable {
      var renewal = RenewalPayload(of: transaction)
      if case .voluntary(let atMs) = purchase.lapse, atMs <= signedMs {
        renewal.willRenew = false
        renewal.expirationIntent = purchase.expiresMs <= signedMs ? 1 : nil
      }
      payload.renewal = try signer.sign(renewal.json)
      payload.status = purchase.expiresMs <= signedMs ? 2 : 1
    }
    return payload
  }

  private func kind(of purchase: Purchase) -> (type: String, subtype: String?) {
    if purchase.upgradedMs <= signedMs { return ("DID_CHANGE_RENEWAL_PREF", "UPGRADE") }
    if purchase.reversedMs <= signedMs { return ("REFUND_REVERSED", nil) }
    if purchase.isCancelled(atMs: signedMs) { return ("REFUND", nil) }
    guard purchase.product.kind == .autoRenewable else { return ("ONE_TIME_CHARGE", nil) }
    if purchase.expiresMs <= signedMs { return ("EXPIRED", "VOLUNTARY") }
    if case .voluntary(let atMs) = purchase.lapse, atMs <= signedMs {
      return ("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED")
    }
    return purchase.transaction == purchase.original
      ? ("SUBSCRIBED", "INITIAL_BUY") : ("DID_RENEW", nil)
  }
}

extension ProductKind {
  fileprivate var signedType: TransactionPayload.PurchaseType {
    switch self {
    case .nonConsumable: .nonConsumable
    case .consumable: .consumable
    case .nonRenewing: .nonRenewing
    case .autoRenewable: .autoRenewable
    }
  }
}

extension Offer {
  fileprivate var signed: TransactionOffer? {
    switch self {
    case .regular: nil
    case .trial: TransactionOffer(type: 1, discount: "FREE_TRIAL", period: "P1W")
    case .introductory: TransactionOffer(type: 1, discount: "PAY_AS_YOU_GO", period: "P1M")
    case .promotional(let id):
      TransactionOffer(type: 2, identifier: id, discount: "PAY_AS_YOU_GO", period: "P1M")
    case .code(let name):
      TransactionOffer(type: 3, identifier: name, discount: "PAY_AS_YOU_GO", period: "P1M")
    }
  }
}
