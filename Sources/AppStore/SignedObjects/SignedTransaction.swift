// The facts of a signed transaction, including the row that every purchase has, and of signed renewal information.
package import Base

/// The types of products, by the words of a transaction's `type`.
package enum SignedProductType: String, CaseIterable, Sendable {
  case autoRenewable = "Auto-Renewable Subscription"
  case nonRenewing = "Non-Renewing Subscription"
  case nonConsumable = "Non-Consumable"
  case consumable = "Consumable"

  fileprivate init?(_ name: JSONBytes) {
    guard let type = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name) }) else {
      return nil
    }
    self = type
  }
}

/// A transaction's payload (`JWSTransactionDecodedPayload` in Apple's documentation), read leniently: ids may be
/// strings or integers, integers also strings of digits, and unknown members are ignored. All bytes are valid as long
/// as the payload and the `TextKeeper`.
package struct SignedTransaction {
  /// The purchase in the form of a reply's row. Trial: `offerDiscountType` is `FREE_TRIAL`. Introductory, promotional
  /// and offer code: `offerType` 1, 2 and 3. Cancellation: the revocation.
  package var row = ReplyRow(source: .signedTransaction)
  package var bundleID: JSONBytes?
  package var environment: JSONBytes?
  /// ISO 3166-1 alpha-3, as sent.
  package var storefront: JSONBytes?
  package var appAccountToken: JSONBytes?
  /// The id of the Apple Account in the app.
  package var appTransactionID: JSONBytes?
  /// Epoch milliseconds.
  package var signedDateMs: Int64?
  /// Epoch milliseconds.
  package var revocationDateMs: Int64?
  /// The digits of an integer, or a text.
  package var revocationReason: JSONBytes?
  /// 100,000 is all; nil outside 0 to 100,000.
  package var revocationPercentage: Int64?
  /// The value of `transactionReason`: a renewal, or a purchase; nil for any other value.
  package var isRenewal: Bool?
  /// The product's type; nil if it is absent or unknown to this program.
  package var type: SignedProductType?
  /// Whether `type` names something other than an auto-renewable subscription.
  package var isOfOtherType = false
  package var offerType: Int64?
  package var isFreeTrial = false
  /// Whether `offerDiscountType` is present and not null.
  package var hasOfferDiscountType = false
  /// Thousandths of the currency's unit: an integer of at most 14 digits, 0 or more; otherwise nil.
  package var priceMilliunits: Int64?
  /// Whether `price` is present and not null, whatever its value.
  package var hasPrice = false
  /// As sent.
  package var currency: JSONBytes?
  /// Whether `multiSeatInfo` is an object.
  package var hasMultiSeatInfo = false
  /// Whether `advancedCommerceInfo` is an object.
  package var isAdvancedCommerce = false
  /// The refunds of every item, in the order of the payload; nil if a date or an amount is missing or unreadable.
  package var advancedRefunds: [(dateMs: Int64?, amountMilliunits: Int64?)] = []

  private var hasFraction = false

  /// The greatest price: 14 digits.
  private static let greatestPrice: Int64 = 99_999_999_999_999

  /// Reads a payload, which must be an object.
  package init(payload: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    try self.init(payload: payload, keeper, takesFractions: false)
    // Xcode writes fractions of a millisecond. Its purchases do not count; the facts are for display.
    if hasFraction, let environment, JSONString(raw: environment, hasEscapes: false) == "Xcode" {
      try self.init(payload: payload, keeper, takesFractions: true)
    }
  }

  private init(
    payload: JSONBytes, _ keeper: TextKeeper, takesFractions: Bool
  ) throws(JSONError) {
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    let first = cursor.offset - 1
    while let key = try cursor.nextKey() {
      if key.hasEscapes {
        let plain = JSONString(raw: keeper.bytes(of: key), hasEscapes: false)
        try read(plain, &cursor, keeper, takesFractions)
      } else {
        try read(key, &cursor, keeper, takesFractions)
      }
    }
    row.object = cursor.passed(since: first)
    row.cancellationDateMs = revocationDateMs
    row.cancellationReason = revocationReason
    row.isTrialPeriod = isFreeTrial
    row.isInIntroOfferPeriod = offerType == 1
    row.hasPromotionalOffer = offerType == 2
    row.hasOfferCode = offerType == 3
  }

  /// The fact that every transaction must contain and this one lacks; nil if it lacks none.
  /// - Parameter hasEnvironment: whether the container names the environment.
  package func missingFact(hasEnvironment: Bool = false) -> SignedObjectFault? {
    if signedDateMs == nil { return .missingSignedDate }
    if environment == nil, !hasEnvironment { return .missingEnvironment }
    return bundleID == nil ? .missingBundleID : nil
  }

  /// Reads one member. The length of its key is compared first.
  @inline(__always)
  private mutating func read(
    _ key: JSONString, _ cursor: inout JSONCursor, _ keeper: TextKeeper, _ takesFractions: Bool
  ) throws(JSONError) {
    switch key.raw.count {
    case 4 where key == "type":
      if let type = try keeper.read(&cursor).id {
        self.type = SignedProductType(type)
        isOfOtherType = self.type != .autoRenewable
      }
    case 5 where key == "price": try readPrice(&cursor, keeper)
    case 8 where key == "bundleId": bundleID = try keeper.read(&cursor).id
    case 8 where key == "quantity": row.quantity = try keeper.read(&cursor)
    case 8 where key == "currency":
      if case .string(let text) = try keeper.read(&cursor) { currency = text }
    case 9 where key == "productId": row.productID = try keeper.read(&cursor).id
    case 9 where key == "offerType": offerType = try keeper.read(&cursor).integer
    case 10 where key == "storefront": storefront = try keeper.read(&cursor).id
    case 10 where key == "signedDate":
      signedDateMs = try readInstant(&cursor, keeper, takesFractions)
    case 10 where key == "isUpgraded": row.isUpgraded = try keeper.read(&cursor).flag
    case 11 where key == "environment": environment = try keeper.read(&cursor).id
    case 11 where key == "expiresDate":
      row.expiresAtMs = try readInstant(&cursor, keeper, takesFractions)
    case 12 where key == "purchaseDate":
      row.purchaseDateMs = try readInstant(&cursor, keeper, takesFractions)
    case 13 where key == "transactionId": row.transactionID = try keeper.read(&cursor).id
    case 13 where key == "multiSeatInfo":
      hasMultiSeatInfo = try cursor.kind() == .object
      try cursor.skipValue()
    case 14 where key == "revocationDate":
      revocationDateMs = try readInstant(&cursor, keeper, takesFractions)
    case 15 where key == "appAccountToken": appAccountToken = try keeper.read(&cursor).id
    case 16 where key == "appTransactionId": appTransactionID = try keeper.read(&cursor).id
    case 16 where key == "revocationReason": revocationReason = try keeper.read(&cursor).id
    case 17 where key == "offerDiscountType": try readDiscountType(&cursor, keeper)
    case 17 where key == "transactionReason":
      guard case .string(let text) = try keeper.read(&cursor) else { break }
      let reason = JSONString(raw: text, hasEscapes: false)
      isRenewal = reason == "RENEWAL" ? true : reason == "PURCHASE" ? false : nil
    case 18 where key == "webOrderLineItemId":
      row.webOrderLineItemID = try keeper.read(&cursor).lineItemID
    case 18 where key == "inAppOwnershipType":
      if case .string(let text) = try keeper.read(&cursor) {
        row.isFamilyShared = JSONString(raw: text, hasEscapes: false) == "FAMILY_SHARED"
      }
    case 20 where key == "revocationPercentage":
      let value = try keeper.read(&cursor).integer
      revocationPercentage = value.flatMap { (0...100_000).contains($0) ? $0 : nil }
    case 20 where key == "originalPurchaseDate":
      row.originalPurchaseDateMs = try readInstant(&cursor, keeper, takesFractions)
    case 20 where key == "advancedCommerceInfo": try readAdvancedCommerce(&cursor, keeper)
    case 21 where key == "originalTransactionId":
      row.originalTransactionID = try keeper.read(&cursor).id
    default: try cursor.skipValue()
    }
  }

  private mutating func readInstant(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper, _ takesFractions: Bool
  ) throws(JSONError) -> Int64? {
    let value = try keeper.read(&cursor)
    if let instantMs = value.instantMs { return instantMs }
    guard case .number = value else { return nil }
    hasFraction = true
    return takesFractions ? value.flooredInstantMs : nil
  }

  private mutating func readPrice(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    let value = try keeper.read(&cursor)
    if case .missing = value { return }
    hasPrice = true
    priceMilliunits = value.integer.flatMap { (0...Self.greatestPrice).contains($0) ? $0 : nil }
  }

  private mutating func readDiscountType(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    switch try keeper.read(&cursor) {
    case .missing: return
    case .string(let text):
      isFreeTrial = JSONString(raw: text, hasEscapes: false) == "FREE_TRIAL"
    default: break
    }
    hasOfferDiscountType = true
  }

  // MARK: Advanced Commerce

  /// Reads `items[].refunds[]`.
  private mutating func readAdvancedCommerce(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    isAdvancedCommerce = true
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      guard key == "items", try cursor.kind() == .array else {
        try cursor.skipValue()
        continue
      }
      try cursor.beginArray()
      while try cursor.nextElement() { try readItem(&cursor, keeper) }
    }
  }

  private mutating func readItem(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      guard key == "refunds", try cursor.kind() == .array else {
        try cursor.skipValue()
        continue
      }
      try cursor.beginArray()
      while try cursor.nextElement() { try readRefund(&cursor, keeper) }
    }
  }

  private mutating func readRefund(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    var dateMs: Int64?
    var amountMilliunits: Int64?
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "refundDate" {
        dateMs = try keeper.read(&cursor).instantMs
      } else if key == "refundAmount" {
        let value = try keeper.read(&cursor).integer
        amountMilliunits = value.flatMap { (0...Self.greatestPrice).contains($0) ? $0 : nil }
      } else {
        try cursor.skipValue()
      }
    }
    advancedRefunds.append((dateMs, amountMilliunits))
  }
}

