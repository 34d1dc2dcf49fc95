// The meaning of a verifyReceipt reply for its upload.
package import AppStore
package import Ledger

extension Reply {
  /// The outcome by status, as in the table of verifyReceipt statuses. A reply that neither confirms nor
  /// refuses for good counts as unreachable, so the App Store is asked again.
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

  /// The endpoint that must have answered, according to the reply. If the reply does not name an environment,
  /// the line is refused and this value is not used.
  package var likelyEndpoint: Endpoint {
    guard let environment else { return .production }
    return String(decoding: environment, as: UTF8.self).lowercased() == Endpoint.sandbox.rawValue
      ? .sandbox : .production
  }
}

extension Endpoint {
  /// The name that events use for the endpoint that answered.
  package init(_ endpoint: AppStoreEndpoint) {
    switch endpoint {
    case .production: self = .production
    case .sandbox: self = .sandbox
    }
  }
}
