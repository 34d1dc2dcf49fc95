// A client of HTTP endpoints on top of libcurl: all requests share one thread.
private import Base
internal import CCurl

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
