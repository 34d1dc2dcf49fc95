// The threads that seal full tails, separate from appends.
import Base
import Synchronization

/// The private state of one thread. Sendable because it is passed to that thread and used by no other.
private struct SealingWorker: @unchecked Sendable {
  let shift: SealingQueue.Shift
  let deflater: BlockDeflater
}

/// The end of the blocks in the log.
struct SealedBlocks: Sendable {
  /// The first position of the newest segment.
  let newestFirst: Position
  /// The end of the last block.
  let end: Position

  init(_ newest: SegmentIndex) {
    newestFirst = newest.first
    end = newest.endPosition
  }
}

/// Accepts full tails and seals them in order, on three threads: one has them compressed on an idle processor, and
/// two write blocks and help with compression when the backlog is urgent. That leaves the processors to a burst of
/// appends. None of the three has idle priority, because they share a lock with appending threads.
///
/// Sendable because the monitor guards the state, one thread at a time uses the segment writer, and `threads` changes
/// only in `init` and the first `close`. The owner must call `close`.
final class Sealer: @unchecked Sendable {
  private struct State {
    var queue: SealingQueue
    var freeBuffers: [ByteBuffer] = []
    /// The compression that the background thread waits for.
    var idleDeflation: IdleDeflation?
    /// Whether tails were removed since the directory was last synced.
    var hasUnsyncedNames = false
    var sealed: SealedBlocks
    /// How often a block could not be written.
    var failureCount = 0
    /// Whether the threads have ended.
    var hasEnded = false
  }

  private enum Condition {
    static let background = 0
    static let foreground = 1
    static let room = 2
  }

  private let monitor: Monitor<State>
  private let directory: LedgerDirectory
  private let hasFailed = Atomic(false)
  // Used only by the worker that seals the first tail.
  private let segmentWriter: SegmentWriter
  private var threads: [WorkerThread] = []

  /// - Parameter unsealed: tails that the previous writer left, in order.
  init(
    _ directory: LedgerDirectory, _ options: WriterOptions, _ segmentWriter: SegmentWriter,
    _ unsealed: [UnsealedTail]
  ) throws(LedgerError) {
    self.directory = directory
    self.segmentWriter = segmentWriter
    // The current tail also counts.
    let countMax = min(
      options.unsealedTailCountMax, OpenFileLimit.tailCountMax(limit: OpenFileLimit.current))
    var queue = SealingQueue(
      limit: UnsealedTails(
        count: max(1, countMax - 1), byteCount: options.unsealedByteCountMax),
      timing: SealingTiming(
        restMs: options.sealingRestMs, delayMs: options.sealingDelayMs,
        closingMs: options.closingLimitMs, closingInheritedMs: options.closingInheritedLimitMs))
    let nowMs = MonotonicClock.nowMs()
    for tail in unsealed { queue.append(tail, nowMs: nowMs, isInherited: true) }
    monitor = Monitor(
      State(queue: queue, sealed: SealedBlocks(segmentWriter.newest)), conditionCount: 3)
    do throws(LedgerError) {
      try start(.background, .usual, options)
      for _ in 0..<2 { try start(.foreground, options.sealingPriority, options) }
    } catch {
      close()
      throw error
    }
  }

  private func start(
    _ shift: SealingQueue.Shift, _ priority: ThreadPriority, _ options: WriterOptions
  ) throws(LedgerError) {
    let worker = SealingWorker(
      shift: shift, deflater: try BlockDeflater(level: options.compressionLevel))
    // The threads keep it alive until `close`.
    threads.append(try WorkerThread.start(priority) { [self] in run(worker) })
  }

  /// Adds a full tail; waits while too many are unsealed. Throws if there is no room for more blocks: permanently
  /// once `failure` is set, otherwise until there is room.
  func handOver(_ tail: UnsealedTail) throws(LedgerError) {
    let concernsForeground = try monitor.wait(on: Condition.room) {
      state throws(LedgerError) -> Bool? in
      if let failure = state.queue.failure { throw failure }
      if state.queue.isFull {
        if let stall = state.queue.stall { throw stall }
        return nil
      }
      state.queue.append(tail, nowMs: MonotonicClock.nowMs())
      // With the first tail, the foreground threads start waiting for its deadline.
      return state.queue.concernsForeground || state.queue.unsealed.count == 1
    }
    wakeWorkers(foreground: concernsForeground)
  }

