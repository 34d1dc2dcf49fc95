// The facts of an app transaction: which app was bought, and where.
package import JSON

/// An app transaction's payload (`JWSAppTransactionDecodedPayload` in Apple's documentation), read leniently.
/// All bytes are valid as long as the payload and the `TextKeeper`.
package struct SignedAppTransaction {
  package var bundleID: JSONBytes?
  package var appAppleID: Int64?
  /// `receiptType`, which names the environment.
  package var environment: JSONBytes?
  /// Epoch milliseconds: `signedDate`, otherwise `receiptCreationDate`.
  package var signedDateMs: Int64?

  /// Reads a payload, which must be an object.
  package init(payload: JSONBytes, _ keeper: TextKeeper) throws(JSONError) {
    var signedDate = LenientValue.missing
    var creationDate = LenientValue.missing
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "bundleId" {
        bundleID = try keeper.read(&cursor).id
      } else if key == "appAppleId" {
        appAppleID = try keeper.read(&cursor).integer
      } else if key == "receiptType" {
        environment = try keeper.read(&cursor).id
      } else if key == "receiptCreationDate" {
        creationDate = try keeper.read(&cursor)
      } else if key == "signedDate" {
        signedDate = try keeper.read(&cursor)
      } else {
        try cursor.skipValue()
      }
    }
    if case .missing = signedDate { signedDate = creationDate }
    let isXcode = environment.map { JSONString(raw: $0, hasEscapes: false) == "Xcode" } ?? false
    signedDateMs = isXcode ? signedDate.flooredInstantMs : signedDate.instantMs
  }

  /// What every app transaction must say and this one does not; nil if it says all.
  package var missingFact: SignedObjectFault? {
    if signedDateMs == nil { return .missingSignedDate }
    if environment == nil { return .missingEnvironment }
    return bundleID == nil ? .missingBundleID : nil
  }
}
