// A client of the App Store Server API.
package import AppStore
private import Base

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
    completion: @escaping @Sendable (ServerAPIAnswer) -> Void)
  /// The host of an endpoint, with its port unless it is the scheme's own.
  func host(of endpoint: AppStoreEndpoint) -> String
  /// Ends all calls under way.
  func shutDown()
}

/// Calls the App Store Server API. Each call starts at once; the caller limits how many run, and how fast.
package final class ServerAPIClient: ServerAPIService {
  private let http: HTTPClient
  private let production: EndpointTarget
  private let sandbox: EndpointTarget
  private let nowMs: @Sendable () -> Int64

  /// Starts the client's thread. Throws where a URL cannot be used, or the system gives no thread.
  /// - Parameter nowMs: the clock of tokens, in epoch milliseconds.
  package init(
    _ options: ServerAPIOptions = .init(), nowMs: @escaping @Sendable () -> Int64 = Timestamp.now
  ) throws(VerifyReceiptOptionsError) {
    production = try Self.target(.production, options)
    sandbox = try Self.target(.sandbox, options)
    self.nowMs = nowMs
    let httpOptions = HTTPClientOptions(
      connectTimeoutMs: options.connectTimeoutMs, timeoutMs: options.timeoutMs,
      answerBytesMax: options.answerBytesMax, callsMax: options.callsMax)
    do throws(HTTPClientError) { http = try HTTPClient(httpOptions) } catch {
      throw .noResources(error.cause)
    }
  }

  deinit { http.close() }

  private static func target(
    _ endpoint: AppStoreEndpoint, _ options: ServerAPIOptions
  ) throws(VerifyReceiptOptionsError) -> EndpointTarget {
    // Paths are put behind it.
    var url = options.url(of: endpoint)
    while url.hasSuffix("/") { url.removeLast() }
    do { return try EndpointTarget(url) } catch { throw .url(endpoint, error) }
  }

  package func send(
    _ call: ServerAPICall, as account: ServerAPIAccount, to endpoint: AppStoreEndpoint,
    completion: @escaping @Sendable (ServerAPIAnswer) -> Void
  ) {
    guard let token = account.token(nowMs: nowMs()) else {
      return completion(.failure(.cannotSign))
    }
    let request = HTTPRequest(
      endpoint == .production ? production : sandbox, call.method, path: call.path,
      headers: ["Authorization: Bearer \(token)"], body: call.body)
    http.send(request) { [nowMs] outcome in
      completion(ServerAPIAnswer(call, outcome, nowMs: nowMs()))
    }
  }

  package func host(of endpoint: AppStoreEndpoint) -> String {
    (endpoint == .production ? production : sandbox).host
  }

  /// Ends all calls with `.cancelled`, and waits until their completions have returned.
  package func shutDown() { http.shutDown() }
}
