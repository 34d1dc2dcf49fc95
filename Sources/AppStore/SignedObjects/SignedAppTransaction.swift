// The facts of an app transaction: which app was bought, and where.
package import JSON

/// An app transaction's payload (`JWSAppTransactionDecodedPayload` in Apple's documentation), read leniently.
/// All bytes are valid as long as the payload and the `TextKeeper`.
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

  /// What every app transaction must say and this one does not; nil if it says all.
  /// - Parameter hasEnvironment: whether what it came in names its environment.
  package func missingFact(hasEnvironment: Bool = false) -> SignedObjectFault? {
    if signedDateMs == nil { return .missingSignedDate }
    if environment == nil, !hasEnvironment { return .missingEnvironment }
    return bundleID == nil ? .missingBundleID : nil
  }
}
