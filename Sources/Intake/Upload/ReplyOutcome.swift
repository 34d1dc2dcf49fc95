// What a verifyReceipt reply means for the upload that it answers.
package import AppStore
package import Ledger

extension Reply {
  /// The outcome by status; the table is that of the facts on verifyReceipt. What is neither an answer
  /// for good nor a refusal for good counts as unreachable, so that the App Store is asked again.
  package var outcome: Outcome {
    switch status {
    case ReplyStatus.valid, ReplyStatus.expiredSubscription: .valid
    case ReplyStatus.notAuthenticated, ReplyStatus.accountNotFound: .invalid
    case .some(ReplyStatus.internalFailures): isRetryable == false ? .invalid : .unreachable
    default: .unreachable
    }
  }

  /// The fraud that the status alone proves.
  package var fraudReason: String? {
    status == ReplyStatus.notAuthenticated ? FraudReason.notAuthenticated.rawValue : nil
  }

  /// The endpoint that must have answered, by the reply's own word. Where it has none the line is
  /// refused, and this is not looked at.
  package var likelyEndpoint: Endpoint {
    guard let environment else { return .production }
    return String(decoding: environment, as: UTF8.self).lowercased() == Endpoint.sandbox.rawValue
      ? .sandbox : .production
  }
}

extension Endpoint {
  /// How events call the endpoint that answered.
  package init(_ endpoint: AppStoreEndpoint) {
    switch endpoint {
    case .production: self = .production
    case .sandbox: self = .sandbox
    }
  }
}
