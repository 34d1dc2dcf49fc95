// The reply about a unified receipt.
import AppStore
import AppStoreAuthority
import Base

struct UnifiedReply {
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
  private var rows: RowWriter {
    RowWriter(memory: memory, bundleID: receipt.bundleID, isTyped: isTyped)
  }

  func bytes() throws(AuthorityError) -> [UInt8] {
    let subscriptions = subscriptions()
    var json = JSONWriter()
    json.reserve(16_384)
    json.beginObject()
    json.field("status", integer: 0)
    json.field("environment", isSandbox ? "Sandbox" : "Production")
    json.key("receipt")
    writeReceipt(to: &json)
    if !subscriptions.isEmpty {
      writeLatest(subscriptions, to: &json)
      json.key("latest_receipt")
      try latestReceipt(subscriptions).withUnsafeBytes { json.string($0) }
      writePending(subscriptions, to: &json)
    }
    json.endObject()
    return json.bytes
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

  private func writeReceipt(to json: inout JSONWriter) {
    let facts = AppFacts(receipt)
    json.beginObject()
    json.field("receipt_type", receipt.environment ?? "Production")
    json.field("adam_id", integer: Int(facts.adamID))
    json.field("app_item_id", integer: Int(facts.adamID))
    json.field("bundle_id", receipt.bundleID)
    json.field("application_version", receipt.applicationVersion ?? "")
    json.key("download_id")
    if let downloadID = facts.downloadID { json.integer(downloadID) } else { json.null() }
    json.field("version_external_identifier", integer: Int(facts.versionID))
    rows.dates(.creation, receipt.creationDateMs, to: &json)
    rows.dates(.request, nowMs, to: &json)
    rows.dates(.originalPurchase, facts.originalPurchaseMs, to: &json)
    json.field("original_application_version", receipt.originalApplicationVersion ?? "")
    json.key("in_app")
    json.beginArray()
    for purchase in receipt.purchases { rows.write(purchase, isLatest: false, to: &json) }
    json.endArray()
    json.endObject()
  }

  private func writeLatest(_ subscriptions: [[ReceiptPurchase]], to json: inout JSONWriter) {
    var latest = subscriptions.flatMap { $0 }
    if memory.latestHoldsConsumables {
      latest += receipt.purchases.filter { $0.productType == 1 }
    }
    latest += latest.compactMap { memory.secondDevice(of: $0, isSandbox: isSandbox) }
    latest.sort { ($0.purchaseDateMs ?? 0) > ($1.purchaseDateMs ?? 0) }
    json.key("latest_receipt_info")
    json.beginArray()
    for purchase in latest.prefix(Self.latestMax) {
      rows.write(purchase, isLatest: true, to: &json)
    }
    json.endArray()
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

  private func writePending(_ subscriptions: [[ReceiptPurchase]], to json: inout JSONWriter) {
    json.key("pending_renewal_info")
    json.beginArray()
    for periods in subscriptions {
      guard let last = periods.last, let original = last.originalTransactionID else { continue }
      let expiresMs = last.expiresDateMs ?? 0
      let isExpired = expiresMs <= nowMs
      let lapse = memory.lapses[original]
      json.beginObject()
      if isExpired { json.field("expiration_intent", lapse == .billing ? "2" : "1") }
      json.field("auto_renew_product_id", last.productID ?? "")
      json.field("product_id", last.productID ?? "")
      json.field("original_transaction_id", original)
      let willRenew = memory.renewsByItself && lapse != .voluntary
      json.field("auto_renew_status", willRenew ? "1" : "0")
      if isExpired, lapse == .billing {
        json.field("is_in_billing_retry_period", nowMs < expiresMs + 60 * dayMs ? "1" : "0")
        if nowMs < expiresMs + 16 * dayMs {
          rows.dates(.gracePeriod, expiresMs + 16 * dayMs, to: &json)
        }
      }
      json.endObject()
    }
    json.endArray()
  }
}
