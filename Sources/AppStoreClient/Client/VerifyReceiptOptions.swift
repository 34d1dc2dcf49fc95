// The options of the verifyReceipt client, and the checks on them.
package import AppStore
internal import CCurl
private import Glibc

/// How to call the App Store.
package struct VerifyReceiptOptions: Sendable, Equatable {
  /// https, or http to a loopback address or `localhost` only.
  package var productionURL = "https://buy.itunes.apple.com/verifyReceipt"
  package var sandboxURL = "https://sandbox.itunes.apple.com/verifyReceipt"
  /// 1 to 600,000.
  package var connectTimeoutMs = 5_000
  /// The time limit of a call to one endpoint, including connecting; each of the two endpoints gets all of
  /// it. 1 to 600,000.
  package var timeoutMs = 5_000
  /// 1 KiB to 1 GiB.
  package var answerBytesMax = 15 << 20
  /// The most calls that the caller makes at once; the client keeps this many connections. 1 to 1,024.
  package var callsMax = 64

  package init() {}

  package func url(of endpoint: AppStoreEndpoint) -> String {
    endpoint == .production ? productionURL : sandboxURL
  }

  /// The endpoint's host as verifications record it: in lower case, with the port if the URL names one other
  /// than the scheme's default. Throws unless a client can use the URL.
  package func host(of endpoint: AppStoreEndpoint) throws(VerifyReceiptOptionsError) -> String {
    try target(of: endpoint).host
  }

  /// Throws unless a client can use these options.
  package func check() throws(VerifyReceiptOptionsError) {
    for endpoint in AppStoreEndpoint.allCases { _ = try target(of: endpoint) }
    try check("connect timeout in milliseconds", connectTimeoutMs, 1...600_000)
    try check("timeout in milliseconds", timeoutMs, 1...600_000)
    try check("largest reply in bytes", answerBytesMax, 1 << 10...1 << 30)
    try check("number of calls at once", callsMax, 1...1_024)
  }

  func target(
    of endpoint: AppStoreEndpoint
  ) throws(VerifyReceiptOptionsError) -> EndpointTarget {
    do { return try EndpointTarget(url(of: endpoint)) } catch { throw .url(endpoint, error) }
  }

  private func check(
    _ name: String, _ value: Int, _ range: ClosedRange<Int>
  ) throws(VerifyReceiptOptionsError) {
    if !range.contains(value) { throw .outOfRange(name, value, range) }
  }
}

/// Why options are refused. The messages never show a URL, which may contain secrets.
package enum VerifyReceiptOptionsError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What can be wrong with an endpoint's URL.
  package enum URLFault: String, Error, Sendable {
    case notAURL = "it is not a URL"
    case credentials = "it contains a user name or password, which would appear in logs"
    case scheme = "it must use https, or http to a loopback address"
    case remoteHTTP = "http is allowed only to loopback addresses; receipts need https"
  }

  case url(AppStoreEndpoint, URLFault)
  case outOfRange(String, Int, ClosedRange<Int>)
  /// The system provided no thread or no memory.
  case noResources(String)

  package var description: String {
    switch self {
    case .url(let endpoint, let fault):
      "configure the App Store client: URL of \(endpoint.rawValue): \(fault.rawValue)"
    case .outOfRange(let name, let value, let range):
      "configure the App Store client: \(name): \(value) is not from "
        + "\(range.lowerBound) to \(range.upperBound)"
    case .noResources(let cause): "start the App Store client: \(cause)"
    }
  }
}

/// The address of one endpoint, in the form libcurl needs.
package struct EndpointTarget: Sendable {
  let url: String
  /// The only protocol allowed.
  let scheme: String
  /// Without credentials, in lower case; with the port if it is not the scheme's default.
  package let host: String
  /// Connect directly, whatever proxies the environment names.
  let isPlainLoopback: Bool

  package init(_ url: String) throws(VerifyReceiptOptionsError.URLFault) {
    guard let parts = curl_url() else { throw .notAURL }
    defer { curl_url_cleanup(parts) }
    guard !url.utf8.contains(0), url.utf8.count <= 2_048 else { throw .notAURL }
    guard curl_url_set(parts, CURLUPART_URL, url, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK
    else { throw .notAURL }
    guard Self.part(CURLUPART_USER, of: parts) == nil,
      Self.part(CURLUPART_PASSWORD, of: parts) == nil
    else { throw .credentials }
    guard let scheme = Self.part(CURLUPART_SCHEME, of: parts)?.lowercased() else { throw .notAURL }
    guard scheme == "https" || scheme == "http" else { throw .scheme }
    guard let host = Self.part(CURLUPART_HOST, of: parts), !host.isEmpty else { throw .notAURL }
    isPlainLoopback = scheme == "http"
    guard !isPlainLoopback || Self.isLoopback(host) else { throw .remoteHTTP }
    self.scheme = scheme
    let port = Self.part(CURLUPART_PORT, of: parts)
    let standardPort = isPlainLoopback ? "80" : "443"
    self.host = host.lowercased() + (port.flatMap { $0 == standardPort ? nil : ":\($0)" } ?? "")
    self.url = url
  }

  private static func part(_ part: CURLUPart, of parts: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, part, &text, 0) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }

  /// `localhost` (which libcurl never looks up), 127.0.0.0/8 or ::1.
  private static func isLoopback(_ host: String) -> Bool {
    if host.lowercased() == "localhost" { return true }
    var address = in_addr()
    if inet_pton(AF_INET, host, &address) == 1 {
      return UInt32(bigEndian: address.s_addr) >> 24 == 127
    }
    return host == "[::1]"
  }
}
