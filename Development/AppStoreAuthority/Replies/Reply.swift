// What verifyReceipt replies about a receipt of either style.
package import AppStore
package import Base

/// The reply about a unified receipt.
package struct UnifiedReply {
  private let receipt: Receipt
  private let facts: AppFacts
  private let style: ReplyStyle
  /// When the App Store replies.
  private let nowMs: Int64
  private let inApp: [PurchaseRow]
  /// The rows of `latest_receipt_info`; none where nothing is a subscription.
  private let latest: [PurchaseRow]
  private let renewals: [PendingRenewal]
  /// The newest receipt in base64; nil leaves it out.
  private let latestReceipt: String?

  package init(
    _ receipt: Receipt, _ facts: AppFacts, _ style: ReplyStyle, nowMs: Int64, inApp: [PurchaseRow],
    latest: [PurchaseRow], renewals: [PendingRenewal], latestReceipt: String?
  ) {
    self.receipt = receipt
    self.facts = facts
    self.style = style
    self.nowMs = nowMs
    self.inApp = inApp
    self.latest = latest
    self.renewals = renewals
    self.latestReceipt = latestReceipt
  }

  package func write(to json: inout JSONWriter) {
    let isSandbox = receipt.environment?.contains("Sandbox") ?? false
    json.beginObject()
    json.member("status", 0)
    json.member("environment", isSandbox ? "Sandbox" : "Production")
    json.key("receipt")
    writeReceipt(to: &json)
    if !latest.isEmpty {
      json.key("latest_receipt_info")
      json.beginArray()
      for row in latest { row.write(isLatest: true, style, to: &json) }
      json.endArray()
      json.member("latest_receipt", ifPresent: latestReceipt)
      json.key("pending_renewal_info")
      json.beginArray()
      for renewal in renewals { renewal.write(style, to: &json) }
      json.endArray()
    }
    json.endObject()
  }

  private func writeReceipt(to json: inout JSONWriter) {
    json.beginObject()
    json.member("receipt_type", receipt.environment ?? "Production")
    json.member("adam_id", facts.adamID)
    json.member("app_item_id", facts.adamID)
    json.member("bundle_id", receipt.bundleID)
    json.member("application_version", receipt.applicationVersion ?? "")
    json.key("download_id")
    if let downloadID = facts.downloadID { json.integer(downloadID) } else { json.null() }
    json.member("version_external_identifier", facts.versionID)
    style.dates(.creation, receipt.creationDateMs, to: &json)
    style.dates(.request, nowMs, to: &json)
    style.dates(.originalPurchase, facts.originalPurchaseMs, to: &json)
    json.member("original_application_version", receipt.originalApplicationVersion ?? "")
    json.key("in_app")
    json.beginArray()
    for row in inApp { row.write(isLatest: false, style, to: &json) }
    json.endArray()
    json.endObject()
  }
}

/// The reply about a transaction receipt: one flat purchase, no environment.
package struct TransactionReply {
  /// A purchase: pairs as `purchase-info` has them, and its refund.
  package typealias Row = (fields: [(String, String)], refund: ReplyRefund?)

  /// The newest period of the receipt's subscription.
  package struct Latest {
    private let productID: String
    private let row: Row
    fileprivate let isExpired: Bool
    private let willRenew: Bool
    /// In base64, unless it has expired.
    private let receipt: String?

    package init(
      productID: String, row: Row, isExpired: Bool, willRenew: Bool, receipt: String?
    ) {
      self.productID = productID
      self.row = row
      self.isExpired = isExpired
      self.willRenew = willRenew
      self.receipt = receipt
    }

    fileprivate func write(to json: inout JSONWriter) {
      json.key(isExpired ? "latest_expired_receipt_info" : "latest_receipt_info")
      TransactionReply.write(row, to: &json)
      json.member("latest_receipt", ifPresent: receipt)
      json.member("auto_renew_status", willRenew && !isExpired ? 1 : 0)
      json.member("auto_renew_product_id", productID)
    }
  }

  private let row: Row
  private let latest: Latest?

  /// - Parameter latest: nil where the purchase is not of a subscription.
  package init(_ row: Row, latest: Latest?) {
    self.row = row
    self.latest = latest
  }

  package var status: Int { latest?.isExpired == true ? 21006 : 0 }

  package func write(to json: inout JSONWriter) {
    json.beginObject()
    json.member("status", status)
    json.key("receipt")
    Self.write(row, to: &json)
    latest?.write(to: &json)
    json.endObject()
  }

  /// The fields with `_` for `-`.
  private static func write(_ row: Row, to json: inout JSONWriter) {
    json.beginObject()
    for (key, value) in row.fields {
      json.key(String(key.map { $0 == "-" ? "_" : $0 }))
      json.string(value)
    }
    if let refund = row.refund {
      ReplyStyle(isTyped: false, hasTypedDates: false).dates(.cancellation, refund.atMs, to: &json)
      json.member("cancellation_reason", refund.reason)
    }
    json.endObject()
  }
}
