// The client's thread: starts calls, drives libcurl, reads answers, switches endpoints.
private import Base
internal import CCurl
private import Glibc
private import JSON

/// One call, as requested.
struct RequestedCall: Sendable {
  let request: VerifyReceiptRequest
  let completion: @Sendable (VerifyReceiptAnswer) -> Void
  /// Monotonic clock.
  let askedAtMs: Int64

  /// Time since the request.
  var elapsedMs: Int64 { MonotonicClock.nowMs() - askedAtMs }

  /// Completes the call with a failure, without asking the App Store.
  func end(_ failure: VerifyReceiptFailure) {
    completion(
      VerifyReceiptAnswer(
        content: .none(failure), endpoint: .production, host: nil, httpStatus: nil,
        durationMs: elapsedMs))
  }
}

/// The calls that the client's thread has not started yet. The caller limits them: the verification scheduler
/// never has more calls in flight than configured.
final class CallQueue: Sendable {
  private struct State {
    var calls: [RequestedCall] = []
    var isClosed = false
  }

  private let state = Monitor(State())

  /// Queues a call for the thread, which the caller must then wake. Returns false if the queue is closed.
  func append(_ call: RequestedCall) -> Bool {
    state.withLock { state in
      if state.isClosed { return false }
      state.calls.append(call)
      return true
    }
  }

  /// Rejects all further calls.
  func close() { state.withLock { $0.isClosed = true } }

  /// Removes and returns all calls. If the queue is closed, they are to be cancelled.
  func popAll() -> (calls: [RequestedCall], isClosed: Bool) {
    state.withLock { state in
      defer { state.calls = [] }
      return (state.calls, state.isClosed)
    }
  }
}

/// A call in progress.
private final class RunningCall {
  let call: RequestedCall
  let transfer: Transfer
  var endpoint = AppStoreEndpoint.production
  var hasSwitched = false

  init(_ call: RequestedCall, _ transfer: Transfer) {
    self.call = call
    self.transfer = transfer
  }
}

/// The work of the client's thread. Other threads call only `init`.
final class CallLoop {
  private let options: VerifyReceiptOptions
  private let queue: CallQueue
  private let multi: MultiHandle
  private let production: EndpointTarget
  private let sandbox: EndpointTarget
  /// Keyed by libcurl's handle.
  private var running: [UnsafeMutableRawPointer: RunningCall] = [:]
  private var idle: [Transfer] = []

  /// How much of an answer that is not JSON is recorded.
  private static let otherBytesMax = 64 << 10
  private static let longestWaitMs: Int32 = 60_000

  init(
    _ options: VerifyReceiptOptions, _ queue: CallQueue, _ multi: MultiHandle
  ) throws(VerifyReceiptOptionsError) {
    self.options = options
    self.queue = queue
    self.multi = multi
    production = try options.target(of: .production)
    sandbox = try options.target(of: .sandbox)
    // Find out now, not at the first receipt, whether libcurl has all the required features.
    guard let first = Transfer(options) else {
      throw .noResources("libcurl is out of memory or lacks a feature")
    }
    idle = [first]
  }

  /// Runs until the queue is closed and every call has ended.
  func run() {
    while true {
      let (calls, isClosed) = queue.popAll()
      if isClosed {
        for call in calls { call.end(.cancelled) }
        return endAll(.cancelled)
      }
      for call in calls { start(call) }
      var stillRunning: Int32 = 0
      guard curl_multi_perform(multi.handle, &stillRunning) == CURLM_OK else {
        failAll()
        continue
      }
      // A completion may have requested another call.
      if endFinished() == 0 { wait() }
    }
  }

  private func wait() {
    // libcurl shortens this wait to its own next timeout.
    if curl_multi_poll(multi.handle, nil, 0, Self.longestWaitMs, nil) != CURLM_OK { usleep(10_000) }
  }

  // MARK: A call's way

  private func start(_ waiting: RequestedCall) {
    guard let transfer = idle.popLast() ?? Transfer(options) else {
      return waiting.end(.connectionFailed)
    }
    ask(RunningCall(waiting, transfer))
  }

  private func ask(_ call: RunningCall) {
    let target = call.endpoint == .production ? production : sandbox
    guard call.transfer.prepare(Self.body(call.call.request), for: target),
      curl_multi_add_handle(multi.handle, call.transfer.handle) == CURLM_OK
    else {
      call.transfer.forget()
      idle.append(call.transfer)
      return end(call, .none(.connectionFailed), httpStatus: nil)
    }
    running[call.transfer.handle] = call
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
      if let call = running.removeValue(forKey: handle) { finish(call, code) }
    }
    return count
  }

  private func finish(_ call: RunningCall, _ code: CURLcode) {
    let outcome = call.transfer.finish(code)
    switch outcome {
    case .failure(let failure, let httpStatus):
      idle.append(call.transfer)
      end(call, .none(failure), httpStatus: httpStatus)
    case .answer(let bytes):
      let content = Self.content(bytes)
      if !call.hasSwitched, Self.pointsElsewhere(content) {
        call.hasSwitched = true
        call.endpoint = call.endpoint.other
        return ask(call)
      }
      idle.append(call.transfer)
      end(call, content, httpStatus: 200)
    }
  }

  private func end(
    _ call: RunningCall, _ content: VerifyReceiptAnswer.Content, httpStatus: Int?
  ) {
    call.call.completion(
      VerifyReceiptAnswer(
        content: content, endpoint: call.endpoint,
        host: (call.endpoint == .production ? production : sandbox).host, httpStatus: httpStatus,
        durationMs: call.call.elapsedMs))
  }

  /// libcurl itself has failed. The handles are not reused.
  private func failAll() {
    endAll(.connectionFailed)
    usleep(10_000)
  }

  private func endAll(_ failure: VerifyReceiptFailure) {
    for (handle, call) in running {
      curl_multi_remove_handle(multi.handle, handle)
      end(call, .none(failure), httpStatus: nil)
    }
    running = [:]
  }

  // MARK: Bytes

  private static func body(_ request: VerifyReceiptRequest) -> [UInt8] {
    var writer = JSONWriter()
    writer.reserve(request.receiptText.count + 256)
    writer.beginObject()
    writer.key("receipt-data")
    request.receiptText.withUnsafeBytes { writer.string($0) }
    if let secret = request.sharedSecret {
      writer.key("password")
      secret.withUnsafeBytes { writer.string($0) }
    }
    writer.key("exclude-old-transactions")
    writer.boolean(false)
    writer.endObject()
    return writer.bytes
  }

  private static func content(_ answer: [UInt8]) -> VerifyReceiptAnswer.Content {
    var compact: [UInt8] = []
    compact.reserveCapacity(answer.count)
    let isJSON = answer.withUnsafeBytes { bytes in
      do throws(JSONError) { try JSONValidator.compact(bytes, to: &compact) } catch { return false }
      return true
    }
    return isJSON ? .json(compact) : .other(Array(answer.prefix(otherBytesMax)))
  }

  /// Whether the status says to use the other endpoint.
  private static func pointsElsewhere(_ content: VerifyReceiptAnswer.Content) -> Bool {
    guard case .json(let bytes) = content else { return false }
    return bytes.withUnsafeBytes { bytes in
      let keeper = TextKeeper()
      let status = try? Reply(bytes, keeper).status
      return status == ReplyStatus.isFromSandbox || status == ReplyStatus.isFromProduction
    }
  }
}
