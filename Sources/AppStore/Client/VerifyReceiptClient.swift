// A client of the App Store's verifyReceipt on top of libcurl: all calls share one thread.
private import Base
internal import CCurl

/// Asks the App Store: production first and, on status 21007 or 21008, once the other endpoint. Connections
/// are kept and reused. Each call starts at once; the caller limits how many run.
package final class VerifyReceiptClient: VerifyReceiptService {
  private let queue: CallQueue
  private let multi: MultiHandle
  /// Nil once a caller waits for the thread to end.
  private let thread: Monitor<WorkerThread?>

  /// Starts the client's thread. Throws unless `options.check()` passes.
  package init(_ options: VerifyReceiptOptions = .init()) throws(VerifyReceiptOptionsError) {
    try options.check()
    queue = CallQueue()
    multi = try MultiHandle(options)
    let loop = try CallLoop(options, queue, multi)
    do throws(SystemError) { thread = Monitor(try WorkerThread { loop.run() }) } catch {
      throw .noResources("the system starts no more threads")
    }
  }

  deinit {
    close()
    // The thread itself may release the last reference, and it cannot wait for its own end.
    thread.withLock { $0.take() }?.detach()
  }

  /// Implements the protocol. After `shutDown()`, the completion is called at once, on the caller's thread.
  package func verify(
    _ request: VerifyReceiptRequest,
    completion: @escaping @Sendable (VerifyReceiptAnswer) -> Void
  ) {
    let call = RequestedCall(
      request: request, completion: completion, askedAtMs: MonotonicClock.nowMs())
    guard queue.append(call) else { return call.end(.cancelled) }
    multi.wake()
  }

  /// Ends all running and waiting calls with `.cancelled`, and waits until their completions have returned.
  /// When called from a completion, it does not wait. A second call does nothing.
  package func shutDown() {
    close()
    guard let thread = thread.withLock({ $0.take() }) else { return }
    if thread.isCurrent { thread.detach() } else { thread.join() }
  }

  private func close() {
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

  init(_ options: VerifyReceiptOptions) throws(VerifyReceiptOptionsError) {
    guard Self.isReady, let handle = curl_multi_init() else {
      throw .noResources("libcurl cannot be initialised")
    }
    self.handle = handle
    _ = ccurl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, options.callsMax)
  }

  deinit { curl_multi_cleanup(handle) }

  func wake() { _ = curl_multi_wakeup(handle) }
}
