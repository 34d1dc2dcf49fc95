// Why there is no answer, in words for people.

extension VerifyReceiptFailure {
  package var meaning: String {
    switch self {
    case .connectTimeout: "timed out while connecting"
    case .timeout: "timed out while waiting for a reply"
    case .connectionFailed: "cannot connect, or the connection was lost"
    case .tlsFailed: "no trusted TLS connection could be made"
    case .answerTooLarge: "the reply is too large"
    case .httpStatus: "the HTTP status is not 200"
    case .cancelled: "the call was cancelled"
    case .tooManyCalls: "too many calls are waiting"
    }
  }
}
