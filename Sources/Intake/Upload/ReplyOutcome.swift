// What a verifyReceipt reply means for the upload that it answers.
package import AppStore
package import Ledger

extension Reply {
  /// The outcome by status; the table is that of the facts on verifyReceipt. What is neither an answer
  /// for good nor a refusal for good counts as unreachable, so that the App Store is asked again.
  package var outcome: Outcome {
    switch status {
    case 0, 21006: .valid
    case 21003, 21010: .invalid
    case .some(21100...21199): isRetryable == false ? .invalid : .unreachable
    default: .unreachable
    }
  }

  /// The fraud that the status alone proves.
  package var fraudReason: String? { status == 21003 ? "not_authenticated" : nil }

  /// The endpoint that must have answered, by the reply's own word. Where it has none the line is
  /// refused, and this is not looked at.
  package var likelyEndpoint: Endpoint {
    guard let environment else { return .production }
    return String(decoding: environment, as: UTF8.self).lowercased() == "sandbox"
      ? .sandbox : .production
  }
}
