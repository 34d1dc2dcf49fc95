// The interface for asking the App Store about a receipt: request, result, protocol.

/// The two endpoints of verifyReceipt.
package enum AppStoreEndpoint: String, Sendable, CaseIterable {
  case production, sandbox

  /// The one that statuses 21007 and 21008 point to.
  package var other: AppStoreEndpoint { self == .production ? .sandbox : .production }
}

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

/// Why there is no answer. The words are safe to show and to record.
package enum VerifyReceiptFailure: String, Error, Sendable, CaseIterable {
  case connectTimeout = "connect_timeout"
  case timeout
  case connectionFailed = "connection_failed"
  case tlsFailed = "tls_failed"
  case answerTooLarge = "answer_too_large"
  case httpStatus = "http_status"
  case cancelled

  /// In words for people.
  package var meaning: String {
    switch self {
    case .connectTimeout: "timed out while connecting"
    case .timeout: "timed out while waiting for a reply"
    case .connectionFailed: "cannot connect, or the connection was lost"
    case .tlsFailed: "no trusted TLS connection could be made"
    case .answerTooLarge: "the reply is too large"
    case .httpStatus: "the HTTP status is not 200"
    case .cancelled: "the call was cancelled"
    }
  }
}

/// What one call came to, after the switch of endpoints where there was one.
package struct VerifyReceiptAnswer: Sendable {
  package enum Content: Sendable {
    /// One valid JSON value, without white space between tokens; tokens and order as sent.
    case json([UInt8])
    /// What is no JSON: its first 64 KiB.
    case other([UInt8])
    /// Nothing that could be recorded as an answer.
    case none(VerifyReceiptFailure)
  }

  package let content: Content
  /// The endpoint that was asked last.
  package let endpoint: AppStoreEndpoint
  /// Its host, as `VerifyReceiptOptions.host(of:)` has it; nil where none was asked.
  package let host: String?
  /// The HTTP status of the last answer; nil where there was none.
  package let httpStatus: Int?
  /// How long all of it took, in milliseconds.
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
  /// Asks, and calls `completion` exactly once, on a thread of the service. Never blocks.
  func verify(
    _ request: VerifyReceiptRequest, completion: @escaping @Sendable (VerifyReceiptAnswer) -> Void)
}
