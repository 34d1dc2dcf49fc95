// Why an upload is a fraud, as named in events, answers and reports.

/// Why an upload is a fraud. The raw values are stored in events and shown in responses and reports.
package enum FraudReason: String, Sendable {
  case signatureInvalid = "signature_invalid"
  case notAuthenticated = "not_authenticated"
  /// The app family declares its products, and a row shows a product that is not among them.
  case productUnknown = "product_unknown"
  /// A declared consumable's transaction belongs to another user.
  case transactionReplayed = "transaction_replayed"
}
