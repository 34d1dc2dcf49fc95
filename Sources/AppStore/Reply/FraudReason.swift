// Why an upload is a fraud, as events, answers and reports say it.

/// Why an upload is a fraud. The words are stored in events and shown in responses and reports.
package enum FraudReason: String, Sendable {
  case signatureInvalid = "signature_invalid"
  case notAuthenticated = "not_authenticated"
  /// The app family declares its products, and one that a row shows is not among them.
  case productUnknown = "product_unknown"
  /// A declared consumable's transaction belongs to another user.
  case transactionReplayed = "transaction_replayed"
}
