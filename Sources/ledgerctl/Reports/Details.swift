// Receipts, uploads, verifications and exceptions as records and tables.
import AppStore
import Base
import Projections
import Revenue

extension ReceiptDetail {
  var record: Record {
    [
      "receipt_id": receiptID, "app_family_id": appFamilyID, "bundle_id": bundleID,
      "style": style, "environment": environment, "state": state,
      "is_fraud": fraudReason != nil, "fraud_reason": fraudReason,
      "country_code": countryCode, "user_identifier": userIdentifier,
      "first_position": firstPosition, "last_position": lastPosition,
      "reply_position": replyPosition,
      "created_at": timeText(createdAtMs), "updated_at": timeText(updatedAtMs),
    ]
  }

  var fields: Fields {
    [
      ("receipt", receiptID), ("app family", appFamilyID), ("bundle id", bundleID),
      ("style", style), ("environment", environment ?? "unknown"),
      ("state", fraudReason.map { "\(state), fraud: \($0)" } ?? state),
      ("country", countryCode ?? "unknown"), ("user", userIdentifier ?? "unknown"),
      ("first seen", "\(timeText(createdAtMs)) at position \(firstPosition)"),
      ("last changed", "\(timeText(updatedAtMs)) at position \(lastPosition)"),
    ]
  }
}

extension UploadDetail {
  var record: Record {
    [
      "position": position, "receipt_id": receiptID, "upload_id": uploadID,
      "transactions": transactionCount, "fraud_reason": fraudReason,
      "occurred_at": timeText(occurredAtMs), "country_code": countryCode,
      "user_identifier": userIdentifier, "line": line,
    ]
  }

  var fields: Fields {
    [
      ("upload", uploadID ?? receiptID ?? ""),
      ("transactions", transactionCount.map(String.init) ?? ""),
      ("state", fraudReason.map { "fraud: \($0)" } ?? "valid"),
      ("country", countryCode ?? "unknown"), ("user", userIdentifier ?? "unknown"),
      ("received", timeText(occurredAtMs)),
    ]
  }

  static func table(_ uploads: [Record]) -> TextTable {
    TextTable(
      [
        .number("position"), "occurred_at", "country_code", "user_identifier", .number("line"),
      ], uploads)
  }
}

extension NotificationDetail {
  /// `DID_RENEW`, `SUBSCRIBED/RESUBSCRIBE`
  var name: String { subtype.map { "\(type)/\($0)" } ?? type }

  var record: Record {
    [
      "position": position, "notification_uuid": notificationUUID, "type": type,
      "subtype": subtype, "environment": environment, "bundle_id": bundleID,
      "original_transaction_id": originalTransactionID, "transaction_id": transactionID,
      "signed_at": signedAtMs.map(timeText), "occurred_at": timeText(occurredAtMs),
    ]
  }

  var fields: Fields {
    [
      ("notification", notificationUUID ?? "of version 1"), ("type", name),
      ("environment", environment),
      ("bundle id", bundleID), ("transaction", transactionID ?? "none"),
      ("original transaction", originalTransactionID ?? "none"),
      ("signed", signedAtMs.map(timeText) ?? "unknown"), ("received", timeText(occurredAtMs)),
    ]
  }
}

extension FetchDetail {
  var record: Record {
    [
      "position": position, "call": call, "environment": environment, "bundle_id": bundleID,
      "transaction_id": transactionID, "from": fromMs.map(timeText), "to": toMs.map(timeText),
      "revision": revision, "error_code": errorCode, "has_more": hasMore,
      "occurred_at": timeText(occurredAtMs),
    ]
  }

  var fields: Fields {
    var fields: Fields = [
      ("call", call), ("environment", environment), ("bundle id", bundleID),
      ("transaction", transactionID ?? "none"),
    ]
    if let fromMs, let toMs { fields.append(("range", "\(timeText(fromMs)) to \(timeText(toMs))")) }
    if let errorCode { fields.append(("error", "\(errorCode)")) }
    fields.append(("next page", hasMore ? "follows" : "none"))
    fields.append(("received", timeText(occurredAtMs)))
    return fields
  }
}

extension StatementDetail {
  var record: Record {
    [
      "at": atMs.map(instantText), "position": position, "source": source.rawValue,
      "transaction_id": transactionID, "quantity": quantity, "price": priceText,
      "currency": currency, "storefront": storefront, "revoked_at": revokedAtMs.map(instantText),
      "revocation_reason": revocationReason, "revocation_percentage": revocationPercentage,
      "is_upgraded": isUpgraded,
    ]
  }

  /// What was paid for the whole quantity, exactly.
  private var priceText: String? {
    priceMilliunits.map { Amount.text(micros: $0 * 1000, currency: nil) }
  }

  /// What it says, besides that the sale exists.
  private var says: String {
    var says: [String] = []
    if let quantity { says.append("quantity \(quantity)") }
    if let priceText { says.append("\(priceText) \(currency ?? "of no currency") in all") }
    if let storefront { says.append("storefront \(storefront)") }
    if let revokedAtMs {
      let reason = revocationReason.map { ", reason \($0)" } ?? ""
      // A reply does not say how much.
      let verb = source == .reply ? "canceled" : refundedText(revocationPercentage)
      says.append("\(verb) at \(instantText(revokedAtMs))\(reason)")
    }
    if isUpgraded { says.append("upgraded") }
    return says.joined(separator: ", ")
  }

