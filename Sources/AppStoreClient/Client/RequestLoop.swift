// The client's thread: starts requests, drives libcurl, hands out answers.
private import Base
internal import CCurl
private import Glibc

/// A request that the client's thread has not started yet.
struct QueuedRequest: Sendable {
  let request: HTTPRequest
  let completion: @Sendable (HTTPOutcome) -> Void

  /// Completes the request with a failure, without sending it.
  func end(_ failure: HTTPFailure) {
    var outcome = HTTPOutcome(.failure(failure))
    outcome.wasStarted = false
    completion(outcome)
  }
}

/// The requests that the client's thread has not started yet. The caller limits them: the verification scheduler
/// never has more calls in flight than configured, nor has a synchronization.
final class RequestQueue: Sendable {
  private struct State {
    var requests: [QueuedRequest] = []
    var isClosed = false
  }

  private let state = Monitor(State())

  /// Queues a request for the thread, which the caller must then wake. Returns false if the queue is closed.
  func append(_ request: QueuedRequest) -> Bool {
    state.withLock { state in
      if state.isClosed { return false }
      state.requests.append(request)
      return true
    }
  }

  /// Rejects all further requests.
  func close() { state.withLock { $0.isClosed = true } }

  /// Removes and returns all requests. If the queue is closed, they are to be cancelled.
  func popAll() -> (requests: [QueuedRequest], isClosed: Bool) {
    state.withLock { state in
      defer { state.requests = [] }
      return (state.requests, state.isClosed)
    }
  }
}

/// The work of the client's thread. Other threads call only `init`.
final class RequestLoop {
  /// A request in progress.
  private struct Running {
    let completion: @Sendable (HTTPOutcome) -> Void
    let transfer: Transfer
  }

  private let options: HTTPClientOptions
  private let queue: RequestQueue
  private let multi: MultiHandle
  /// Keyed by libcurl's handle.
  private var running: [UnsafeMutableRawPointer: Running] = [:]
  private var idle: [Transfer] = []

  private static let longestWaitMs: Int32 = 60_000

  init(
    _ options: HTTPClientOptions, _ queue: RequestQueue, _ multi: MultiHandle
  ) throws(HTTPClientError) {
    self.options = options
    self.queue = queue
    self.multi = multi
    // Find out now, not at the first request, whether libcurl has all the required features.
    guard let first = Transfer(options) else {
      throw HTTPClientError(cause: "libcurl is out of memory or lacks a feature")
    }
    idle = [first]
  }

  /// Runs until the queue is closed and every request has ended.
  func run() {
    while true {
      let (requests, isClosed) = queue.popAll()
      if isClosed {
        for request in requests { request.end(.cancelled) }
        return endAll(.cancelled)
      }
      for request in requests { start(request) }
      var stillRunning: Int32 = 0
      guard curl_multi_perform(multi.handle, &stillRunning) == CURLM_OK else {
        failAll()
        continue
      }
      // A completion may have made another request.
      if endFinished() == 0 { wait() }
    }
  }

  private func wait() {
    // libcurl shortens this wait to its own next timeout.
    if curl_multi_poll(multi.handle, nil, 0, Self.longestWaitMs, nil) != CURLM_OK { usleep(10_000) }
  }

  private func start(_ queued: QueuedRequest) {
    guard let transfer = idle.popLast() ?? Transfer(options) else {
      return queued.end(.connectionFailed)
    }
    guard transfer.prepare(queued.request),
      curl_multi_add_handle(multi.handle, transfer.handle) == CURLM_OK
    else {
      transfer.forget()
      idle.append(transfer)
      return queued.completion(HTTPOutcome(.failure(.connectionFailed)))
    }
    running[transfer.handle] = Running(completion: queued.completion, transfer: transfer)
  }

  /// Processes the transfers that have ended; returns their number.
  private func endFinished() -> Int {
    var count = 0
    var remaining: Int32 = 0
    while let message = curl_multi_info_read(multi.handle, &remaining) {
      guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else {
        continue
      }
      // Removing the handle frees the message.
      let code = message.pointee.data.result
      count += 1
      curl_multi_remove_handle(multi.handle, handle)
      guard let ended = running.removeValue(forKey: handle) else { continue }
      let outcome = ended.transfer.finish(code)
      idle.append(ended.transfer)
      ended.completion(outcome)
    }
    return count
  }

  /// libcurl itself has failed. The handles are not reused.
  private func failAll() {
    endAll(.connectionFailed)
    usleep(10_000)
  }

  private func endAll(_ failure: HTTPFailure) {
    let ended = running
    running = [:]
    for (handle, request) in ended {
      curl_multi_remove_handle(multi.handle, handle)
      request.completion(HTTPOutcome(.failure(failure)))
    }
  }
}