  /// The error that ended sealing, if any. Every append checks it, without a lock.
  var failure: LedgerError? {
    hasFailed.load(ordering: .acquiring) ? monitor.withLock { $0.queue.failure } : nil
  }

  /// The tails that wait to be sealed.
  var unsealed: UnsealedTails { monitor.withLock { $0.queue.unsealed } }

  /// Seals the remaining tails for a limited time and stops the threads. Tails that are still unsealed stay intact and
  /// durable; the next writer continues with them.
  func close() {
    let deflation = monitor.withLock { state in
      state.queue.beginClosing(nowMs: MonotonicClock.nowMs())
      return state.idleDeflation
    }
    // The foreground threads compress again what the idle-priority thread has begun: they will be faster.
    deflation?.abandon()
    wakeWorkers()
    for thread in threads { thread.join() }
    threads = []
    syncNames()
    monitor.withLock { $0.hasEnded = true }
    monitor.broadcast(Condition.room)
  }

  /// What is in blocks.
  var sealed: SealedBlocks { monitor.withLock { $0.sealed } }

  /// Seals the tails before a position at once, and waits until they are removed, durably. Returns the end of the
  /// blocks. Throws if a block cannot be written, even if that may succeed later.
  func sealAll(upTo position: Position) throws(LedgerError) -> Position {
    let failureCount = monitor.withLock { state in
      state.queue.hurry(upTo: position)
      return state.failureCount
    }
    wakeWorkers()
    let end = try monitor.wait(on: Condition.room) { state throws(LedgerError) -> Position? in
      if let failure = state.queue.failure { throw failure }
      if state.sealed.end >= position { return state.sealed.end }
      // An older stall may be over; the next attempt shows that.
      if let stall = state.queue.stall, state.failureCount > failureCount { throw stall }
      if state.hasEnded { throw closedError }
      return nil
    }
    try betweenBlocks { (blocks) throws(LedgerError) in try blocks.removeRemains() }
    monitor.withLock { $0.hasUnsyncedNames = true }
    syncNames()
    if let failure { throw failure }
    return end
  }

  private var closedError: LedgerError {
    LedgerError(.closed, operation: "seal", object: directory.path, cause: "the writer is closed")
  }

  /// Lets a closure use the segment writer between two blocks. Appends continue; their tails wait.
  func betweenBlocks<Result>(
    _ body: (SegmentWriter) throws(LedgerError) -> Result
  ) throws(LedgerError) -> Result {
    monitor.withLock { $0.queue.requestHold() }
    var isTaken = false
    defer {
      monitor.withLock { $0.queue.release(taken: isTaken) }
      monitor.broadcast(Condition.room)
      wakeWorkers()
    }
    try monitor.wait(on: Condition.room) { state throws(LedgerError) -> Void? in
      if let failure = state.queue.failure { throw failure }
      isTaken = state.queue.acquireHold()
      return isTaken ? () : nil
    }
    return try body(segmentWriter)
  }

  /// Ends sealing permanently, and with it the appends: what is on disk is unknown.
  func fail(_ error: LedgerError) {
    monitor.withLock { $0.queue.fail(error) }
    hasFailed.store(true, ordering: .releasing)
    monitor.broadcast(Condition.room)
    wakeWorkers()
  }

  /// Makes the removal of tails survive a power cut.
  private func syncNames() {
    let mustSync = monitor.withLock { state in
      defer { state.hasUnsyncedNames = false }
      return state.hasUnsyncedNames && state.queue.failure == nil
    }
    if !mustSync { return }
    do throws(LedgerError) { try directory.syncLogDirectory() } catch {
      monitor.withLock { state in
        state.hasUnsyncedNames = true
        // Nothing depends on those names, but a failing device ends the writer, here as elsewhere.
        guard error.isOfDevice else { return }
        state.queue.fail(error)
        hasFailed.store(true, ordering: .releasing)
      }
    }
  }

  /// Wakes the workers to check for work. Do not call it under the lock: a woken worker would block on it.
  private func wakeWorkers(foreground: Bool = true) {
    monitor.broadcast(Condition.background)
    if foreground { monitor.broadcast(Condition.foreground) }
  }

  // MARK: Workers

