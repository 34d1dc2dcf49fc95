// The options of the verifyReceipt client, and the checks on them.
package import AppStore
import Base

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

  func target(of endpoint: AppStoreEndpoint) throws(VerifyReceiptOptionsError) -> HTTPURL {
    do { return try HTTPURL(url(of: endpoint)) } catch { throw .url(endpoint, error) }
  }

  private func check(
    _ name: String, _ value: Int, _ range: ClosedRange<Int>
  ) throws(VerifyReceiptOptionsError) {
    if !range.contains(value) { throw .outOfRange(name, value, range) }
  }
}

/// Why options are refused. The messages never show a URL, which may contain secrets.
package enum VerifyReceiptOptionsError: ReportableError, Equatable, Sendable,
  CustomStringConvertible
{
  case url(AppStoreEndpoint, HTTPURL.Fault)
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

  package func lines(for command: String) -> [String] { [description] }
}
