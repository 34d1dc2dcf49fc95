// What the rules know of one verification: its reply's rows, and the upload whose receipt it verified.
import AppStore

/// A verification that counts (rule R1), with its upload.
struct Verification {
  var position: Int
  /// Epoch milliseconds.
  var occurredAtMs: Int64
  var recordedAtMs: Int64
  /// The reply's `receipt.request_date_ms`.
  var requestDateMs: Int64?
  var environment: Symbol
  var bundle: Symbol
  var upload: UploadEvidence
  var trust: ReplyTrust
  /// What the app family declares; nil where it declares no products.
  var products: DeclaredProducts?
  /// Whether it stands in for the App Store's reply that is still owed (rule R1, *pending*).
  var isPending = false
}

/// What an upload says about the sales that its verifications show.
struct UploadEvidence {
  var position: Int
  /// Epoch milliseconds.
  var occurredAtMs: Int64
  var country: Symbol
  var user: Int32
  /// One JSON object, or empty.
  var metadata: Text
}