  private func run(_ worker: SealingWorker) {
    while true {
      switch nextTask(worker.shift) {
      case .prepare(let job): prepare(job, worker)
      case .seal(let job, let content): seal(job, content)
      case .wait: break
      case .end: return
      }
    }
  }

  /// The next task; `wait` after having waited.
  private func nextTask(_ shift: SealingQueue.Shift) -> SealingQueue.Task {
    func decide(_ state: inout State) -> SealingQueue.Task {
      state.queue.next(for: shift, nowMs: MonotonicClock.nowMs())
    }
    let task = monitor.withLock { decide(&$0) }
    guard case .wait(let untilMs) = task else { return task }
    let condition = shift == .foreground ? Condition.foreground : Condition.background
    /// Keeps waiting while the task is `wait` with a time that is not earlier.
    func change(_ state: inout State) -> SealingQueue.Task? {
      let task = decide(&state)
      guard case .wait(let sooner) = task else { return task }
      return sooner ?? .max < untilMs ?? .max ? task : nil
    }
    guard let untilMs else { return monitor.wait(on: condition) { change(&$0) } }
    let limitMs = max(1, untilMs - MonotonicClock.nowMs())
    return monitor.wait(on: condition, limitMs: limitMs) { change(&$0) } ?? task
  }

  private func prepare(_ job: SealingJob, _ worker: SealingWorker) {
    let events =
      monitor.withLock { $0.freeBuffers.popLast() } ?? ByteBuffer(capacity: job.tail.byteCount)
    let content: Result<BlockContent, LedgerError>
    do throws(LedgerError) {
      try job.tail.readEvents(directory, into: events)
      let deflated =
        worker.shift == .foreground
        ? worker.deflater.deflate(events.bytes) : try deflateInBackground(events, worker.deflater)
      // The writer is closing: the buffer and the deflater belong to a thread that has not ended yet.
      guard let deflated else { return }
      content = .success(BlockContent(events: events, deflated: deflated))
    } catch { content = .failure(error) }
    let concernsForeground = monitor.withLock { state in
      if !state.queue.store(content, of: job) { Self.recycle(events, &state) }
      return state.queue.concernsForeground
    }
    wakeWorkers(foreground: concernsForeground)
  }

  /// Compresses on an idle processor; nil if the writer closes first.
  private func deflateInBackground(
    _ events: ByteBuffer, _ deflater: BlockDeflater
  ) throws(LedgerError) -> ByteBuffer? {
    let deflation = try IdleDeflation(events, deflater)
    let isClosing = monitor.withLock { state in
      state.idleDeflation = deflation
      return state.queue.isClosing
    }
    if isClosing { deflation.abandon() }
    defer { monitor.withLock { $0.idleDeflation = nil } }
    return deflation.wait()
  }

  private static func recycle(_ buffer: ByteBuffer, _ state: inout State) {
    buffer.count = 0
    // A buffer that one huge event enlarged is freed.
    if buffer.capacity <= 8 << 20 { state.freeBuffers.append(buffer) }
  }

  private func seal(_ job: SealingJob, _ content: Result<BlockContent, LedgerError>) {
    let outcome: Result<ByteBuffer, LedgerError>
    do throws(LedgerError) {
      let content = try content.get()
      try segmentWriter.seal(job.tail, content)
      outcome = .success(content.events)
    } catch { outcome = .failure(error) }
    let sealed = SealedBlocks(segmentWriter.newest)
    let isDrained = monitor.withLock { state in
      switch outcome {
      case .success(let buffer):
        state.queue.finishFirst()
        state.sealed = sealed
        state.hasUnsyncedNames = true
        Self.recycle(buffer, &state)
      case .failure(let error):
        // A failed read has written nothing, and a rejected system call may succeed later.
        var mayRetry = error.kind == .inputOutput
        if case .success = content { mayRetry = segmentWriter.canRetry }
        state.failureCount += 1
        state.queue.failFirst(error, mayRetry: mayRetry, nowMs: MonotonicClock.nowMs())
        if state.queue.failure != nil { hasFailed.store(true, ordering: .releasing) }
      }
      return state.queue.unsealed.count == 0
    }
    // Beginning a tail syncs the directory; after the last tail, this call does.
    if isDrained { syncNames() }
    monitor.broadcast(Condition.room)
    wakeWorkers()
  }
}
