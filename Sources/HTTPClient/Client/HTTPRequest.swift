// One HTTP request: its address, what is sent, how, and what came of it.
package import Base
internal import CCurl
private import Glibc

/// An https URL, or an http URL that names this machine itself.
package struct HTTPURL: Sendable, Equatable {
  /// Why a URL is refused; never shows it, because it may contain secrets.
  package enum Fault: String, Error, Sendable {
    case notAURL = "it is not a URL"
    case credentials = "it contains a user name or password, which would appear in logs"
    case scheme = "it must use https, or http to a loopback address"
    case remoteHTTP = "http is allowed only to loopback addresses; receipts need https"
  }

  package let text: String
  /// `https` or `http`.
  package let scheme: String
  /// Without credentials, in lower case; with the port if it is not the scheme's default.
  package let host: String
  /// `localhost` (which libcurl never looks up), 127.0.0.0/8 or ::1.
  package let isLoopback: Bool
  /// Whether the URL has only the path `/`, and neither query nor fragment.
  package let isOrigin: Bool

  package init(_ text: String) throws(Fault) {
    guard let parts = curl_url() else { throw .notAURL }
    defer { curl_url_cleanup(parts) }
    guard !text.utf8.contains(0), text.utf8.count <= 2_048,
      curl_url_set(parts, CURLUPART_URL, text, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK
    else { throw .notAURL }
    func part(_ part: CURLUPart) -> String? {
      var text: UnsafeMutablePointer<CChar>?
      guard curl_url_get(parts, part, &text, 0) == CURLUE_OK, let text else { return nil }
      defer { curl_free(text) }
      return String(cString: text)
    }
    guard part(CURLUPART_USER) == nil, part(CURLUPART_PASSWORD) == nil else { throw .credentials }
    guard let scheme = part(CURLUPART_SCHEME)?.lowercased() else { throw .notAURL }
    guard scheme == "https" || scheme == "http" else { throw .scheme }
    guard let host = part(CURLUPART_HOST)?.lowercased(), !host.isEmpty else { throw .notAURL }
    isLoopback = Self.isLoopback(host)
    guard scheme == "https" || isLoopback else { throw .remoteHTTP }
    let port = part(CURLUPART_PORT)
    let standardPort = scheme == "http" ? "80" : "443"
    self.host = host + (port.flatMap { $0 == standardPort ? nil : ":\($0)" } ?? "")
    isOrigin =
      part(CURLUPART_PATH) ?? "/" == "/" && part(CURLUPART_QUERY) == nil
      && part(CURLUPART_FRAGMENT) == nil
    (self.text, self.scheme) = (text, scheme)
  }

  private static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "[::1]" { return true }
    var address = in_addr()
    return inet_pton(AF_INET, host, &address) == 1
      && UInt32(bigEndian: address.s_addr) >> 24 == 127
  }
}

/// How requests are sent. All refuse redirects, untrusted certificates and TLS below 1.2.
package struct HTTPOptions: Sendable {
  package var connectTimeoutMs: Int
  /// The time limit of a request, connecting included; 0 for none.
  package var timeoutMs: Int
  /// How long a transfer may stay below `stallBytesPerSecond`; 0 for no limit.
  package var stallSeconds = 0
  package var stallBytesPerSecond = 0
  /// Headers of a response that are kept, in lower case; of each at most 64 bytes.
  package var keptHeaders: [String] = []
  /// Whether the end of the connection may not end a body: it comes too early where a connection is lost.
  package var needsBodyLength = false
  /// Whether URLs are sent as they stand, with `/../` in them.
  package var keepsPath = false
  /// For objects of many megabytes.
  package var hasLargeBuffers = false
  /// Ends the transfers of threads that wait in `HTTPTransfer.perform`.
  package var cancelFlag: CancelFlag?

  package init(connectTimeoutMs: Int, timeoutMs: Int = 0) {
    (self.connectTimeoutMs, self.timeoutMs) = (connectTimeoutMs, timeoutMs)
  }
}

/// The body of a request. libcurl asks for bytes again if a kept connection turns out to be closed.
package struct HTTPBody: Sendable {
  /// Copies bytes that begin at an offset; fewer than fit only where the source ends.
  package typealias Source =
    @Sendable (UnsafeMutableRawBufferPointer, _ offset: Int) throws(SystemError) -> Int

  let byteCount: Int
  let copy: Source

  package init(byteCount: Int, copy: @escaping Source) {
    (self.byteCount, self.copy) = (byteCount, copy)
  }

  package init(_ bytes: [UInt8]) {
    self.init(byteCount: bytes.count) { buffer, offset in
      let count = min(buffer.count, bytes.count - offset)
      buffer.copyBytes(from: bytes[offset..<offset + count])
      return count
    }
  }
}

/// One request.
package struct HTTPRequest: Sendable {
  package enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case delete = "DELETE"
  }

  package var method: Method
  package var url: String
  /// The only protocol allowed: the URL's.
  var scheme: String { url.prefix(5).lowercased() == "http:" ? "http" : "https" }
  /// As `Name: value`, all that are sent beyond libcurl's own.
  package var headers: [String]
  /// Sent by `post` and `put` alone.
  package var body: HTTPBody
  /// Of a response with status 200 or 206.
  package var bodyBytesMax: Int
  /// Of a response with another status.
  package var errorBytesMax: Int
  /// Connect directly, whatever proxies the environment names.
  package var avoidsProxy = false
  /// Asked about each address that is connected to, and before each use of a kept connection; a name may change its
  /// address. Needs `avoidsProxy`: a proxy looks the name up itself.
  package var isAllowed: (@Sendable (_ address: String) -> Bool)?

  package static let jsonContent = "Content-Type: application/json"

  package init(
    _ method: Method, _ url: String, headers: [String] = [], body: HTTPBody = HTTPBody([]),
    bodyBytesMax: Int, errorBytesMax: Int? = nil
  ) {
    (self.method, self.url, self.headers, self.body) = (method, url, headers, body)
    self.bodyBytesMax = bodyBytesMax
    self.errorBytesMax = errorBytesMax ?? bodyBytesMax
  }
}

/// Why a request has no complete response.
package enum HTTPFailure: Error, Sendable, Equatable {
  /// Of the host or the proxy.
  case unknownHost
  /// `HTTPRequest.isAllowed` refused all addresses that were tried.
  case refusedAddress
  case cannotConnect
  case connectTimeout
  case timeout
  case untrustedCertificate
  case tlsFailed(String)
  case closedWithoutResponse
  case incompleteHeader
  case incompleteBody
  /// The body may be whole or cut off.
  case unknownLength
  case headerTooLarge
  case bodyTooLarge
  /// The receiver wants no more of the body.
  case stopped
  /// The body to send cannot be read; nil if it is shorter than announced.
  case unreadableBody(SystemError?)
  case cancelled
  case outOfMemory
  /// libcurl itself failed.
  case libraryFailed
  /// Anything else, in libcurl's words.
  case other(String)
}

/// What came of a request.
package struct HTTPOutcome: Sendable {
  /// Nil for a complete response, whatever its status.
  package var failure: HTTPFailure?
  /// Nil if no status line came.
  package var status: Int?
  /// Empty if it was passed on.
  package var body: [UInt8] = []
  /// Those that were to be kept, by their name in lower case.
  package var headers: [String: String] = [:]
  /// From the header `Retry-After`, at most a day.
  package var retryAfterMs: Int?
  /// Whether the request was handed to libcurl.
  package var wasStarted = true

  package init(_ failure: HTTPFailure? = nil) { self.failure = failure }
}
