// Why there is no answer, in words for people.

extension VerifyReceiptFailure {
  package var meaning: String {
    switch self {
    case .connectTimeout: "no connection came about in time"
    case .timeout: "no answer came in time"
    case .connectionFailed: "there is no connection, or it broke off"
    case .tlsFailed: "no connection that can be trusted came about"
    case .answerTooLarge: "the answer is larger than allowed"
    case .httpStatus: "the HTTP status is not 200"
    case .cancelled: "the call was cancelled"
    case .tooManyCalls: "too many calls wait already"
    }
  }
}
