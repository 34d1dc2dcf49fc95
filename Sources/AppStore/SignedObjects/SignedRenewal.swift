// The facts of signed renewal information: what replies say of a renewal, and who said it when.
package import JSON

/// The payload of signed renewal information (`JWSRenewalInfoDecodedPayload` in Apple's documentation), read
/// leniently. All bytes are valid as long as the payload and the `TextKeeper`.
package struct SignedRenewal {
  package var info = RenewalInfo()
  package var environment: JSONBytes?
  /// Epoch milliseconds.
  package var signedDateMs: Int64?
  /// The id of the Apple Account in the app. No rule looks at it.
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
