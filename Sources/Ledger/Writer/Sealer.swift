// The threads that make full tails into blocks, beside the append path.
import Threads

/// Takes tails over and seals them in order on a thread of its own; another one helps it to deflate where several
/// wait.
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
    static let help = 2
  }

  private static let retryMs: Int64 = 500

  private let monitor = Monitor(State(), conditionCount: 3)
  private let unsealedCountMax: Int
  // Used by the sealing thread alone.
  private let segmentWriter: SegmentWriter
  private let deflater: BlockDeflater
  // Used by the helping thread alone.
  private let helpingDeflater: BlockDeflater
  private var thread: WorkerThread?
  private var helper: WorkerThread?

  init(
    _ segmentWriter: SegmentWriter, level: Int32, unsealedCountMax: Int, niceness: Int32
  ) throws(LedgerError) {
    self.segmentWriter = segmentWriter
    deflater = try BlockDeflater(level: level)
    helpingDeflater = try BlockDeflater(level: level)
    // The tail that is being written counts too.
    self.unsealedCountMax = max(1, unsealedCountMax - 1)
    thread = nil
    helper = nil
    thread = try WorkerThread(niceness: niceness) { [unowned self] in run() }
    do throws(LedgerError) {
      helper = try WorkerThread(niceness: niceness) { [unowned self] in help() }
    } catch {
      close()
      throw error
    }
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
      monitor.signal(Condition.help)
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
      monitor.signal(Condition.help)
    }
    thread?.join()
    thread = nil
    helper?.join()
    helper = nil
  }

  private func run() {
    while let tail = nextTail() {
      let deflated = deflated(tail)
      var failure = seal(tail, deflated)
      while let stall = failure, segmentWriter.canRetry {
        // Who closes does not wait for room: the tails stay, and the next writer seals them.
        guard pause(for: stall) else { return }
        failure = seal(tail, deflated)
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

  private func seal(_ tail: SealableTail, _ deflated: ByteBuffer) -> LedgerError? {
    do throws(LedgerError) { try segmentWriter.seal(tail, deflated: deflated) } catch {
      return error
    }
    return nil
  }

  // MARK: Deflating

  /// A tail's events, deflated here unless the helper has begun with them; then what waits next is deflated
  /// meanwhile.
  private func deflated(_ tail: SealableTail) -> ByteBuffer {
    if tail.deflated.claim() {
      let buffer = deflater.deflate(tail.events.bytes)
      tail.deflated.finish(buffer)
      return buffer
    }
    while true {
      if let buffer = tail.deflated.now { return buffer }
      let next = monitor.withLock { state in state.queue.first { $0.deflated.claim() } }
      guard let next else { return tail.deflated.wait() }
      next.deflated.finish(deflater.deflate(next.events.bytes))
    }
  }

  private func help() {
    while let tail = nextClaimed() {
      tail.deflated.finish(helpingDeflater.deflate(tail.events.bytes))
    }
  }

  /// The next tail that nobody has begun with; nil at the end.
  private func nextClaimed() -> SealableTail? {
    monitor.wait(on: Condition.help) { state -> SealableTail?? in
      if let tail = state.queue.first(where: { $0.deflated.claim() }) { return .some(tail) }
      return state.isClosing ? .some(nil) : nil
    }
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