// MARK: - Renewal information

/// The payload of signed renewal information (`JWSRenewalInfoDecodedPayload` in Apple's documentation), read
/// leniently. All bytes are valid as long as the payload and the `TextKeeper`.
package struct SignedRenewal {
  package var info = RenewalInfo()
  package var environment: JSONBytes?
  /// Epoch milliseconds.
  package var signedDateMs: Int64?
  /// The id of the Apple Account in the app. No rule reads it.
  package var appTransactionID: JSONBytes?

  /// Reads a payload, which must be an object.
  package init(payload: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "originalTransactionId" {
        info.originalTransactionID = try keeper.read(&cursor).id
      } else if key == "autoRenewProductId" {
        info.autoRenewProductID = try keeper.read(&cursor).id
      } else if key == "autoRenewStatus" {
        info.isAutoRenewing = try keeper.read(&cursor).flagIfPresent
      } else if key == "expirationIntent" {
        info.expirationIntent = try keeper.read(&cursor).id
      } else if key == "isInBillingRetryPeriod" {
        info.isInBillingRetry = try keeper.read(&cursor).flagIfPresent
      } else if key == "gracePeriodExpiresDate" {
        info.gracePeriodEndMs = try keeper.read(&cursor).instantMs
      } else if key == "appAccountToken" {
        info.appAccountToken = try keeper.read(&cursor).id
      } else if key == "appTransactionId" {
        appTransactionID = try keeper.read(&cursor).id
      } else if key == "environment" {
        environment = try keeper.read(&cursor).id
      } else if key == "signedDate" {
        signedDateMs = try keeper.read(&cursor).instantMs
      } else {
        try cursor.skipValue()
      }
    }
  }
}
