// The facts of a notification (its name, its subject, the signed objects inside) and of an app transaction.
package import Base

/// A notification's payload (`responseBodyV2DecodedPayload` in Apple's documentation), read leniently.
/// All bytes are valid as long as the payload and the `TextKeeper`.
package struct SignedNotification {
  package var notificationUUID: JSONBytes?
  /// `notificationType`.
  package var type: JSONBytes?
  package var subtype: JSONBytes?
  /// Epoch milliseconds.
  package var signedDateMs: Int64?
  package var bundleID: JSONBytes?
  package var appAppleID: Int64?
  /// As named by the notification's subject. A token of an external purchase names none: its id determines it.
  package var environment: JSONBytes?
  /// The inner objects' texts; each must be verified by itself.
  package var signedTransactionInfo: JSONBytes?
  package var signedRenewalInfo: JSONBytes?
  package var signedAppTransactionInfo: JSONBytes?

  /// Reads a payload, which must be an object.
  package init(payload: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var signedDate = LenientValue.missing
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "notificationUUID" {
        notificationUUID = try keeper.read(&cursor).id
      } else if key == "notificationType" {
        type = try keeper.read(&cursor).id
      } else if key == "subtype" {
        subtype = try keeper.read(&cursor).id
      } else if key == "signedDate" {
        signedDate = try keeper.read(&cursor)
      } else if key == "environment" {
        environment = try keeper.read(&cursor).id
      } else if key == "data" || key == "summary" || key == "appData"
        || key == "externalPurchaseToken"
      {
        try readSubject(&cursor, keeper)
      } else {
        try cursor.skipValue()
      }
    }
    let isXcode = environment.map { JSONString(raw: $0, hasEscapes: false) == "Xcode" } ?? false
    signedDateMs = isXcode ? signedDate.flooredInstantMs : signedDate.instantMs
  }

  /// The fact that every notification must contain and this one lacks; nil if it lacks none.
  package func missingFact() -> SignedObjectFault? {
    if signedDateMs == nil { return .missingSignedDate }
    if environment == nil { return .missingEnvironment }
    if bundleID == nil { return .missingBundleID }
    return notificationUUID == nil ? .missingNotificationUUID : nil
  }

  /// Reads the subject of the notification.
  private mutating func readSubject(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "bundleId" {
        bundleID = try keeper.read(&cursor).id
      } else if key == "appAppleId" {
        appAppleID = try keeper.read(&cursor).integer
      } else if key == "environment" {
        environment = try keeper.read(&cursor).id
      } else if key == "externalPurchaseId" {
        guard case .string(let id) = try keeper.read(&cursor) else { continue }
        environment = ExternalPurchase.environment(ofID: id)
      } else if key == "signedTransactionInfo" {
        signedTransactionInfo = try keeper.read(&cursor).id
      } else if key == "signedRenewalInfo" {
        signedRenewalInfo = try keeper.read(&cursor).id
      } else if key == "signedAppTransactionInfo" {
        signedAppTransactionInfo = try keeper.read(&cursor).id
      } else {
        try cursor.skipValue()
      }
    }
  }
}

/// Tokens of external purchases.
enum ExternalPurchase {
  /// The environment of a token. Source: Apple's documentation of `externalPurchaseId`.
  static func environment(ofID id: JSONBytes) -> JSONBytes {
    let name =
      id.starts(with: "SANDBOX".utf8) ? EnvironmentName.sandbox : EnvironmentName.production
    return JSONBytes(start: name.utf8Start, count: name.utf8CodeUnitCount)
  }
}

// MARK: - App transactions

/// An app transaction's payload (`JWSAppTransactionDecodedPayload` in Apple's documentation), which names the app and
/// where it was bought, read leniently. All bytes are valid as long as the payload and the `TextKeeper`.
package struct SignedAppTransaction {
  package var bundleID: JSONBytes?
  package var appAppleID: Int64?
  /// `receiptType`, otherwise `environment`.
  package var environment: JSONBytes?
  /// Epoch milliseconds: `signedDate`, otherwise `receiptCreationDate`.
  package var signedDateMs: Int64?

  /// Reads a payload, which must be an object.
  package init(payload: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var signedDate = LenientValue.missing
    var creationDate = LenientValue.missing
    var otherEnvironment: JSONBytes?
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "bundleId" {
        bundleID = try keeper.read(&cursor).id
      } else if key == "appAppleId" {
        appAppleID = try keeper.read(&cursor).integer
      } else if key == "receiptType" {
        environment = try keeper.read(&cursor).id
      } else if key == "environment" {
        otherEnvironment = try keeper.read(&cursor).id
      } else if key == "receiptCreationDate" {
        creationDate = try keeper.read(&cursor)
      } else if key == "signedDate" {
        signedDate = try keeper.read(&cursor)
      } else {
        try cursor.skipValue()
      }
    }
    environment = environment ?? otherEnvironment
    if case .missing = signedDate { signedDate = creationDate }
    signedDateMs = signedDate.flooredInstantMs
  }

  /// The fact that every app transaction must contain and this one lacks; nil if it lacks none.
  /// - Parameter hasEnvironment: whether the container names the environment.
  package func missingFact(hasEnvironment: Bool = false) -> SignedObjectFault? {
    if signedDateMs == nil { return .missingSignedDate }
    if environment == nil, !hasEnvironment { return .missingEnvironment }
    return bundleID == nil ? .missingBundleID : nil
  }
}
