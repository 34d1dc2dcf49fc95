// verifyReceipt without its misbehaviour: a posted body in, a reply out.
import AppStore
import AppStoreAuthority
import Base

/// Answers requests as the App Store does.
struct FakeVerifyReceipt: Sendable {
  /// A reply and the status that it bears.
  struct Answer {
    let status: Int
    let body: [UInt8]

    init(status: Int, body: [UInt8]) {
      self.status = status
      self.body = body
    }

    /// A status alone, as the App Store sends it for most refusals.
    init(status: Int) {
      self.init(status: status, body: Array("{\"status\":\(status)}".utf8))
    }
  }

  let signer: ReceiptSigner
  let verifier: ReceiptVerifier
  /// What `password` must be for receipts with subscriptions; nil accepts any.
  let sharedSecret: String?

  init(authority: TestAuthority, sharedSecret: String?) throws {
    signer = ReceiptSigner(authority: authority)
    verifier = try authority.verifier()
    self.sharedSecret = sharedSecret
  }

  func answer(
    _ body: [UInt8], at endpoint: AppStoreEndpoint, memory: StoreMemory, nowMs: Int64,
    isTyped: Bool
  ) -> Answer {
    guard let request = try? JSONValue(body), case .object = request else {
      return Answer(status: 21000)
    }
    // `try?` here and below: the App Store gives no cause either.
    guard let text = request["receipt-data"]?.stringValue,
      let file = try? Base64.decode(Array(text.utf8)), let receipt = try? ReceiptFile.decode(file)
    else { return Answer(status: 21002) }
    if case .invalid = verifier.verify(file, receipt: receipt) { return Answer(status: 21003) }

    let legacy = receipt.style == .transaction ? LegacyFields(file) : nil
    let environment = receipt.environment ?? legacy?.environment ?? "Production"
    let isSandbox = environment.contains("Sandbox")
    if isSandbox, endpoint == .production { return Answer(status: 21007) }
    if !isSandbox, endpoint == .sandbox { return Answer(status: 21008) }
    let hasSubscription = receipt.purchases.contains { $0.expiresDateMs != nil }
    if hasSubscription, let sharedSecret, request["password"]?.stringValue != sharedSecret {
      return Answer(status: 21004)
    }
    do {
      if let legacy {
        let reply = try TransactionAnswer(
          receipt: receipt, fields: legacy.purchaseInfo, memory: memory, signer: signer,
          isSandbox: isSandbox, nowMs: nowMs
        ).reply()
        var json = JSONWriter()
        reply.write(to: &json)
        return Answer(status: reply.status, body: json.bytes)
      }
      let reply = UnifiedAnswer(
        receipt: receipt, receiptText: Array(text.utf8), memory: memory, signer: signer,
        nowMs: nowMs, isTyped: isTyped)
      return Answer(status: 0, body: try reply.bytes())
    } catch {
      return Answer(status: 21009)
    }
  }
}

/// What the two property lists of a transaction receipt say.
private struct LegacyFields {
  var environment: String?
  var purchaseInfo: [String: String] = [:]

  init(_ file: [UInt8]) {
    let outer = Self.texts(file)
    environment = outer["environment"]
    if let text = outer["purchase-info"], let info = try? Base64.decode(Array(text.utf8)) {
      purchaseInfo = Self.texts(info)
    }
  }

  private static func texts(_ bytes: [UInt8]) -> [String: String] {
    bytes.withUnsafeBytes { (try? PropertyList.texts(in: $0)) ?? [:] }
  }
}

struct UnifiedAnswer {
  let receipt: Receipt
  /// The receipt's base64, as it was sent.
  let receiptText: [UInt8]
  let memory: StoreMemory
  let signer: ReceiptSigner
  let nowMs: Int64
  let isTyped: Bool

  /// How many rows `latest_receipt_info` shows: the newest.
  private static let latestMax = 100

  private var isSandbox: Bool { receipt.environment?.contains("Sandbox") ?? false }

  func bytes() throws(AuthorityError) -> [UInt8] {
    let subscriptions = subscriptions()
    let group = AppFacts.id("group \(receipt.bundleID)", isSandbox: false) % 100_000_000
    func rows(_ purchases: [ReceiptPurchase]) -> [PurchaseRow] {
      purchases.map { row($0, group: String(group)) }
    }
    let latestReceipt =
      subscriptions.isEmpty
      ? nil : String(decoding: try latestReceipt(subscriptions), as: UTF8.self)
    let reply = UnifiedReply(
      receipt, AppFacts(receipt), ReplyStyle(isTyped: isTyped, hasTypedDates: isTyped),
      nowMs: nowMs, inApp: rows(receipt.purchases),
      latest: subscriptions.isEmpty ? [] : rows(latest(subscriptions)),
      renewals: subscriptions.compactMap(renewal), latestReceipt: latestReceipt)
    var json = JSONWriter()
    json.reserve(16_384)
    reply.write(to: &json)
    return json.bytes
  }

