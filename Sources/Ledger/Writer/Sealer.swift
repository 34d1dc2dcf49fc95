// The thread that makes full tails into blocks, beside the append path.
import Threads

/// Takes tails over and seals them in order on a thread of its own.
final class Sealer: @unchecked Sendable {
  private struct State {
    var queue: [SealableTail] = []
    /// Tails handed over and not yet sealed, the one under way included.
    var unsealedCount = 0
    var freeBuffers: [ByteBuffer] = []
    var failure: LedgerError?
    /// Why the tail under way waits to be tried again.
    var stall: LedgerError?
    var isClosing = false
  }

  private enum Condition {
    static let work = 0
    static let room = 1
  }

  private static let retryMs: Int64 = 500

  private let monitor = Monitor(State(), conditionCount: 2)
  private let unsealedCountMax: Int
  // Used by the sealing thread alone.
  private let segmentWriter: SegmentWriter
  private var thread: WorkerThread?

  init(
    _ segmentWriter: SegmentWriter, unsealedCountMax: Int, niceness: Int32
  ) throws(LedgerError) {
    self.segmentWriter = segmentWriter
    // The tail that is being written counts too.
    self.unsealedCountMax = max(1, unsealedCountMax - 1)
    thread = nil
    thread = try WorkerThread(niceness: niceness) { [unowned self] in run() }
  }

  /// Hands a tail over, waiting while too many are not sealed; returns a buffer for the next. Throws where
  /// there is no room for more blocks: for good once `failure` is set, otherwise until there is.
  func handOver(_ tail: SealableTail) throws(LedgerError) -> ByteBuffer {
    try monitor.wait(on: Condition.room) { state throws(LedgerError) -> ByteBuffer? in
      if let failure = state.failure { throw failure }
      guard state.unsealedCount < unsealedCountMax else {
        if let stall = state.stall { throw stall }
        return nil
      }
      state.queue.append(tail)
      state.unsealedCount += 1
      monitor.signal(Condition.work)
      return state.freeBuffers.popLast() ?? ByteBuffer(capacity: 1 << 20)
    }
  }

  /// The error that ended the sealing, if any.
  var failure: LedgerError? { monitor.withLock { $0.failure } }

  /// Seals what was handed over and ends the thread.
  func close() {
    monitor.withLock { state in
      state.isClosing = true
      monitor.signal(Condition.work)
    }
    thread?.join()
    thread = nil
  }

  private func run() {
    while let tail = nextTail() {
      var failure = seal(tail)
      while let stall = failure, segmentWriter.canRetry {
        // Who closes does not wait for room: the tails stay, and the next writer seals them.
        guard pause(for: stall) else { return }
        failure = seal(tail)
      }
      tail.events.count = 0
      monitor.withLock { state in
        state.unsealedCount -= 1
        // A buffer that one huge event made large is let go.
        if tail.events.capacity <= 8 << 20 { state.freeBuffers.append(tail.events) }
        state.failure = failure
        state.stall = nil
        monitor.broadcast(Condition.room)
      }
      if failure != nil { return }
    }
  }

  private func seal(_ tail: SealableTail) -> LedgerError? {
    do throws(LedgerError) { try segmentWriter.seal(tail) } catch { return error }
    return nil
  }

  /// Waits until a disk that was full may have room again; false once it is closing.
  private func pause(for stall: LedgerError) -> Bool {
    monitor.withLock { state in
      state.stall = stall
      monitor.broadcast(Condition.room)
    }
    return monitor.wait(on: Condition.work, limitMs: Self.retryMs) { $0.isClosing ? true : nil }
      == nil
  }

  private func nextTail() -> SealableTail? {
    monitor.wait(on: Condition.work) { state -> SealableTail?? in
      if !state.queue.isEmpty { return .some(state.queue.removeFirst()) }
      return state.isClosing ? .some(nil) : nil
    }
  }
}
