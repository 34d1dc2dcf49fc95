// Receipts, uploads, verifications and exceptions as records and tables.
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
