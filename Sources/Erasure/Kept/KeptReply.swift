// What an erasure keeps of a verifyReceipt reply: status, environment, bundle, rows and renewals.
import AppStore
import Base

/// Writes replies from their decoded parts, so that decoding them again gives the same parts.
struct KeptReply {
  private let names: Pseudonyms

  init(_ names: Pseudonyms) { self.names = names }

  /// One JSON object.
  func bytes(of reply: Reply) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("status", ifPresent: reply.status)
    text("environment", reply.environment, to: &writer)
    writer.key("receipt")
    writer.beginObject()
    text(reply.isLegacy ? "bid" : "bundle_id", reply.bundleID, to: &writer)
    writer.member("request_date_ms", ifPresent: reply.requestDateMs)
    func rows(_ source: ReplyRow.Source) -> [ReplyRow] {
      reply.rows.filter { $0.source == source }
    }
    if reply.isLegacy {
      for row in rows(.flatReceipt) { write(row, to: &writer) }
    } else {
      list("in_app", rows(.inApp), to: &writer)
    }
    writer.endObject()
    let latest = rows(.latestReceiptInfo)
    if !latest.isEmpty { list("latest_receipt_info", latest, to: &writer) }
    // The member is a single object, never a list.
    if let expired = rows(.latestExpiredReceiptInfo).first {
      writer.key("latest_expired_receipt_info")
      writer.beginObject()
      write(expired, to: &writer)
      writer.endObject()
    }
    write(reply.renewals, to: &writer)
    writer.endObject()
    return writer.bytes
  }

  private func list(_ key: StaticString, _ rows: [ReplyRow], to writer: inout JSONWriter) {
    writer.key(key)
    writer.beginArray()
    for row in rows {
      writer.beginObject()
      write(row, to: &writer)
      writer.endObject()
    }
    writer.endArray()
  }

  private func text(_ key: StaticString, _ value: JSONBytes?, to writer: inout JSONWriter) {
    guard let value else { return }
    writer.key(key)
    writer.string(value)
  }

  // MARK: Rows

  private func write(_ row: ReplyRow, to writer: inout JSONWriter) {
    quantity(row.quantity, to: &writer)
    text("product_id", row.productID, to: &writer)
    text("transaction_id", row.transactionID, to: &writer)
    text("original_transaction_id", row.originalTransactionID, to: &writer)
    text("web_order_line_item_id", row.webOrderLineItemID, to: &writer)
    if let token = row.appAccountToken.flatMap({ names.token($0) }) {
      writer.member("app_account_token", token)
    }
    writer.member("purchase_date_ms", ifPresent: row.purchaseDateMs)
    writer.member("original_purchase_date_ms", ifPresent: row.originalPurchaseDateMs)
    writer.member("expires_date_ms", ifPresent: row.expiresAtMs)
    writer.member("cancellation_date_ms", ifPresent: row.cancellationDateMs)
    if let reason = row.cancellationReason {
      writer.member("cancellation_reason", names.code(reason))
    }
    flag("is_trial_period", row.isTrialPeriod, to: &writer)
    flag("is_in_intro_offer_period", row.isInIntroOfferPeriod, to: &writer)
    // Rules only read whether there is an offer, not which.
    if row.hasPromotionalOffer { writer.member("promotional_offer_id", "?") }
    if row.hasOfferCode { writer.member("offer_code_ref_name", "?") }
    if row.isFamilyShared { writer.member("in_app_ownership_type", "FAMILY_SHARED") }
    flag("is_upgraded", row.isUpgraded, to: &writer)
  }

  private func flag(_ key: StaticString, _ value: Bool, to writer: inout JSONWriter) {
    if value { writer.member(key, "true") }
  }

  /// An integer of at most seven digits as it is, anything else as a mark.
  func quantity(_ value: LenientValue, to writer: inout JSONWriter) {
    if case .missing = value { return }
    writer.member("quantity", names.quantity(value.text, isInteger: value.integer != nil))
  }

  // MARK: Renewals

  private func write(_ renewals: [RenewalInfo], to writer: inout JSONWriter) {
    let listed = renewals.filter { !$0.isOutermost }
    if !listed.isEmpty {
      writer.key("pending_renewal_info")
      writer.beginArray()
      for renewal in listed {
        writer.beginObject()
        text("original_transaction_id", renewal.originalTransactionID, to: &writer)
        write(renewal, to: &writer)
        writer.endObject()
      }
      writer.endArray()
    }
    for renewal in renewals where renewal.isOutermost { write(renewal, to: &writer) }
  }

  private func write(_ renewal: RenewalInfo, to writer: inout JSONWriter) {
    text("auto_renew_product_id", renewal.autoRenewProductID, to: &writer)
    if let isOn = renewal.isAutoRenewing { writer.member("auto_renew_status", isOn ? "1" : "0") }
    if let intent = renewal.expirationIntent {
      writer.member("expiration_intent", names.code(intent))
    }
    if let isOn = renewal.isInBillingRetry {
      writer.member("is_in_billing_retry_period", isOn ? "1" : "0")
    }
    writer.member("grace_period_expires_date_ms", ifPresent: renewal.gracePeriodEndMs)
    // An empty renewal still counts as a renewal.
    if renewal.isOutermost, renewal.saysNothing { writer.member("expiration_intent", "") }
  }
}

extension RenewalInfo {
  fileprivate var saysNothing: Bool {
    autoRenewProductID == nil && isAutoRenewing == nil && expirationIntent == nil
      && isInBillingRetry == nil && gracePeriodEndMs == nil
  }
}
