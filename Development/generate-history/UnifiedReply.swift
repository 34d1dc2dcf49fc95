// The App Store's reply about a unified receipt.
import AppStoreAuthority
import Base
import ProgramSupport

struct UnifiedReply {
  let simulation: Simulation
  let customer: Customer
  let upload: PlannedUpload
  /// When the App Store answered.
  let requestMs: Int64
  /// Makes the base64 of the customer's receipt as it was at a time.
  let receipt: (Int64) -> String

  /// How many rows `latest_receipt_info` shows at most: the newest.
  private static let latestLimit = 60

  func write(random: inout RandomSource, to json: inout JSONWriter) {
    let rows = RowWriter(
      atMs: requestMs, subscriptionGroup: customer.app.subscriptionGroup,
      isTyped: random.chance(10))
    let held = UnifiedReceipt.purchases(
      of: customer, receiptMs: upload.receiptMs, device: upload.device)
    let latest = latestRows(random: &random)
    json.beginObject()
    json.field("status", integer: 0)
    json.field("environment", customer.isSandbox ? "Sandbox" : "Production")
    json.key("receipt")
    writeReceipt(held, rows: rows, to: &json)
    if !latest.isEmpty {
      json.key("latest_receipt_info")
      json.beginArray()
      for purchase in latest { rows.write(purchase, .latest, to: &json) }
      json.endArray()
      if !simulation.isSmall { json.field("latest_receipt", receipt(latestReceiptMs)) }
      writePendingRenewals(to: &json)
    }
    json.endObject()
  }

  /// The receipt that was sent, unless something was bought since.
  private var latestReceiptMs: Int64 {
    let newest = customer.purchases.map(\.purchasedMs).filter { $0 <= requestMs }.max() ?? 0
    return newest > upload.receiptMs ? newest + 1000 : upload.receiptMs
  }

  private func writeReceipt(_ held: [Purchase], rows: RowWriter, to json: inout JSONWriter) {
    let facts = ReceiptFacts(simulation: simulation, customer: customer)
    json.beginObject()
    json.field("receipt_type", facts.receiptType)
    json.field("adam_id", integer: facts.adamID)
    json.field("app_item_id", integer: facts.adamID)
    json.field("bundle_id", customer.app.bundleID)
    json.field("application_version", facts.version(atMs: upload.receiptMs))
    json.field("download_id", integer: facts.downloadID)
    json.field("version_external_identifier", integer: facts.versionID(atMs: upload.receiptMs))
    json.dates(.creation, upload.receiptMs)
    json.dates(.request, requestMs)
    json.dates(.originalPurchase, facts.installedMs)
    json.field("original_application_version", facts.originalVersion)
    json.key("in_app")
    json.beginArray()
    for purchase in held { rows.write(purchase, .inApp, to: &json) }
    json.endArray()
    json.endObject()
  }

  /// The subscriptions' periods, mostly the newest first; a few replies mix consumables in.
  private func latestRows(random: inout RandomSource) -> [Purchase] {
    let known = customer.purchases.filter { $0.purchasedMs <= requestMs }
    guard known.contains(where: { $0.product.kind == .autoRenewable }) else { return [] }
    let hasConsumables = random.chance(40)
    var rows: [Purchase] = []
    for purchase in known {
      guard purchase.product.kind == .autoRenewable else {
        if hasConsumables, purchase.product.kind == .consumable { rows.append(purchase) }
        continue
      }
      rows.append(purchase)
      if purchase.secondSinceMs <= requestMs { rows.append(purchase.onSecondDevice) }
    }
    rows.sort { ($0.purchasedMs, $0.transaction) > ($1.purchasedMs, $1.transaction) }
    rows = Array(rows.prefix(Self.latestLimit))
    if random.chance(120) {
      for index in rows.indices.reversed() { rows.swapAt(index, random.below(index + 1)) }
    }
    return rows
  }

  private func writePendingRenewals(to json: inout JSONWriter) {
    let periods = customer.purchases.filter {
      $0.product.kind == .autoRenewable && $0.purchasedMs <= requestMs
    }
    guard let last = periods.max(by: { $0.purchasedMs < $1.purchasedMs }) else { return }
    let isExpired = last.expiresMs <= requestMs
    var willRenew = true
    var intent: String?
    var isInRetry = false
    switch last.lapse {
    case .none: break
    case .voluntary(let atMs):
      willRenew = atMs > requestMs
      intent = isExpired ? "1" : nil
    case .billing:
      isInRetry = isExpired && requestMs < last.expiresMs + 60 * dayMs
      willRenew = !isExpired || isInRetry
      intent = isExpired ? "2" : nil
    }
    json.key("pending_renewal_info")
    json.beginArray()
    json.beginObject()
    if let intent { json.field("expiration_intent", intent) }
    json.field("auto_renew_product_id", last.product.id)
    json.field("product_id", last.product.id)
    json.field("original_transaction_id", String(last.original))
    json.field("auto_renew_status", willRenew ? "1" : "0")
    if intent == "2" { json.field("is_in_billing_retry_period", isInRetry ? "1" : "0") }
    if isInRetry, requestMs < last.expiresMs + 16 * dayMs {
      json.dates(.gracePeriod, last.expiresMs + 16 * dayMs)
    }
    json.endObject()
    json.endArray()
  }
}
