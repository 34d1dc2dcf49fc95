// The App Store's verifyReceipt over libcurl: one thread that all calls share.
private import Base
internal import CCurl

/// Asks the App Store: production first, and on status 21007 or 21008 the other endpoint, once.
/// Connections are kept and used again. Each call begins at once; the caller limits how many there are.
package final class VerifyReceiptClient: VerifyReceiptService {
  private let queue: CallQueue
  private let multi: MultiHandle
  /// Nil once somebody waits for its end.
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
    // The last reference may go on the thread itself, which cannot wait for its own end.
    thread.withLock { $0.take() }?.detach()
  }

  /// As the protocol requires; after `shutDown()` the completion is called at once, on the caller's thread.
  package func verify(
    _ request: VerifyReceiptRequest,
    completion: @escaping @Sendable (VerifyReceiptAnswer) -> Void
  ) {
    let call = RequestedCall(
      request: request, completion: completion, askedAtMs: MonotonicClock.nowMs())
    guard queue.append(call) else { return call.end(.cancelled) }
    multi.wake()
  }

  /// Ends every call that is under way or waits with `.cancelled`, and waits until their completions
  /// have returned; called by one of these it only begins to end. A second call does nothing.
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

/// libcurl's set of transfers. Only `wake()` may be called by other threads than the client's.
final class MultiHandle: @unchecked Sendable {
  // Unchecked: curl_multi_wakeup is made for other threads, and nothing else is used by them.
  let handle: UnsafeMutableRawPointer

  /// Done once in a process; libcurl asks for it before all else.
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