  static func table(_ statements: [StatementDetail]) -> TextTable {
    var table = TextTable(["statement_at", "event", .number("position"), "says"])
    for statement in statements {
      table.append([
        statement.atMs.map(instantText) ?? "", statement.source.rawValue,
        "\(statement.position)", statement.says,
      ])
    }
    return table
  }
}

extension VerificationDetail {
  var record: Record {
    [
      "position": position, "upload": upload, "receipt_id": receiptID, "authority": authority,
      "outcome": outcome, "environment": environment, "status": status, "reason": reason,
      "occurred_at": timeText(occurredAtMs), "reply_position": replyPosition,
    ]
  }

  var fields: Fields {
    [
      ("of upload", "\(upload)"), ("receipt", receiptID), ("environment", environment),
      ("result", "\(authority) \(outcome)"),
    ]
  }

  static func table(_ verifications: [Record]) -> TextTable {
    TextTable(
      [
        .number("position"), .number("upload"), "occurred_at", "authority", "outcome",
        .number("status"), "environment", "reason",
      ], verifications)
  }
}

extension ExceptionDetail {
  var record: Record {
    [
      "exception": exception, "sale_key": saleKey, "product_id": productID,
      "transaction_id": transactionID, "detail": detail, "position": position,
    ]
  }

  static func table(_ exceptions: [Record]) -> TextTable {
    TextTable(
      ["exception", "sale_key", "product_id", "transaction_id", .number("position"), "detail"],
      exceptions)
  }
}

// MARK: - One purchase in a receipt or a reply, for tables and JSON

/// A purchase as text.
struct PurchaseLine: Equatable {
  var productID: String?
  var transactionID: String?
  var originalTransactionID: String?
  var webOrderLineItemID: String?
  var quantity: String?
  /// As in `app add --product`.
  var type: String?
  var purchasedAt: String?
  var originallyPurchasedAt: String?
  var expiresAt: String?
  var canceledAt: String?
  /// `trial`, `introductory_offer` and the like.
  var traits: [String] = []

  init(_ purchase: ReceiptPurchase) {
    productID = purchase.productID
    transactionID = purchase.transactionID
    originalTransactionID = purchase.originalTransactionID
    webOrderLineItemID = purchase.webOrderLineItemID
    quantity = purchase.quantity
    type = purchase.productType.map(Self.typeName)
    purchasedAt = purchase.purchaseDateMs.map(instantText)
    originallyPurchasedAt = purchase.originalPurchaseDateMs.map(instantText)
    expiresAt = purchase.expiresDateMs.map(instantText)
    canceledAt = purchase.cancellationDateMs.map(instantText)
    if purchase.isTrialPeriod { traits.append("trial") }
    if purchase.isInIntroOfferPeriod { traits.append("introductory_offer") }
    if let offer = purchase.promotionalOfferID, !offer.isEmpty {
      traits.append("promotional_offer")
    }
  }

  init(_ row: ReplyRow) {
    func text(_ bytes: JSONBytes?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
    productID = text(row.productID)
    transactionID = text(row.transactionID)
    originalTransactionID = text(row.originalTransactionID)
    webOrderLineItemID = text(row.webOrderLineItemID)
    quantity = text(row.quantity.id)
    purchasedAt = row.purchaseDateMs.map(instantText)
    originallyPurchasedAt = row.originalPurchaseDateMs.map(instantText)
    canceledAt = row.cancellationDateMs.map(instantText)
    if row.isTrialPeriod { traits.append("trial") }
    if row.isInIntroOfferPeriod { traits.append("introductory_offer") }
    if row.hasPromotionalOffer { traits.append("promotional_offer") }
    if row.hasOfferCode { traits.append("offer_code") }
    if row.isFamilyShared { traits.append("family_shared") }
    if row.isUpgraded { traits.append("upgraded") }
  }

  private static func typeName(_ type: Int) -> String {
    switch type {
    case 0: "non_consumable"
    case 1: "consumable"
    case 2: "non_renewing"
    case 3: "auto_renewable"
    case 4: "free_subscription"
    default: "\(type)"
    }
  }

  var record: Record {
    [
      "product_id": productID, "transaction_id": transactionID,
      "original_transaction_id": originalTransactionID,
      "web_order_line_item_id": webOrderLineItemID, "quantity": quantity, "type": type,
      "purchased_at": purchasedAt, "originally_purchased_at": originallyPurchasedAt,
      "expires_at": expiresAt, "canceled_at": canceledAt, "traits": traits,
    ]
  }

  /// Empty columns are left out, except those that identify a purchase.
  static func table(_ lines: [PurchaseLine]) -> TextTable {
    let all: [(column: TextTable.Column, cell: (PurchaseLine) -> String?)] = [
      ("product_id", \.productID), ("transaction_id", \.transactionID),
      ("original_transaction_id", \.originalTransactionID),
      (.number("quantity"), \.quantity), ("type", \.type),
      ("purchased_at", \.purchasedAt), ("expires_at", \.expiresAt),
      ("canceled_at", \.canceledAt),
      ("traits", { $0.traits.isEmpty ? nil : $0.traits.joined(separator: ",") }),
    ]
    let used = all.enumerated().filter { index, entry in
      index < 2 || lines.contains { entry.cell($0) != nil }
    }.map(\.element)
    var table = TextTable(used.map(\.column))
    for line in lines { table.append(used.map { $0.cell(line) ?? "" }) }
    return table
  }
}

/// A time in a receipt; one outside the supported range is shown in milliseconds.
func instantText(_ epochMs: Int64) -> String {
  Timestamp.rangeMs.contains(epochMs) ? timeText(epochMs) : "\(epochMs) ms"
}
