// A client of HTTP endpoints on top of libcurl: all requests share one thread.
import Base
import CCurl

/// Why a client could not be started.
package struct HTTPClientError: Error, Equatable, Sendable {
  /// Starts with a lower-case letter.
  package let cause: String
}

/// Sends requests. Connections are kept and reused, redirects are not followed. Each request starts at once; the
/// caller limits how many run.
package final class HTTPClient: Sendable {
  private let queue: RequestQueue
  private let multi: MultiHandle
  /// Nil once a caller waits for the thread to end.
  private let thread: Monitor<WorkerThread?>

  /// Starts the client's thread.
  package init(_ options: HTTPClientOptions) throws(HTTPClientError) {
    queue = RequestQueue()
    multi = try MultiHandle(callsMax: options.callsMax)
    let loop = try RequestLoop(options, queue, multi)
    do throws(SystemError) { thread = Monitor(try WorkerThread { loop.run() }) } catch {
      throw HTTPClientError(cause: "the system starts no more threads")
    }
  }

  deinit {
    close()
    // The thread itself may release the last reference, and it cannot wait for its own end.
    thread.withLock { $0.take() }?.detach()
  }

  /// Sends a request and calls `completion` exactly once, on the client's thread. Never blocks. After
  /// `shutDown()`, the completion is called at once, on the caller's thread.
  package func send(
    _ request: HTTPRequest, completion: @escaping @Sendable (HTTPOutcome) -> Void
  ) {
    let queued = QueuedRequest(request: request, completion: completion)
    guard queue.append(queued) else { return queued.end(.cancelled) }
    multi.wake()
  }

  /// Ends all running and waiting requests with `.cancelled`, and waits until their completions have returned.
  /// When called from a completion, it does not wait. A second call does nothing.
  package func shutDown() {
    close()
    guard let thread = thread.withLock({ $0.take() }) else { return }
    if thread.isCurrent { thread.detach() } else { thread.join() }
  }

  /// As `shutDown`, without waiting.
  func close() {
    queue.close()
    multi.wake()
  }
}

/// libcurl's set of transfers. Threads other than the client's may call only `wake()`.
final class MultiHandle: @unchecked Sendable {
  // Unchecked: curl_multi_wakeup is thread-safe, and other threads use nothing else.
  let handle: UnsafeMutableRawPointer

  /// Runs once per process; libcurl requires it before any other call.
  private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  init(callsMax: Int) throws(HTTPClientError) {
    guard Self.isReady, let handle = curl_multi_init() else {
      throw HTTPClientError(cause: "libcurl cannot be initialised")
    }
    self.handle = handle
    _ = ccurl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, callsMax)
  }

  deinit { curl_multi_cleanup(handle) }

  func wake() { _ = curl_multi_wakeup(handle) }
}

// MARK: - The library that calls the App Store and webhooks

package enum HTTPClientLibrary {
  /// For example `libcurl 7.88.1`, as this system has it.
  package static var name: String {
    // The first layout of what it returns has the version already.
    let info = curl_version_info(CURLVERSION_FIRST)
    return "libcurl "
      + (info?.pointee.version.map { String(cString: $0) } ?? CryptoLibrary.unknownVersion)
  }
}

// MARK: - One HTTP request to an endpoint, and what came of it

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
