// One purchase object of a verifyReceipt reply, or a purchase of a receipt file or signed transaction in the same form.
package import Base

/// A purchase as the App Store shows it. Ids are non-empty; missing fields are nil.
/// Source: Apple's documentation of `responseBody.Latest_receipt_info` and `responseBody.Receipt.In_app`.
package struct ReplyRow {
  /// The row's location in the reply, in the order of rule R2.
  package enum Source: Int8, Sendable {
    case latestReceiptInfo, inApp, flatReceipt, latestExpiredReceiptInfo
    /// Not of a reply: a signed transaction is a row by itself.
    case signedTransaction
  }

  package var source: Source
  /// The object as sent; nil if the row was not made from one.
  package var object: JSONBytes?
  package var productID: JSONBytes?
  package var transactionID: JSONBytes?
  package var originalTransactionID: JSONBytes?
  /// Nil if missing, empty or `0`.
  package var webOrderLineItemID: JSONBytes?
  package var quantity: LenientValue = .missing
  /// Epoch milliseconds, like all dates: `purchase_date_ms`, or the readable date if there is nothing else.
  package var purchaseDateMs: Int64?
  package var originalPurchaseDateMs: Int64?
  /// `expires_date_ms`, else `expires_date`, which legacy replies have in milliseconds, else the readable dates.
  package var expiresAtMs: Int64?
  package var cancellationDateMs: Int64?
  package var cancellationReason: JSONBytes?
  package var isTrialPeriod = false
  package var isInIntroOfferPeriod = false
  package var hasPromotionalOffer = false
  package var hasOfferCode = false
  package var isFamilyShared = false
  package var isUpgraded = false
  /// As sent.
  package var appAccountToken: JSONBytes?
  private var hasReadableCancellation = false
  private var legacyExpiresAtMs: Int64?
  private var hasReadableExpiry = false

  package init(source: Source) {
    self.source = source
  }

  /// Reads the object at the cursor.
  init(
    source: Source, _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    self.source = source
    try cursor.beginObject()
    let first = cursor.offset - 1
    while let key = try cursor.nextKey() {
      try read(key, &cursor, keeper)
    }
    try end(with: cursor.passed(since: first), keeper)
  }

  /// Stores the object as sent, after its members have been read. Replies of 2011 and before have only
  /// readable dates, which are read only if milliseconds are missing.
  mutating func end(
    with object: JSONBytes, _ keeper: TextKeeper
  ) throws(JSONError) {
    self.object = object
    if expiresAtMs == nil { expiresAtMs = try otherExpiry(in: object, keeper) }
    let lacksCancellation = hasReadableCancellation && cancellationDateMs == nil
    guard purchaseDateMs == nil || originalPurchaseDateMs == nil || lacksCancellation else {
      return
    }
    let dates = try ReadableDates(object, keeper)
    purchaseDateMs = purchaseDateMs ?? dates.purchase.epochMs
    originalPurchaseDateMs = originalPurchaseDateMs ?? dates.originalPurchase.epochMs
    cancellationDateMs = cancellationDateMs ?? dates.cancellation.epochMs
  }

  /// The expiry of a row without `expires_date_ms`. Few rows have only readable dates, so these are read again.
  private func otherExpiry(
    in object: JSONBytes, _ keeper: TextKeeper
  ) throws(JSONError) -> Int64? {
    if let legacyExpiresAtMs { return legacyExpiresAtMs }
    return hasReadableExpiry ? try PurchasePeriod(of: object, keeper).endMs : nil
  }

  /// Reads one member. A row has about 25 keys, most of them not needed; their length is compared first.
  @inline(__always)
  mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    switch key.hasEscapes ? -1 : key.raw.count {
    case 8 where key == "quantity": quantity = try keeper.read(&cursor)
    case 10 where key == "product_id": productID = try keeper.read(&cursor).id
    case 11 where key == "is_upgraded": isUpgraded = try keeper.read(&cursor).flag
    case 12 where key == "expires_date":
      legacyExpiresAtMs = try keeper.read(&cursor).instantMs
      hasReadableExpiry = true
    case 14 where key == "transaction_id": transactionID = try keeper.read(&cursor).id
    case 15 where key == "is_trial_period": isTrialPeriod = try keeper.read(&cursor).flag
    case 15 where key == "expires_date_ms": expiresAtMs = try keeper.read(&cursor).instantMs
    case 16 where key == "purchase_date_ms": purchaseDateMs = try keeper.read(&cursor).instantMs
    case 17 where key == "cancellation_date":
      hasReadableCancellation = true
      try cursor.skipValue()
    case 16 where key == "expires_date_pst":
      hasReadableExpiry = true
      try cursor.skipValue()
    case 17 where key == "app_account_token": appAccountToken = try keeper.read(&cursor).id
    case 19 where key == "cancellation_reason":
      cancellationReason = try keeper.read(&cursor).id
    case 19 where key == "offer_code_ref_name": hasOfferCode = try keeper.read(&cursor).id != nil
    case 20 where key == "cancellation_date_ms":
      cancellationDateMs = try keeper.read(&cursor).instantMs
    case 20 where key == "promotional_offer_id":
      hasPromotionalOffer = try keeper.read(&cursor).id != nil
    case 21 where key == "cancellation_date_pst":
      hasReadableCancellation = true
      try cursor.skipValue()
    case 21 where key == "in_app_ownership_type":
      if case .string(let text) = try keeper.read(&cursor) {
        isFamilyShared = JSONString(raw: text, hasEscapes: false) == "FAMILY_SHARED"
      }
    case 22 where key == "web_order_line_item_id":
      webOrderLineItemID = try keeper.read(&cursor).lineItemID
    case 22 where key == "expires_date_formatted":
      hasReadableExpiry = true
      try cursor.skipValue()
    case 26 where key == "expires_date_formatted_pst":
      hasReadableExpiry = true
      try cursor.skipValue()
    case 23 where key == "original_transaction_id":
      originalTransactionID = try keeper.read(&cursor).id
    case 24 where key == "is_in_intro_offer_period":
      isInIntroOfferPeriod = try keeper.read(&cursor).flag
    case 25 where key == "original_purchase_date_ms":
      originalPurchaseDateMs = try keeper.read(&cursor).instantMs
    case -1: try readEscapedKey(key, &cursor, keeper)
    default: try cursor.skipValue()
    }
  }

  /// Reads a member whose key contains escapes.
  private mutating func readEscapedKey(
    _ key: JSONString, _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    let plain = keeper.bytes(of: key)
    try read(JSONString(raw: plain, hasEscapes: false), &cursor, keeper)
  }
}

