// The interface for asking the App Store about a receipt: request, result, protocol.
package import AppStore

/// One receipt to ask about.
package struct VerifyReceiptRequest: Sendable {
  /// Single-line standard base64.
  package let receiptText: [UInt8]
  /// The app's shared secret; nil for apps without subscriptions.
  package let sharedSecret: [UInt8]?

  package init(receiptText: [UInt8], sharedSecret: [UInt8]?) {
    self.receiptText = receiptText
    self.sharedSecret = sharedSecret
  }
}

/// Why there is no answer. The texts are safe to show and to record.
package enum VerifyReceiptFailure: String, Error, Sendable, CaseIterable {
  case connectTimeout = "connect_timeout"
  case timeout
  case connectionFailed = "connection_failed"
  case tlsFailed = "tls_failed"
  case answerTooLarge = "answer_too_large"
  case httpStatus = "http_status"
  case cancelled

  /// The failure in words, for people.
  package var meaning: String {
    HTTPFailure(rawValue: rawValue)?.meaning ?? "the HTTP status is not 200"
  }
}

/// The result of one call, after the switch of endpoints if there was one.
package struct VerifyReceiptAnswer: Sendable {
  package enum Content: Sendable {
    /// One valid JSON value, without white space between tokens; tokens and order as sent.
    case json([UInt8])
    /// An answer that is not JSON: its first 64 KiB.
    case other([UInt8])
    /// There was no answer to record.
    case none(VerifyReceiptFailure)
  }

  package let content: Content
  /// The endpoint that was called last.
  package let endpoint: AppStoreEndpoint
  /// That endpoint's host, as `VerifyReceiptOptions.host(of:)` returns it; nil if none was called.
  package let host: String?
  /// The HTTP status of the last answer; nil if there was none.
  package let httpStatus: Int?
  /// The total time in milliseconds.
  package let durationMs: Int64

  package init(
    content: Content, endpoint: AppStoreEndpoint, host: String?, httpStatus: Int?,
    durationMs: Int64
  ) {
    self.content = content
    self.endpoint = endpoint
    self.host = host
    self.httpStatus = httpStatus
    self.durationMs = durationMs
  }
}

/// A service that can ask the App Store.
package protocol VerifyReceiptService: AnyObject, Sendable {
  /// Sends the request and calls `completion` exactly once, on a thread of the service. Never blocks.
  func verify(
    _ request: VerifyReceiptRequest, completion: @escaping @Sendable (VerifyReceiptAnswer) -> Void)
}
