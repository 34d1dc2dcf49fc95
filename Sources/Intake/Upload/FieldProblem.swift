// What is wrong with one field of an upload, for people and for programs.

/// One reason to refuse an upload or an import line, or to warn about it. It never contains the field's
/// value: receipts and user identifiers are secrets.
package struct FieldProblem: Equatable, Sendable, CustomStringConvertible {
  /// The kinds of problems, for programs.
  package enum Code: String, Sendable {
    case missing
    case wrongType = "wrong_type"
    case tooLong = "too_long"
    case tooLarge = "too_large"
    case tooDeep = "too_deep"
    case notBase64 = "not_base64"
    case receiptMalformed = "receipt_malformed"
    case sandboxNotAccepted = "sandbox_not_accepted"
    case unknownCountry = "unknown_country"
    case invalidAddress = "invalid_address"
    case invalidTime = "invalid_time"
    case invalidValue = "invalid_value"
    case bundleNotRegistered = "bundle_not_registered"
    case notJSON = "not_json"
    case bundleIDMismatch = "bundle_id_mismatch"
    case wrongAppAppleID = "wrong_app_apple_id"
    case signatureInvalid = "signature_invalid"
    case signedObject = "signed_object"
    case signedObjectMalformed = "signed_object_malformed"
    case signatureOutOfTime = "signature_out_of_time"
    case environmentNotAccepted = "environment_not_accepted"
    case unknownProperty = "unknown_property"
    case misspelled
    case replyMismatch = "reply_mismatch"
    case tooManyPurchases = "too_many_purchases"
    /// A file of an archive that cannot be opened or read.
    case unreadable
  }

  /// The property's name, with dots between levels; empty means the whole text.
  package let field: String
  package let code: Code
  /// A clause that continues the field's name: "is longer than 255 characters".
  package let message: String

  package init(_ field: String, _ code: Code, _ message: String) {
    self.field = field
    self.code = code
    self.message = message
  }

  package var description: String { field.isEmpty ? message : "\(field) \(message)" }
}