extension LenientValue {
  /// An id other than `0`, which means none.
  var lineItemID: JSONBytes? {
    id.flatMap { $0.count == 1 && $0[0] == UInt8(ascii: "0") ? nil : $0 }
  }

  /// Epoch milliseconds between the years 0001 and 9999, the range of RFC 3339.
  package var instantMs: Int64? {
    guard let value = integer, Timestamp.rangeMs.contains(value) else { return nil }
    return value
  }
}

// MARK: - Readable dates

/// The human-readable dates of a row without milliseconds, as epoch milliseconds: `2011-08-02 15:08:02 Etc/GMT` under
/// the plain name, otherwise `2011-08-02 08:08:02 America/Los_Angeles` under the name with `_pst`.
struct ReadableDates {
  private(set) var purchase = WrittenDate()
  private(set) var originalPurchase = WrittenDate()
  private(set) var cancellation = WrittenDate()

  /// Reads one object.
  init(_ object: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var cursor = JSONCursor(object)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      let value = try keeper.read(&cursor)
      if key == "purchase_date" {
        purchase.update(value, .readable)
      } else if key == "purchase_date_pst" {
        purchase.update(value, .pacific)
      } else if key == "original_purchase_date" {
        originalPurchase.update(value, .readable)
      } else if key == "original_purchase_date_pst" {
        originalPurchase.update(value, .pacific)
      } else if key == "cancellation_date" {
        cancellation.update(value, .readable)
      } else if key == "cancellation_date_pst" {
        cancellation.update(value, .pacific)
      }
    }
  }
}

/// A date that a reply writes as `NAME_ms`, as `NAME` or as `NAME_pst`; the first of them that can be read counts.
struct WrittenDate {
  /// The forms, best last.
  enum Form: UInt8 { case pacific, readable, milliseconds }

  private(set) var epochMs: Int64?
  private(set) var form: Form = .pacific

  mutating func update(_ value: LenientValue, _ form: Form) {
    let instantMs = form == .milliseconds ? value.instantMs : value.readableInstantMs
    guard let instantMs, form.rawValue >= self.form.rawValue else { return }
    (epochMs, self.form) = (instantMs, form)
  }
}

extension LenientValue {
  /// Epoch milliseconds of a readable date, between the years 0001 and 9999.
  var readableInstantMs: Int64? {
    guard case .string(let text) = self, text.count > 10, text[10] == UInt8(ascii: " "),
      let value = ReceiptDate.parse(text), Timestamp.rangeMs.contains(value)
    else { return nil }
    return value
  }
}
