// Version 1 notifications: a reply about a receipt, and the event that it reports.
package import Base

/// What an event keeps of a version 1 notification in addition to its reply, which is its `unified_receipt`. Source:
/// `responseBodyV1` in Apple's documentation of App Store Server Notifications.
package struct LegacyNotification {
  /// `notification_type`.
  package private(set) var type: JSONBytes?
  /// `bid`.
  package private(set) var bundleID: JSONBytes?

  /// The members that are kept, as sent. No other is stored: `password` is a secret.
  package static let members: [StaticString] = [
    "notification_type", "bid", "environment", "original_transaction_id", "auto_renew_status",
    "auto_renew_product_id", "auto_renew_adam_id", "auto_renew_status_change_date_ms",
    "expiration_intent",
  ]
  /// The longest value of a member, in bytes.
  package static let memberBytesMax = 255

  /// Reads a body, or what an event keeps of it. The texts live as long as the bytes and the keeper.
  package init(_ body: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var cursor = JSONCursor(body)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "notification_type" {
        type = try keeper.read(&cursor).id
      } else if key == "bid" {
        bundleID = try keeper.read(&cursor).id
      } else {
        try cursor.skipValue()
      }
    }
  }

  /// The row that such a notification is about, as far as its reply shows: among its purchases, the one with the latest
  /// cancellation if `type` is about one, otherwise the one with the latest purchase date.
  package static func subject(of rows: [ReplyRow], type: JSONBytes?) -> ReplyRow? {
    let speaksOfRefund = ["CANCEL", "REFUND"].contains { (name: StaticString) in
      type.map { JSONString(raw: $0, hasEscapes: false) == name } ?? false
    }
    let cancelled = speaksOfRefund ? rows.filter { $0.cancellationDateMs != nil } : []
    if !cancelled.isEmpty {
      return cancelled.max { ($0.cancellationDateMs ?? .min) < ($1.cancellationDateMs ?? .min) }
    }
    return rows.max { ($0.purchaseDateMs ?? .min) < ($1.purchaseDateMs ?? .min) }
  }
}
