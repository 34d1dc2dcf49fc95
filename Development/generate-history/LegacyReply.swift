// The App Store's reply about a transaction receipt: one flat purchase, no environment.
import AppStoreAuthority
import Base

struct LegacyReply {
  let simulation: Simulation
  let customer: Customer
  let purchase: Purchase
  let upload: PlannedUpload
  /// When the App Store answered.
  let requestMs: Int64

  func write(to json: inout JSONWriter) {
    let latest = latestPeriod
    let isExpired = latest.map { $0.expiresMs <= requestMs } ?? false
    json.beginObject()
    json.field("status", integer: isExpired ? 21006 : 0)
    json.key("receipt")
    writeRow(purchase, to: &json)
    if let latest {
      json.key(isExpired ? "latest_expired_receipt_info" : "latest_receipt_info")
      writeRow(latest, to: &json)
      var isRenewing = true
      if case .voluntary(let atMs) = latest.lapse { isRenewing = atMs > requestMs }
      if !isExpired {
        let receipt = LegacyReceipt(simulation: simulation, customer: customer)
        json.field(
          "latest_receipt",
          receipt.base64(of: latest, device: upload.device, receiptMs: latest.purchasedMs + 1000))
      }
      json.field("auto_renew_status", integer: isRenewing && !isExpired ? 1 : 0)
      json.field("auto_renew_product_id", latest.product.id)
    }
    json.endObject()
  }

  /// The newest period of the receipt's subscription.
  private var latestPeriod: Purchase? {
    guard purchase.product.kind == .autoRenewable else { return nil }
    return customer.purchases.filter {
      $0.original == purchase.original && $0.purchasedMs <= requestMs
    }.max { $0.purchasedMs < $1.purchasedMs }
  }

  private func writeRow(_ purchase: Purchase, to json: inout JSONWriter) {
    json.beginObject()
    let fields = LegacyReceipt.fields(
      simulation: simulation, customer: customer, purchase: purchase, device: upload.device,
      atMs: upload.receiptMs)
    for field in fields {
      json.key(field.key)
      json.string(field.value)
    }
    if purchase.isCancelled(atMs: requestMs) {
      json.dates(.cancellation, purchase.cancelledMs)
      json.field("cancellation_reason", String(purchase.cancellationReason))
    }
    json.endObject()
  }
}