  private func row(_ purchase: ReceiptPurchase, group: String) -> PurchaseRow {
    var row = PurchaseRow(purchase, subscriptionGroup: group)
    row.isFamilyShared = memory.isFamilyShared(purchase)
    row.refund = memory.refund(of: purchase).map { ($0.atMs, $0.reason) }
    return row
  }

  /// The periods of each subscription, in the order in which the receipt names them.
  private func subscriptions() -> [[ReceiptPurchase]] {
    var originals: [String] = []
    var held: [String: [ReceiptPurchase]] = [:]
    for purchase in receipt.purchases where purchase.expiresDateMs != nil {
      let original = purchase.originalTransactionID ?? ""
      if held[original] == nil { originals.append(original) }
      held[original, default: []].append(purchase)
    }
    return originals.map {
      memory.periods(of: held[$0] ?? [], isSandbox: isSandbox, nowMs: nowMs)
    }
  }

  /// The newest rows of `latest_receipt_info`.
  private func latest(_ subscriptions: [[ReceiptPurchase]]) -> [ReceiptPurchase] {
    var latest = subscriptions.flatMap { $0 }
    if memory.latestHoldsConsumables {
      latest += receipt.purchases.filter { $0.productType == 1 }
    }
    latest += latest.compactMap { memory.secondDevice(of: $0, isSandbox: isSandbox) }
    latest.sort { ($0.purchaseDateMs ?? 0) > ($1.purchaseDateMs ?? 0) }
    return Array(latest.prefix(Self.latestMax))
  }

  /// The receipt that was sent, or, after a renewal, one that holds the newest periods.
  private func latestReceipt(
    _ subscriptions: [[ReceiptPurchase]]
  ) throws(AuthorityError) -> [UInt8] {
    let known = Set(receipt.purchases.compactMap(\.transactionID))
    let renewals = subscriptions.compactMap(\.last).filter {
      !known.contains($0.transactionID ?? "")
    }
    if renewals.isEmpty { return receiptText }
    var latest = receipt
    latest.creationDateMs = nowMs
    latest.purchases += renewals
    return Base64.encode(try signer.unified(latest))
  }

  private func renewal(after periods: [ReceiptPurchase]) -> PendingRenewal? {
    guard let last = periods.last, let original = last.originalTransactionID else { return nil }
    let lapse = memory.lapses[original]
    return PendingRenewal(
      after: last, willRenew: memory.renewsByItself && lapse != .voluntary,
      end: lapse == .billing ? .billing : .voluntary, nowMs: nowMs)
  }
}

struct TransactionAnswer {
  let receipt: Receipt
  /// The pairs of `purchase-info`.
  let fields: [String: String]
  let memory: StoreMemory
  let signer: ReceiptSigner
  let isSandbox: Bool
  let nowMs: Int64

  func reply() throws(AuthorityError) -> TransactionReply {
    let purchase = receipt.purchases.first ?? ReceiptPurchase()
    guard purchase.expiresDateMs != nil else { return TransactionReply(row(purchase), latest: nil) }
    let periods = memory.periods(of: [purchase], isSandbox: isSandbox, nowMs: nowMs)
    let latest = periods.last ?? purchase
    let isExpired = (latest.expiresDateMs ?? 0) <= nowMs
    var newest = receipt
    newest.environment = isSandbox ? "Sandbox" : "Production"
    newest.purchases = [latest]
    return TransactionReply(
      row(purchase),
      latest: TransactionReply.Latest(
        productID: latest.productID ?? "", row: row(latest), isExpired: isExpired,
        willRenew: memory.renewsByItself
          && memory.lapses[latest.originalTransactionID ?? ""] == nil,
        receipt: isExpired ? nil : Base64.text(try signer.transaction(newest))))
  }

  /// What the receipt says of its own purchase; of a renewal what differs.
  private func row(_ purchase: ReceiptPurchase) -> TransactionReply.Row {
    var fields = fields
    fields["transaction-id"] = purchase.transactionID
    fields["web-order-line-item-id"] = purchase.webOrderLineItemID
    if let purchaseMs = purchase.purchaseDateMs {
      fields["purchase-date"] = StoreTime.greenwich(purchaseMs)
      fields["purchase-date-ms"] = String(purchaseMs)
      fields["purchase-date-pst"] = StoreTime.losAngeles(purchaseMs)
    }
    if let expiresMs = purchase.expiresDateMs {
      fields["expires-date"] = String(expiresMs)
      fields["expires-date-formatted"] = StoreTime.greenwich(expiresMs)
      fields["expires-date-formatted-pst"] = StoreTime.losAngeles(expiresMs)
    }
    return (
      fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) },
      memory.refund(of: purchase).map { ($0.atMs, $0.reason) }
    )
  }
}
