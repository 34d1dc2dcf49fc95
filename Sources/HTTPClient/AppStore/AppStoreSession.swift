// What the calls of both of the App Store's interfaces have in common: two endpoints, JSON, failures to record.
import AppStore

/// Sends requests to the two endpoints of one interface.
final class AppStoreSession: Sendable {
  static let retryAfter = "retry-after"

  private let session: HTTPSession
  private let production: HTTPURL
  private let sandbox: HTTPURL
  private let answerBytesMax: Int

  /// Starts the thread.
  init(
    production: HTTPURL, sandbox: HTTPURL, connectTimeoutMs: Int, timeoutMs: Int,
    answerBytesMax: Int, callsMax: Int
  ) throws(VerifyReceiptOptionsError) {
    (self.production, self.sandbox) = (production, sandbox)
    self.answerBytesMax = answerBytesMax
    var options = HTTPOptions(connectTimeoutMs: connectTimeoutMs, timeoutMs: timeoutMs)
    options.keptHeaders = [Self.retryAfter]
    do throws(HTTPClientError) {
      session = try HTTPSession(options, requestsMax: callsMax)
    } catch { throw .noResources(error.cause) }
  }

  func url(of endpoint: AppStoreEndpoint) -> HTTPURL {
    endpoint == .production ? production : sandbox
  }

  /// - Parameter path: what follows the endpoint's URL, encoded, with its query.
  func send(
    _ method: HTTPRequest.Method, to endpoint: AppStoreEndpoint, path: String = "",
    headers: [String] = [], body: [UInt8], completion: @escaping HTTPSession.Completion
  ) {
    let url = url(of: endpoint)
    var request = HTTPRequest(
      method, url.text + path,
      headers: [HTTPRequest.jsonContent, "Accept: application/json"] + headers,
      body: HTTPBody(body), bodyBytesMax: answerBytesMax)
    request.avoidsProxy = url.scheme == "http"
    session.send(request, completion: completion)
  }

  func shutDown() { session.shutDown() }
  func close() { session.close() }
}

/// Why the App Store gave no answer. The texts are safe to show and to record.
package enum AppStoreFailure: String, Error, Sendable, CaseIterable {
  case connectTimeout = "connect_timeout"
  case timeout
  case connectionFailed = "connection_failed"
  case tlsFailed = "tls_failed"
  case answerTooLarge = "answer_too_large"
  case httpStatus = "http_status"
  case cancelled

  init(_ failure: HTTPFailure) {
    switch failure {
    case .connectTimeout: self = .connectTimeout
    case .timeout: self = .timeout
    case .untrustedCertificate, .tlsFailed: self = .tlsFailed
    case .headerTooLarge, .bodyTooLarge: self = .answerTooLarge
    case .cancelled: self = .cancelled
    default: self = .connectionFailed
    }
  }

  /// The failure in words, for people.
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
