// The meaning of the App Store's statuses, in words for people.

/// The statuses of verifyReceipt.
package enum ReplyStatus {
  package static let valid: Int64 = 0
  package static let notAuthenticated: Int64 = 21003
  package static let expiredSubscription: Int64 = 21006
  package static let isFromSandbox: Int64 = 21007
  package static let isFromProduction: Int64 = 21008
  package static let accountNotFound: Int64 = 21010
  /// Failures within the App Store.
  package static let internalFailures: ClosedRange<Int64> = 21100...21199

  /// Rule R1: whether the status is final, so no further reply is expected.
  package static func isFinal(_ status: Int64?) -> Bool {
    status == valid || status == notAuthenticated || status == expiredSubscription
      || status == accountNotFound
  }

  /// The meaning of a status; nil for an undocumented one.
  package static func meaning(_ status: Int64) -> String? {
    switch status {
    case valid: "the receipt is valid"
    case 21000: "the request was not made correctly"
    case 21001: "the request is of a kind that is no longer supported"
    case 21002: "the receipt is malformed, or the service failed temporarily"
    case notAuthenticated: "the receipt could not be authenticated"
    case 21004: "the shared secret does not match the app's account"
    case 21005: "the receipt server was not available"
    case expiredSubscription: "the receipt is valid, and its subscription has expired"
    case isFromSandbox: "the receipt is from the sandbox"
    case isFromProduction: "the receipt is from production"
    case 21009: "the service failed temporarily"
    case accountNotFound: "the account was not found, or has been deleted"
    case internalFailures: "the service had an internal error"
    default: nil
    }
  }
}
