// One HTTP request to an endpoint, and what came of it.

/// How requests are sent.
package struct HTTPClientOptions: Sendable {
  /// 1 to 600,000, like `timeoutMs`.
  package var connectTimeoutMs: Int
  /// The time limit of a request, connecting included.
  package var timeoutMs: Int
  package var answerBytesMax: Int
  /// The most requests that the caller makes at once; the client keeps this many connections.
  package var callsMax: Int

  package init(connectTimeoutMs: Int, timeoutMs: Int, answerBytesMax: Int, callsMax: Int) {
    self.connectTimeoutMs = connectTimeoutMs
    self.timeoutMs = timeoutMs
    self.answerBytesMax = answerBytesMax
    self.callsMax = callsMax
  }
}

/// One request.
package struct HTTPRequest: Sendable {
  package enum Method: Sendable { case get, post }

  package var target: EndpointTarget
  package var method: Method
  /// What follows the target's URL: a path with its query, encoded.
  package var path: String
  /// Besides those that every request has, as `Name: value`.
  package var headers: [String]
  package var body: [UInt8]

  package init(
    _ target: EndpointTarget, _ method: Method, path: String = "", headers: [String] = [],
    body: [UInt8] = []
  ) {
    self.target = target
    self.method = method
    self.path = path
    self.headers = headers
    self.body = body
  }
}

/// Why there is no whole answer. The texts are safe to show and to record.
package enum HTTPFailure: String, Error, Sendable, CaseIterable {
  case connectTimeout = "connect_timeout"
  case timeout
  case connectionFailed = "connection_failed"
  case tlsFailed = "tls_failed"
  case answerTooLarge = "answer_too_large"
  case cancelled

  /// The failure in words, for people.
  package var meaning: String {
    switch self {
    case .connectTimeout: "timed out while connecting"
    case .timeout: "timed out while waiting for a reply"
    case .connectionFailed: "cannot connect, or the connection was lost"
    case .tlsFailed: "no trusted TLS connection could be made"
    case .answerTooLarge: "the reply is too large"
    case .cancelled: "the call was cancelled"
    }
  }
}

/// What came of a request.
package struct HTTPOutcome: Sendable {
  package enum Content: Sendable {
    /// A whole answer, of whatever status.
    case answer([UInt8])
    case failure(HTTPFailure)
  }

  package var content: Content
  /// Nil if no status line came.
  package var status: Int?
  /// The header `Retry-After` as sent, at most 64 bytes of it.
  package var retryAfter: String?
  /// Whether the request was handed to libcurl.
  package var wasStarted = true

  init(_ content: Content, status: Int? = nil, retryAfter: String? = nil) {
    self.content = content
    self.status = status
    self.retryAfter = retryAfter
  }
}
