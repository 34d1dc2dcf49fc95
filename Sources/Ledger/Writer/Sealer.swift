// The thread that makes full tails into blocks, beside the append path.

/// Takes tails over and seals them in order on a thread of its own.
final class Sealer: @unchecked Sendable {
  private struct State {
    var queue: [SealableTail] = []
    /// Tails handed over and not yet sealed, the one under way included.
    var unsealedCount = 0
    var freeBuffers: [ByteBuffer] = []
    var failure: LedgerError?
    var isClosing = false
  }

  private enum Condition {
    static let work = 0
    static let room = 1
  }

  private let monitor = Monitor(State(), conditionCount: 2)
  private let unsealedCountMax: Int
  // Used by the sealing thread alone.
  private let segmentWriter: SegmentWriter
  private var thread: WorkerThread?

  init(_ segmentWriter: SegmentWriter, unsealedCountMax: Int) throws(LedgerError) {
    self.segmentWriter = segmentWriter
    // The tail that is being written counts too.
    self.unsealedCountMax = max(1, unsealedCountMax - 1)
    thread = nil
    thread = try WorkerThread { [unowned self] in run() }
  }

  /// Hands a tail over, waiting while too many are not sealed; returns a buffer for the next.
  func handOver(_ tail: SealableTail) throws(LedgerError) -> ByteBuffer {
    try monitor.wait(on: Condition.room) { state throws(LedgerError) -> ByteBuffer? in
      if let failure = state.failure { throw failure }
      guard state.unsealedCount < unsealedCountMax else { return nil }
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
      var failure: LedgerError?
      do throws(LedgerError) { try segmentWriter.seal(tail) } catch { failure = error }
      tail.events.count = 0
      monitor.withLock { state in
        state.unsealedCount -= 1
        // A buffer that one huge event made large is let go.
        if tail.events.capacity <= 8 << 20 { state.freeBuffers.append(tail.events) }
        state.failure = failure
        monitor.broadcast(Condition.room)
      }
      if failure != nil { return }
    }
  }

  private func nextTail() -> SealableTail? {
    monitor.wait(on: Condition.work) { state -> SealableTail?? in
      if !state.queue.isEmpty { return .some(state.queue.removeFirst()) }
      return state.isClosing ? .some(nil) : nil
    }
  }
}
