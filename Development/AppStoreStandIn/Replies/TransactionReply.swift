// The reply about a transaction receipt: one flat purchase, no environment.
import AppStore
import AppStoreAuthority
import Base

struct TransactionReply {
  let receipt: Receipt
  /// The pairs of `purchase-info`, which the reply repeats with `_` for `-`.
  let fields: [String: String]
  let memory: StoreMemory
  let signer: ReceiptSigner
  let isSandbox: Bool
  let nowMs: Int64

  func answer() throws(AuthorityError) -> FakeVerifyReceipt.Answer {
    let purchase = receipt.purchases.first ?? ReceiptPurchase()
    var json = JSONWriter()
    json.beginObject()
    json.key("receipt")
    writeRow(purchase, to: &json)
    guard purchase.expiresDateMs != nil else {
      json.field("status", integer: 0)
      json.endObject()
      return FakeVerifyReceipt.Answer(status: 0, body: json.bytes)
    }
    let periods = memory.periods(of: [purchase], isSandbox: isSandbox, nowMs: nowMs)
    let latest = periods.last ?? purchase
    let isExpired = (latest.expiresDateMs ?? 0) <= nowMs
    json.key(isExpired ? "latest_expired_receipt_info" : "latest_receipt_info")
    writeRow(latest, to: &json)
    let status = isExpired ? 21006 : 0
    json.field("status", integer: status)
    if !isExpired {
      var newest = receipt
      newest.environment = isSandbox ? "Sandbox" : "Production"
      newest.purchases = [latest]
      json.field("latest_receipt", Base64.text(try signer.transaction(newest)))
    }
    let original = latest.originalTransactionID ?? ""
    let willRenew = !isExpired && memory.renewsByItself && memory.lapses[original] == nil
    json.field("auto_renew_status", integer: willRenew ? 1 : 0)
    json.field("auto_renew_product_id", latest.productID ?? "")
    json.endObject()
    return FakeVerifyReceipt.Answer(status: status, body: json.bytes)
  }

  /// What the receipt says of its own purchase; of a renewal what differs.
  private func writeRow(_ purchase: ReceiptPurchase, to json: inout JSONWriter) {
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
    if let refund = memory.refund(of: purchase) {
      fields["cancellation-date"] = StoreTime.greenwich(refund.atMs)
      fields["cancellation-date-ms"] = String(refund.atMs)
      fields["cancellation-date-pst"] = StoreTime.losAngeles(refund.atMs)
      fields["cancellation-reason"] = refund.reason
    }
    json.beginObject()
    for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
      json.key(String(key.map { $0 == "-" ? "_" : $0 }))
      json.string(value)
    }
    json.endObject()
  }
}
