// What notifications say of a sale, as records and as a table.
import Projections

/// `50.000 % refunded`
/// - Parameter percentage: 100,000 is all; nil if only the refund is known.
func refundedText(_ percentage: Int64?) -> String {
  guard let percentage else { return "all refunded" }
  return "\(percentage / 1000).\("\(1000 + percentage % 1000)".dropFirst()) % refunded"
}

extension SaleNotification {
  var record: Record {
    [
      "signed_at": notification.signedAtMs.map(timeText),
      "occurred_at": timeText(notification.occurredAtMs), "position": notification.position,
      "notification_uuid": notification.notificationUUID, "type": notification.type,
      "subtype": notification.subtype, "consumption_request_reason": consumptionRequestReason,
      "revoked_at": revokedAtMs.map(instantText), "revocation_type": revocationType,
      "revocation_reason": revocationReason, "revocation_percentage": revocationPercentage,
    ]
  }

  /// What it says besides its type.
  private var says: String {
    var says: [String] = []
    if let consumptionRequestReason { says.append("asked for: \(consumptionRequestReason)") }
    if let revokedAtMs {
      says.append("\(refundedText(revocationPercentage)) at \(instantText(revokedAtMs))")
      if let revocationReason { says.append("reason \(revocationReason)") }
    }
    if let revocationType { says.append(revocationType) }
    return says.joined(separator: ", ")
  }

  static func table(_ notifications: [SaleNotification]) -> TextTable {
    var table = TextTable(["at", "type", "subtype", .number("position"), "says"])
    for one in notifications {
      table.append([
        timeText(one.notification.atMs), one.notification.type,
        one.notification.subtype ?? "", "\(one.notification.position)", one.says,
      ])
    }
    return table
  }
}
