// What a reply says about the renewal of subscriptions.
package import JSON

/// The renewal of one subscription. Source: `responseBody.Pending_renewal_info` in Apple's documentation, and
/// the outermost `auto_renew_status` of legacy replies.
package struct RenewalInfo {
  /// Nil in legacy replies, which cover only one subscription.
  package var originalTransactionID: JSONBytes?
  package var productID: JSONBytes?
  /// Whether it renews automatically; nil if the reply does not say.
  package var isAutoRenewing: Bool?
  /// End of the grace period, during which the subscription stays usable although the renewal is unpaid;
  /// epoch milliseconds.
  package var gracePeriodEndMs: Int64?

  package init() {}

  /// Reads all renewals of a reply, which is one JSON value.
  package static func all(
    of reply: JSONBytes, _ keeper: TextKeeper
  ) throws(JSONError) -> [RenewalInfo] {
    var result: [RenewalInfo] = []
    var cursor = JSONCursor(reply)
    guard try cursor.kind() == .object else { return result }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "pending_renewal_info", try cursor.kind() == .array {
        try cursor.beginArray()
        while try cursor.nextElement() {
          if try cursor.kind() == .object {
            result.append(try RenewalInfo(&cursor, keeper))
          } else {
            try cursor.skipValue()
          }
        }
      } else if key == "auto_renew_status" {
        var info = RenewalInfo()
        info.isAutoRenewing = flag(try keeper.read(&cursor))
        result.append(info)
      } else {
        try cursor.skipValue()
      }
    }
    return result
  }

  private init(_ cursor: inout JSONCursor, _ keeper: TextKeeper) throws(JSONError) {
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "original_transaction_id" {
        originalTransactionID = try keeper.read(&cursor).id
      } else if key == "product_id" {
        productID = try keeper.read(&cursor).id
      } else if key == "auto_renew_status" {
        isAutoRenewing = Self.flag(try keeper.read(&cursor))
      } else if key == "grace_period_expires_date_ms" {
        gracePeriodEndMs = try keeper.read(&cursor).instantMs
      } else {
        try cursor.skipValue()
      }
    }
  }

  private static func flag(_ value: LenientValue) -> Bool? {
    if case .missing = value { return nil }
    return value.flag
  }

  /// Whether this renewal belongs to the row's subscription.
  package func covers(_ row: ReplyRow) -> Bool {
    guard let originalTransactionID else { return true }
    guard let original = row.originalTransactionID ?? row.transactionID else { return false }
    return originalTransactionID.elementsEqual(original)
  }
}

/// The period that a row's purchase covers.
package struct PurchasePeriod {
  /// Epoch milliseconds.
  package var endMs: Int64?
  /// The product type, numbered as in attribute 1707 of receipt files; replies do not have it.
  package var productType: Int64?

  /// Reads the object of a row.
  package init(of object: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var legacyEndMs: Int64?
    var readableEndMs: Int64?
    var cursor = JSONCursor(object)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "expires_date_ms" {
        endMs = try keeper.read(&cursor).instantMs
      } else if key == "expires_date" {
        // Legacy replies use the name of the readable date for milliseconds.
        let value = try keeper.read(&cursor)
        legacyEndMs = value.instantMs ?? value.readableInstantMs
      } else if key == "expires_date_formatted" {
        readableEndMs = try keeper.read(&cursor).readableInstantMs
      } else if key == "product_type" {
        productType = try keeper.read(&cursor).integer
      } else {
        try cursor.skipValue()
      }
    }
    endMs = endMs ?? legacyEndMs ?? readableEndMs
  }
}
