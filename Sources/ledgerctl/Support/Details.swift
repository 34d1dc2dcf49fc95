// Receipts, uploads, verifications and exceptions as records and tables.
import Projections

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
      "position": position, "receipt_id": receiptID, "occurred_at": timeText(occurredAtMs),
      "country_code": countryCode, "user_identifier": userIdentifier, "line": line,
    ]
  }

  static func table(_ uploads: [Record]) -> TextTable {
    TextTable(
      [
        .number("position"), "occurred_at", "country_code", "user_identifier", .number("line"),
      ], uploads)
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
