// A client of the App Store Server API.
package import AppStore
import Base

/// How to call the App Store Server API.
package struct ServerAPIOptions: Sendable, Equatable {
  /// https, or http to a loopback address or `localhost` only.
  package var productionURL = "https://api.storekit.apple.com"
  package var sandboxURL = "https://api.storekit-sandbox.apple.com"
  package var connectTimeoutMs = 5_000
  package var timeoutMs = 30_000
  package var answerBytesMax = 15 << 20
  /// The most calls at once.
  package var callsMax = 16

  package init() {}

  package func url(of endpoint: AppStoreEndpoint) -> String {
    endpoint == .production ? productionURL : sandboxURL
  }
}

/// A service that answers the calls.
package protocol ServerAPIService: AnyObject, Sendable {
  /// Makes a call, and calls `completion` exactly once, on a thread of the service. Never blocks.
  func send(
    _ call: ServerAPICall, as account: ServerAPIAccount, to endpoint: AppStoreEndpoint,
    completion: @escaping @Sendable (ServerAPIResponse) -> Void)
  /// The host of an endpoint, with its port unless it is the scheme's own.
  func host(of endpoint: AppStoreEndpoint) -> String
  /// Ends all calls under way.
  func shutDown()
}

/// Calls the App Store Server API. Each call starts at once; the caller limits how many run, and how fast.
package final class ServerAPIClient: ServerAPIService {
  private let http: AppStoreSession
  private let nowMs: @Sendable () -> Int64

  /// Starts the client's thread. Throws where a URL cannot be used, or the system gives no thread.
  /// - Parameter nowMs: the clock of tokens, in epoch milliseconds.
  package init(
    _ options: ServerAPIOptions = .init(), nowMs: @escaping @Sendable () -> Int64 = Timestamp.now
  ) throws(VerifyReceiptOptionsError) {
    self.nowMs = nowMs
    http = try AppStoreSession(
      production: try Self.target(.production, options),
      sandbox: try Self.target(.sandbox, options),
      connectTimeoutMs: options.connectTimeoutMs, timeoutMs: options.timeoutMs,
      answerBytesMax: options.answerBytesMax, callsMax: options.callsMax)
  }

  deinit { http.close() }

  private static func target(
    _ endpoint: AppStoreEndpoint, _ options: ServerAPIOptions
  ) throws(VerifyReceiptOptionsError) -> HTTPURL {
    // Paths are put behind it.
    var url = options.url(of: endpoint)
    while url.hasSuffix("/") { url.removeLast() }
    do { return try HTTPURL(url) } catch { throw .url(endpoint, error) }
  }

  package func send(
    _ call: ServerAPICall, as account: ServerAPIAccount, to endpoint: AppStoreEndpoint,
    completion: @escaping @Sendable (ServerAPIResponse) -> Void
  ) {
    guard let token = account.token(nowMs: nowMs()) else {
      return completion(.failure(.cannotSign))
    }
    http.send(
      call.method, to: endpoint, path: call.path, headers: ["Authorization: Bearer \(token)"],
      body: call.body
    ) { [nowMs] outcome in
      completion(ServerAPIResponse(call, outcome, nowMs: nowMs()))
    }
  }

  package func host(of endpoint: AppStoreEndpoint) -> String { http.url(of: endpoint).host }

  /// Ends all calls with `.cancelled`, and waits until their completions have returned.
  package func shutDown() { http.shutDown() }
}

// MARK: - The calls of the App Store Server API: their paths and bodies

/// One call.
package enum ServerAPICall: Sendable, Equatable {
  /// All transactions of the customer who made this one, 20 a page, the oldest change first.
  case history(transactionID: String, revision: String?)
  case transaction(transactionID: String)
  /// The customer's subscriptions, with their renewal information.
  case statuses(transactionID: String)
  /// The customer's refunded transactions.
  case refundLookup(transactionID: String, revision: String?)
  /// The notifications that the App Store sent, or tried to, from `fromMs` to `toMs` (epoch milliseconds).
  case notificationHistory(fromMs: Int64, toMs: Int64, paginationToken: String?)
  case requestTestNotification
  /// What became of a TEST notification.
  case testNotification(token: String)

  var method: HTTPRequest.Method {
    switch self {
    case .notificationHistory, .requestTestNotification: .post
    case .history, .transaction, .statuses, .refundLookup, .testNotification: .get
    }
  }

  /// The path with its query.
  var path: String {
    switch self {
    case .history(let id, let revision):
      "/inApps/v2/history/\(Self.encoded(id))?sort=ASCENDING" + Self.query("&revision", revision)
    case .transaction(let id): "/inApps/v1/transactions/\(Self.encoded(id))"
    case .statuses(let id): "/inApps/v1/subscriptions/\(Self.encoded(id))"
    case .refundLookup(let id, let revision):
      "/inApps/v2/refund/lookup/\(Self.encoded(id))" + Self.query("?revision", revision)
    case .notificationHistory(_, _, let token):
      "/inApps/v1/notifications/history" + Self.query("?paginationToken", token)
    case .requestTestNotification: "/inApps/v1/notifications/test"
    case .testNotification(let token): "/inApps/v1/notifications/test/\(Self.encoded(token))"
    }
  }

  var body: [UInt8] {
    guard case .notificationHistory(let fromMs, let toMs, _) = self else { return [] }
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("startDate", fromMs)
    writer.member("endDate", toMs)
    writer.endObject()
    return writer.bytes
  }

  private static func query(_ name: String, _ value: String?) -> String {
    value.map { "\(name)=\(encoded($0))" } ?? ""
  }

  /// Percent-encoded but for what RFC 3986 leaves alone everywhere; a lone point would be a path of its own.
  private static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
