// The queue of tails to seal (their order, workers and urgency), and compression on an idle processor.
import Base
import Glibc
import Synchronization

/// How many full tails are not sealed yet, and the total size of their frames.
package struct UnsealedTails: Sendable, Equatable {
  package internal(set) var count = 0
  package internal(set) var byteCount = 0

  package init(count: Int = 0, byteCount: Int = 0) {
    (self.count, self.byteCount) = (count, byteCount)
  }
}

/// A tail that is being sealed. Sendable because the queue's lock guards its progress.
package final class SealingJob: @unchecked Sendable {
  package enum Progress {
    case untouched
    /// A thread of that shift is reading and compressing it.
    case underWay(SealingQueue.Shift)
    case prepared(Result<BlockContent, LedgerError>)
  }

  package let tail: UnsealedTail
  /// When it was added, on the monotonic clock.
  let cameAtMs: Int64
  /// Whether an earlier writer left it.
  let isInherited: Bool
  package var progress = Progress.untouched

  init(_ tail: UnsealedTail, cameAtMs: Int64, isInherited: Bool) {
    self.tail = tail
    self.cameAtMs = cameAtMs
    self.isInherited = isInherited
  }
}

/// How long tails may wait, in milliseconds.
package struct SealingTiming {
  /// How long a tail rests before sealing starts.
  var restMs: Int64 = 0
  /// The age at which a tail becomes urgent.
  var delayMs: Int64
  /// How long a closing writer seals its own tails and those that earlier writers left.
  var closingMs: Int64 = .max / 2
  var closingInheritedMs: Int64 = .max / 2

  package init(
    restMs: Int64 = 0, delayMs: Int64, closingMs: Int64 = .max / 2,
    closingInheritedMs: Int64 = .max / 2
  ) {
    self.restMs = restMs
    self.delayMs = delayMs
    self.closingMs = closingMs
    self.closingInheritedMs = closingInheritedMs
  }
}

/// Decides on the next task. It contains no threads or clocks.
package struct SealingQueue {
  /// Which workers a decision is for.
  package enum Shift {
    /// Reads tails that have rested for a while and has them compressed on idle processors, as long as nothing is
    /// urgent. The others can redo what it has begun.
    case background
    /// Write blocks, and also compress when something is urgent.
    case foreground
  }

  package enum Task {
    /// Read and deflate a tail.
    case prepare(SealingJob)
    /// Write the block of the first tail, which is prepared.
    case seal(SealingJob, Result<BlockContent, LedgerError>)
    /// Wait until this time or until something changes.
    case wait(untilMs: Int64?)
    case end
  }

  /// How many bytes of the queue may be in memory, in addition to the first tail.
  private static let readAheadByteCount = 8 << 20
  private static let retryMs: Int64 = 500

  private let limit: UnsealedTails
  private let timing: SealingTiming
  private var jobs: [SealingJob] = []
  /// Tails added and not sealed yet, including those in progress.
  package private(set) var unsealed = UnsealedTails()
  /// Why nothing more can be sealed.
  package private(set) var failure: LedgerError?
  /// Why the first tail waits for another attempt.
  package private(set) var stall: LedgerError?
  private var retryAtMs: Int64 = 0
  /// Whether a thread is writing the block of the first tail.
  private var isSealing = false
  /// Whether idle processors no longer suffice. Then the whole backlog is sealed first: the two shifts must not take
  /// turns tail by tail.
  package private(set) var isUrgent = false
  /// Tails that begin before this position are urgent.
  private var urgentEnd: Position = 0
  /// How many threads hold sealing between two blocks, or wait to.
  private var holdCount = 0
  private var isHeld = false
  /// When the writer began to close; nil if it is not closing.
  private(set) var closingSinceMs: Int64?
  var isClosing: Bool { closingSinceMs != nil }

  /// - Parameter limit: appends wait while the backlog has at least this size.
  package init(limit: UnsealedTails, timing: SealingTiming) {
    self.limit = limit
    self.timing = timing
  }

  /// Whether no more tails may be added.
  package var isFull: Bool {
    unsealed.count >= limit.count || unsealed.byteCount >= limit.byteCount
  }

  package mutating func append(_ tail: UnsealedTail, nowMs: Int64, isInherited: Bool = false) {
    jobs.append(SealingJob(tail, cameAtMs: nowMs, isInherited: isInherited))
    unsealed.count += 1
    unsealed.byteCount += tail.byteCount
  }

  /// Makes the tails before a position urgent.
  package mutating func hurry(upTo position: Position) { urgentEnd = max(urgentEnd, position) }

  /// Prevents further blocks from being written, until `release`. `acquireHold` reports when none is being written.
  package mutating func requestHold() { holdCount += 1 }

  /// Acquires the hold; false while a block is being written or another thread holds it.
  package mutating func acquireHold() -> Bool {
    precondition(holdCount > 0, "a hold is requested before it is taken")
    if isSealing || isHeld { return false }
    isHeld = true
    return true
  }

  /// Ends a hold, or a request for one.
  package mutating func release(taken isTaken: Bool = true) {
    precondition(holdCount > 0 && (!isTaken || isHeld), "there is no hold to release")
    holdCount -= 1
    if isTaken { isHeld = false }
  }

  /// Makes everything urgent for a limited time.
  package mutating func beginClosing(nowMs: Int64) { closingSinceMs = closingSinceMs ?? nowMs }

  /// Whether a closing writer leaves waiting tails to the next one, because the disk is full or time is up.
  private func isLeft(_ first: SealingJob, nowMs: Int64) -> Bool {
    guard let closingSinceMs else { return false }
    if stall != nil && !isSealing { return true }
    let limitMs = first.isInherited ? timing.closingInheritedMs : timing.closingMs
    return nowMs >= closingSinceMs + limitMs
  }

  private func isOverdue(_ first: SealingJob, nowMs: Int64) -> Bool {
    isClosing || first.tail.first < urgentEnd || nowMs >= first.cameAtMs + timing.delayMs
      || 4 * unsealed.count >= 3 * limit.count || 4 * unsealed.byteCount >= 3 * limit.byteCount
  }

  /// The next task of a worker; no other worker gets the same task.
  package mutating func next(for shift: Shift, nowMs: Int64) -> Task {
    if failure != nil { return .end }
    guard let first = jobs.first else { return isClosing ? .end : .wait(untilMs: nil) }
    if isLeft(first, nowMs: nowMs) { return .end }
    if !isUrgent { isUrgent = isOverdue(first, nowMs: nowMs) }
    if shift == .foreground, !isSealing, holdCount == 0,
      case .prepared(let content) = first.progress
    {
      if stall != nil, nowMs < retryAtMs { return .wait(untilMs: retryAtMs) }
      isSealing = true
      return .seal(first, content)
    }
    guard isUrgent == (shift == .foreground) else {
      return .wait(untilMs: shift == .foreground ? first.cameAtMs + timing.delayMs : nil)
    }
    if shift == .background, nowMs < first.cameAtMs + timing.restMs {
      return .wait(untilMs: first.cameAtMs + timing.restMs)
    }
    var byteCount = 0
    for job in jobs {
      if byteCount >= Self.readAheadByteCount { break }
      switch (job.progress, shift) {
      case (.untouched, _), (.underWay(.background), .foreground):
        job.progress = .underWay(shift)
        return .prepare(job)
      default: byteCount += job.tail.byteCount
      }
    }
    return .wait(untilMs: nil)
  }

  /// Whether the foreground threads may have work, even if others are doing it.
  package var concernsForeground: Bool {
    guard let first = jobs.first else { return isClosing }
    if case .prepared = first.progress, !isSealing { return true }
    return isUrgent || isOverdue(first, nowMs: .min) || failure != nil
  }

  /// Stores read and compressed content; false if another thread was faster.
  package func store(_ content: Result<BlockContent, LedgerError>, of job: SealingJob) -> Bool {
    guard case .underWay = job.progress else { return false }
    job.progress = .prepared(content)
    return true
  }

  /// Records that the first tail is sealed.
  package mutating func finishFirst() {
    precondition(isSealing && !jobs.isEmpty, "no sealing was in progress")
    let tail = jobs.removeFirst().tail
    unsealed.count -= 1
    unsealed.byteCount -= tail.byteCount
    isSealing = false
    stall = nil
    if jobs.isEmpty { isUrgent = false }
  }

  /// Records that the first tail could not be sealed.
  /// - Parameter mayRetry: whether another attempt can be made after a while.
  package mutating func failFirst(_ error: LedgerError, mayRetry: Bool, nowMs: Int64) {
    precondition(isSealing && !jobs.isEmpty, "no sealing was in progress")
    isSealing = false
    guard mayRetry else { return fail(error) }
    stall = error
    retryAtMs = nowMs + Self.retryMs
    // Content that could not be read is read again.
    if case .prepared(.failure) = jobs[0].progress { jobs[0].progress = .untouched }
  }

  /// Ends sealing permanently.
  mutating func fail(_ error: LedgerError) { failure = failure ?? error }
}

