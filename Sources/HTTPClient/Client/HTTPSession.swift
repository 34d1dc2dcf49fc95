// Many requests at once on one thread, with libcurl's kept connections: as a loop that its caller drives, and with a
// thread of its own.
import Base
import CCurl
import Glibc

/// Why a client could not be started.
package struct HTTPClientError: Error, Equatable, Sendable {
  /// Starts with a lower-case letter.
  package let cause: String
}

/// libcurl's set of transfers, and the connections that it keeps. Threads other than the one that drives them may
/// call only `wake()`.
package final class HTTPTransfers: @unchecked Sendable {
  // Unchecked: curl_multi_wakeup is thread-safe, and other threads use nothing else.
  fileprivate let handle: UnsafeMutableRawPointer

  /// - Parameter connectionsMax: how many are kept; by default four for each transfer.
  package init(connectionsMax: Int? = nil) throws(HTTPClientError) {
    guard HTTPTransfer.isLibraryReady, let handle = curl_multi_init() else {
      throw HTTPClientError(cause: "libcurl cannot be initialised")
    }
    self.handle = handle
    if let connectionsMax {
      _ = ccurl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, connectionsMax)
    }
  }

  deinit { curl_multi_cleanup(handle) }

  package func wake() { _ = curl_multi_wakeup(handle) }
}

/// Starts requests, drives libcurl, hands out what came of them. Used by one thread.
package final class RequestLoop<Tag> {
  private let options: HTTPOptions
  private let transfers: HTTPTransfers
  /// Keyed by libcurl's handle.
  private var running: [UnsafeMutableRawPointer: (transfer: HTTPTransfer, tag: Tag)] = [:]
  private var idle: [HTTPTransfer] = []

  package init(_ options: HTTPOptions, _ transfers: HTTPTransfers) {
    (self.options, self.transfers) = (options, transfers)
  }

  /// Finds out now, not at the first request, whether libcurl has all the required features.
  func checkFeatures() throws(HTTPClientError) {
    guard let transfer = HTTPTransfer(options) else {
      throw HTTPClientError(cause: "libcurl is out of memory or lacks a feature")
    }
    idle.append(transfer)
  }

  /// Starts a request, whose outcome `perform()` will return; returns false if libcurl is out of memory.
  package func start(_ request: HTTPRequest, _ tag: Tag) -> Bool {
    guard let transfer = idle.popLast() ?? HTTPTransfer(options) else { return false }
    guard transfer.prepare(request),
      curl_multi_add_handle(transfers.handle, transfer.handle) == CURLM_OK
    else {
      transfer.reset()
      idle.append(transfer)
      return false
    }
    running[transfer.handle] = (transfer, tag)
    return true
  }

  /// Sends and receives what can be sent and received now; returns the requests that have ended.
  package func perform() -> [(Tag, HTTPOutcome)] {
    var stillRunning: Int32 = 0
    guard curl_multi_perform(transfers.handle, &stillRunning) == CURLM_OK else {
      // The handles are not reused.
      return cancelAll().map { ($0, HTTPOutcome(.libraryFailed)) }
    }
    var ended: [(Tag, HTTPOutcome)] = []
    var remaining: Int32 = 0
    while let message = curl_multi_info_read(transfers.handle, &remaining) {
      guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else {
        continue
      }
      // Removing the handle frees the message.
      let code = message.pointee.data.result
      curl_multi_remove_handle(transfers.handle, handle)
      guard let (transfer, tag) = running.removeValue(forKey: handle) else { continue }
      ended.append((tag, transfer.finish(code)))
      idle.append(transfer)
    }
    return ended
  }

  /// Waits until a request can continue, another thread wakes the transfers, or the limit has passed.
  package func wait(limitMs: Int32) {
    // libcurl shortens this wait to its own next timeout.
    if curl_multi_poll(transfers.handle, nil, 0, limitMs, nil) != CURLM_OK { usleep(10_000) }
  }

  /// Gives up all requests.
  package func cancelAll() -> [Tag] {
    for handle in running.keys { curl_multi_remove_handle(transfers.handle, handle) }
    defer { running = [:] }
    return running.values.map(\.tag)
  }

  deinit { _ = cancelAll() }
}

/// Sends requests on a thread of its own. Each request starts at once; the caller limits how many run.
package final class HTTPSession: Sendable {
  package typealias Completion = @Sendable (HTTPOutcome) -> Void

  /// The requests that the thread has not started yet.
  private struct Queue {
    var requests: [(request: HTTPRequest, completion: Completion)] = []
    var isClosed = false
  }

  private let queue: Monitor<Queue>
  private let transfers: HTTPTransfers
  /// Nil once a caller waits for the thread to end.
  private let thread: Monitor<WorkerThread?>

  private static let longestWaitMs: Int32 = 60_000

  /// Starts the thread.
  /// - Parameter requestsMax: the most requests that the caller makes at once; as many connections are kept.
  package init(_ options: HTTPOptions, requestsMax: Int) throws(HTTPClientError) {
    let queue = Monitor(Queue())
    let transfers = try HTTPTransfers(connectionsMax: requestsMax)
    let loop = RequestLoop<Completion>(options, transfers)
    try loop.checkFeatures()
    do throws(SystemError) {
      thread = Monitor(try WorkerThread { Self.run(loop, queue) })
    } catch { throw HTTPClientError(cause: "the system starts no more threads") }
    (self.queue, self.transfers) = (queue, transfers)
  }

  deinit {
    close()
    // The thread itself may release the last reference, and it cannot wait for its own end.
    thread.withLock { $0.take() }?.detach()
  }

  /// Sends a request and calls `completion` exactly once, on the session's thread. Never blocks. After
  /// `shutDown()`, the completion is called at once, on the caller's thread.
  package func send(_ request: HTTPRequest, completion: @escaping Completion) {
    let isQueued = queue.withLock { queue in
      if !queue.isClosed { queue.requests.append((request, completion)) }
      return !queue.isClosed
    }
    if isQueued { transfers.wake() } else { Self.end(completion, .cancelled) }
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
    queue.withLock { $0.isClosed = true }
    transfers.wake()
  }

  /// The work of the thread: runs until the queue is closed and every request has ended.
  private static func run(_ loop: RequestLoop<Completion>, _ queue: Monitor<Queue>) {
    while true {
      let (requests, isClosed) = queue.withLock { queue in
        defer { queue.requests = [] }
        return (queue.requests, queue.isClosed)
      }
      if isClosed {
        for (_, completion) in requests { end(completion, .cancelled) }
        for completion in loop.cancelAll() { completion(HTTPOutcome(.cancelled)) }
        return
      }
      for (request, completion) in requests where !loop.start(request, completion) {
        end(completion, .outOfMemory)
      }
      let ended = loop.perform()
      for (completion, outcome) in ended { completion(outcome) }
      // A completion may have made another request.
      if ended.isEmpty { loop.wait(limitMs: longestWaitMs) }
    }
  }

  /// Completes a request that was not sent.
  private static func end(_ completion: Completion, _ failure: HTTPFailure) {
    var outcome = HTTPOutcome(failure)
    outcome.wasStarted = false
    completion(outcome)
  }
}

/// The library that sends all requests.
package enum HTTPClientLibrary {
  /// For example `libcurl 7.88.1`, as this system has it.
  package static var name: String {
    // The first layout of what it returns has the version already.
    let info = curl_version_info(CURLVERSION_FIRST)
    return "libcurl "
      + (info?.pointee.version.map { String(cString: $0) } ?? CryptoLibrary.unknownVersion)
  }
}
