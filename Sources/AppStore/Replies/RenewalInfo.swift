// What the App Store states about the renewal of subscriptions.
package import Base

/// The renewal of one subscription. Source: `responseBody.Pending_renewal_info` in Apple's documentation, and the
/// outermost members of legacy replies. Signed renewal information contains the same (`SignedRenewal`).
package struct RenewalInfo {
  /// Nil in legacy replies, which cover only one subscription.
  package var originalTransactionID: JSONBytes?
  /// The product that it renews to.
  package var autoRenewProductID: JSONBytes?
  /// Whether it renews automatically; nil if the reply does not contain it.
  package var isAutoRenewing: Bool?
  /// Why it expired, as sent.
  package var expirationIntent: JSONBytes?
  /// Whether the App Store still tries to charge; nil if the reply does not contain it.
  package var isInBillingRetry: Bool?
  /// End of the grace period, during which the subscription stays usable although the renewal is unpaid;
  /// epoch milliseconds.
  package var gracePeriodEndMs: Int64?
  /// As sent. No rule reads it.
  package var appAccountToken: JSONBytes?
  /// Whether it consists of the outermost members of a reply.
  package private(set) var isOutermost = false
  private var graceDate = WrittenDate()

  package init() {}

  /// Reads an entry of `pending_renewal_info`.
  init(_ cursor: inout JSONCursor, _ keeper: TextKeeper) throws(JSONError) {
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "original_transaction_id" {
        originalTransactionID = try keeper.read(&cursor).id
      } else if key == "app_account_token" {
        appAccountToken = try keeper.read(&cursor).id
      } else if try !read(key, &cursor, keeper) {
        try cursor.skipValue()
      }
    }
  }

  /// Reads what a version 1 notification states about a renewal. The subscription is the one that it names; without a
  /// name, the only one that its reply shows. Nil if it contains nothing about a renewal.
  init?(ofNotification body: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var hasRenewal = false
    var cursor = JSONCursor(body)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "original_transaction_id" {
        originalTransactionID = try keeper.read(&cursor).id
      } else if try read(key, &cursor, keeper) {
        hasRenewal = true
      } else {
        try cursor.skipValue()
      }
    }
    if !hasRenewal { return nil }
    isOutermost = originalTransactionID == nil
  }

  /// Reads one outermost member of a reply; returns whether it is about the renewal.
  mutating func readOutermost(
    _ key: JSONString, _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) -> Bool {
    guard try read(key, &cursor, keeper) else { return false }
    isOutermost = true
    return true
  }

  private mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) -> Bool {
    if key == "auto_renew_status" {
      isAutoRenewing = try keeper.read(&cursor).flagIfPresent
    } else if key == "auto_renew_product_id" {
      autoRenewProductID = try keeper.read(&cursor).id
    } else if key == "expiration_intent" {
      expirationIntent = try keeper.read(&cursor).id
    } else if key == "is_in_billing_retry_period" {
      isInBillingRetry = try keeper.read(&cursor).flagIfPresent
    } else if key == "grace_period_expires_date_ms" {
      readGraceDate(try keeper.read(&cursor), .milliseconds)
    } else if key == "grace_period_expires_date" {
      readGraceDate(try keeper.read(&cursor), .readable)
    } else if key == "grace_period_expires_date_pst" {
      readGraceDate(try keeper.read(&cursor), .pacific)
    } else {
      return false
    }
    return true
  }

  private mutating func readGraceDate(_ value: LenientValue, _ form: WrittenDate.Form) {
    graceDate.update(value, form)
    gracePeriodEndMs = graceDate.epochMs
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
    // Legacy replies use the name of the readable date for milliseconds, and another name for that date.
    var legacyEndMs: Int64?
    var end = WrittenDate()
    var formatted = WrittenDate()
    var cursor = JSONCursor(object)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "expires_date_ms" {
        end.update(try keeper.read(&cursor), .milliseconds)
      } else if key == "expires_date" {
        let value = try keeper.read(&cursor)
        legacyEndMs = value.instantMs
        end.update(value, .readable)
      } else if key == "expires_date_pst" {
        end.update(try keeper.read(&cursor), .pacific)
      } else if key == "expires_date_formatted" {
        formatted.update(try keeper.read(&cursor), .readable)
      } else if key == "expires_date_formatted_pst" {
        formatted.update(try keeper.read(&cursor), .pacific)
      } else if key == "product_type" {
        productType = try keeper.read(&cursor).integer
      } else {
        try cursor.skipValue()
      }
    }
    endMs =
      end.form == .milliseconds ? end.epochMs : legacyEndMs ?? end.epochMs ?? formatted.epochMs
  }
}