// MARK: - Idle compression

/// Compresses one tail on a thread of idle priority, which then ends. No other thread has to wait for it.
///
/// While other threads are busy, such a thread can stall anywhere, for minutes, and its priority cannot be raised
/// again. So it only computes: no other thread uses the memory that it reads and writes (that makes it Sendable), and
/// it acquires no lock and makes no file call. The wait for it can be abandoned; the thread then ends later, and its
/// result is dropped.
package final class IdleDeflation: @unchecked Sendable {
  private let events: ByteBuffer
  // Owned by the thread until `isDone`, and afterwards too if no thread waited.
  private let deflater: BlockDeflater
  private let deflated: ByteBuffer
  private let isDone = Atomic(false)
  // Posted when it is done, and to release a waiting thread. A semaphore contains no lock.
  private let bell: UnsafeMutablePointer<sem_t>

  /// Starts compressing the events, with a deflater that no other thread uses until it is done.
  package init(_ events: ByteBuffer, _ deflater: BlockDeflater) throws(LedgerError) {
    self.events = events
    self.deflater = deflater
    deflated = ByteBuffer(capacity: deflater.bound(events.count))
    bell = .allocate(capacity: 1)
    bell.initialize(to: sem_t())
    sem_init(bell, 0, 0)
    try WorkerThread.start(.idle) { [self] in run() }.detach()
  }

  deinit {
    sem_destroy(bell)
    bell.deallocate()
  }

  private func run() {
    deflater.deflate(events.bytes, into: deflated)
    isDone.store(true, ordering: .releasing)
    sem_post(bell)
  }

  /// Waits for the deflated events; nil if the wait was abandoned first. Call it once.
  package func wait() -> ByteBuffer? {
    while sem_wait(bell) != 0 {}
    return isDone.load(ordering: .acquiring) ? deflated : nil
  }

  /// Ends the wait, even one that has not begun.
  package func abandon() { sem_post(bell) }
}
