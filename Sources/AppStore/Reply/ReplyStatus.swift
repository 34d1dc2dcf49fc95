// What the App Store's statuses mean, in words for people.

/// The statuses of verifyReceipt.
package enum ReplyStatus {
  /// What a status means; nil for one that is not documented.
  package static func meaning(_ status: Int64) -> String? {
    switch status {
    case 0: "the receipt is valid"
    case 21000: "the request was not made correctly"
    case 21001: "the request is of a kind that is no longer supported"
    case 21002: "the receipt is malformed, or the service failed temporarily"
    case 21003: "the receipt could not be authenticated"
    case 21004: "the shared secret does not match the app's account"
    case 21005: "the receipt server was not available"
    case 21006: "the receipt is valid, and its subscription has expired"
    case 21007: "the receipt is from the sandbox"
    case 21008: "the receipt is from production"
    case 21009: "the service failed temporarily"
    case 21010: "the account was not found, or has been deleted"
    case 21100...21199: "the service had an internal error"
    default: nil
    }
  }
}
