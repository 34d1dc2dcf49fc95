// The calls that wait for the client's thread, handed over under a lock.
internal import Base

/// One receipt's question on its way to the client's thread.
struct WaitingCall: Sendable {
  let request: VerifyReceiptRequest
  let completion: @Sendable (VerifyReceiptAnswer) -> Void
  /// By the monotonic clock.
  let askedAtMs: Int64

  /// How long ago it was asked.
  var elapsedMs: Int64 { MonotonicClock.nowMs() - askedAtMs }

  /// Answers without having asked the App Store.
  func end(_ failure: VerifyReceiptFailure) {
    completion(
      VerifyReceiptAnswer(
        content: .none(failure), endpoint: .production, host: nil, httpStatus: nil,
        durationMs: elapsedMs))
  }
}

/// What callers leave and the client's thread takes, first come first served, within bounds.
final class CallQueue: Sendable {
  /// What the client's thread is to do now.
  struct Work {
    var toStart: [WaitingCall] = []
    /// Those that waited too long, or found no place.
    var toRefuse: [(call: WaitingCall, failure: VerifyReceiptFailure)] = []
    /// When the next one will have waited too long.
    var nextExpiryMs: Int64?
    var isClosed = false
  }

  private struct State {
    var waiting: [WaitingCall] = []
    var waitingByteCount = 0
    var runningCount = 0
    var refused: [WaitingCall] = []
    var isClosed = false
  }

  private let state = Monitor(State())
  private let callsMax: Int
  private let waitingMax: Int
  private let waitingBytesMax: Int
  private let waitMaxMs: Int64

  init(_ options: VerifyReceiptOptions) {
    callsMax = options.callsMax
    waitingMax = options.waitingMax
    waitingBytesMax = options.waitingBytesMax
    waitMaxMs = Int64(options.timeoutMs)
  }

  /// Leaves a call for the thread, which must then be woken. False where the queue is closed.
  func offer(_ call: WaitingCall) -> Bool {
    state.withLock { state in
      if state.isClosed { return false }
      let byteCount = call.request.receiptText.count
      let hasPlace = state.runningCount + state.waiting.count < callsMax + waitingMax
      let hasRoom = state.waiting.isEmpty || state.waitingByteCount + byteCount <= waitingBytesMax
      if hasPlace && hasRoom {
        state.waiting.append(call)
        state.waitingByteCount += byteCount
      } else {
        // The thread answers it, but the receipt is released.
        let empty = VerifyReceiptRequest(receiptText: [], sharedSecret: nil)
        state.refused.append(
          WaitingCall(request: empty, completion: call.completion, askedAtMs: call.askedAtMs))
      }
      return true
    }
  }

  /// No more calls are taken from here on.
  func close() { state.withLock { $0.isClosed = true } }

  /// What there is to do; calls to start are counted as running. Once closed, all that waits is
  /// handed out to be cancelled.
  /// - Parameter runningCount: how many calls run at this moment.
  func takeWork(runningCount: Int) -> Work {
    state.withLock { state in
      var work = Work()
      work.isClosed = state.isClosed
      work.toRefuse = state.refused.map { ($0, .tooManyCalls) }
      state.refused = []
      let nowMs = MonotonicClock.nowMs()
      let takenCount: Int
      if state.isClosed {
        takenCount = state.waiting.count
        work.toRefuse += state.waiting.map { ($0, .cancelled) }
      } else {
        let expired = state.waiting.prefix { $0.askedAtMs + waitMaxMs <= nowMs }
        work.toRefuse += expired.map { ($0, .timeout) }
        let rest = state.waiting.dropFirst(expired.count)
        work.toStart = Array(rest.prefix(callsMax - runningCount))
        work.nextExpiryMs = rest.dropFirst(work.toStart.count).first.map {
          $0.askedAtMs + waitMaxMs
        }
        takenCount = expired.count + work.toStart.count
      }
      for call in state.waiting.prefix(takenCount) {
        state.waitingByteCount -= call.request.receiptText.count
      }
      state.waiting.removeFirst(takenCount)
      state.runningCount = runningCount + work.toStart.count
      return work
    }
  }
}
