// The queue of tails to seal: their order, their workers, their urgency.

/// How many full tails are not yet sealed, and how many bytes their frames have.
package struct UnsealedTails: Sendable, Equatable {
  package internal(set) var count = 0
  package internal(set) var byteCount = 0
}

/// A tail that is being sealed. Its progress is protected by the queue's lock.
final class SealingJob: @unchecked Sendable {
  enum Progress {
    case untouched
    /// A thread of that shift reads and compresses it.
    case underWay(SealingQueue.Shift)
    case prepared(Result<BlockContent, LedgerError>)
  }

  let tail: UnsealedTail
  /// When it came, on the clock that never goes back.
  let cameAtMs: Int64
  /// Whether an earlier writer has left it.
  let isInherited: Bool
  var progress = Progress.untouched

  init(_ tail: UnsealedTail, cameAtMs: Int64, isInherited: Bool) {
    self.tail = tail
    self.cameAtMs = cameAtMs
    self.isInherited = isInherited
  }
}

/// How long tails may wait, in milliseconds.
struct SealingTiming {
  /// How long they are left alone.
  var restMs: Int64 = 0
  /// The age at which they are urgent.
  var delayMs: Int64
  /// How long a closing writer seals its own tails and those that earlier writers left.
  var closingMs: Int64 = .max / 2
  var closingInheritedMs: Int64 = .max / 2
}

/// Decides what is to be done next; without threads and clocks of its own.
struct SealingQueue {
  /// Which workers a decision is for.
  enum Shift {
    /// It reads tails that have rested for a while, and has them compressed on idle processors, as long as
    /// nothing is urgent. Others can do what it has begun.
    case background
    /// They write blocks, and compress too when something is urgent.
    case foreground
  }

  enum Task {
    /// Read and deflate a tail.
    case prepare(SealingJob)
    /// Write the block of the first one, which was prepared.
    case seal(SealingJob, Result<BlockContent, LedgerError>)
    /// Wait until this time at most, or until something changes.
    case wait(untilMs: Int64?)
    case end
  }

  /// How many bytes of the queue may be in memory, besides the first tail.
  private static let readAheadByteCount = 8 << 20
  private static let retryMs: Int64 = 500

  private let limit: UnsealedTails
  private let timing: SealingTiming
  private var jobs: [SealingJob] = []
  /// Tails handed over and not yet sealed, those in progress included.
  private(set) var unsealed = UnsealedTails()
  /// Why nothing more can be sealed.
  private(set) var failure: LedgerError?
  /// Why the first tail waits to be tried again.
  private(set) var stall: LedgerError?
  private var retryAtMs: Int64 = 0
  /// Whether a thread is writing the block of the first one.
  private var isSealing = false
  /// Whether sealing can no longer be left to idle processors. Once it can't, all that waits is sealed first: the two
  /// shifts must not take turns tail by tail.
  private(set) var isPressing = false
  /// Since when the writer is being closed, if it is.
  private(set) var closingSinceMs: Int64?
  var isClosing: Bool { closingSinceMs != nil }

  /// - Parameter limit: appends wait while the backlog has this size.
  init(limit: UnsealedTails, timing: SealingTiming) {
    self.limit = limit
    self.timing = timing
  }

  /// Whether no tail may be added.
  var isFull: Bool { unsealed.count >= limit.count || unsealed.byteCount >= limit.byteCount }

  mutating func append(_ tail: UnsealedTail, nowMs: Int64, isInherited: Bool = false) {
    jobs.append(SealingJob(tail, cameAtMs: nowMs, isInherited: isInherited))
    unsealed.count += 1
    unsealed.byteCount += tail.byteCount
  }

  /// From now on everything is urgent, for a while.
  mutating func beginClosing(nowMs: Int64) { closingSinceMs = closingSinceMs ?? nowMs }

  /// Whether a closing writer leaves waiting tails to the next one: the disk is full, or it takes too long.
  private func isLeft(_ first: SealingJob, nowMs: Int64) -> Bool {
    guard let closingSinceMs else { return false }
    if stall != nil && !isSealing { return true }
    let limitMs = first.isInherited ? timing.closingInheritedMs : timing.closingMs
    return nowMs >= closingSinceMs + limitMs
  }

  private func mustPress(_ first: SealingJob, nowMs: Int64) -> Bool {
    isClosing || nowMs >= first.cameAtMs + timing.delayMs
      || 4 * unsealed.count >= 3 * limit.count || 4 * unsealed.byteCount >= 3 * limit.byteCount
  }

  /// The next task of a worker; no other worker gets the same task.
  mutating func next(for shift: Shift, nowMs: Int64) -> Task {
    if failure != nil { return .end }
    guard let first = jobs.first else { return isClosing ? .end : .wait(untilMs: nil) }
    if isLeft(first, nowMs: nowMs) { return .end }
    if !isPressing { isPressing = mustPress(first, nowMs: nowMs) }
    if shift == .foreground, !isSealing, case .prepared(let content) = first.progress {
      if stall != nil, nowMs < retryAtMs { return .wait(untilMs: retryAtMs) }
      isSealing = true
      return .seal(first, content)
    }
    guard isPressing == (shift == .foreground) else {
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
  var concernsForeground: Bool {
    guard let first = jobs.first else { return isClosing }
    if case .prepared = first.progress, !isSealing { return true }
    return isPressing || mustPress(first, nowMs: .min) || failure != nil
  }

  /// Takes what was read and compressed; false where another thread was faster.
  func take(_ content: Result<BlockContent, LedgerError>, of job: SealingJob) -> Bool {
    guard case .underWay = job.progress else { return false }
    job.progress = .prepared(content)
    return true
  }

  /// The first tail is sealed.
  mutating func finishFirst() {
    precondition(isSealing && !jobs.isEmpty, "no sealing was in progress")
    let tail = jobs.removeFirst().tail
    unsealed.count -= 1
    unsealed.byteCount -= tail.byteCount
    isSealing = false
    stall = nil
    if jobs.isEmpty { isPressing = false }
  }

  /// The first tail could not be sealed.
  /// - Parameter mayRetry: whether it can be tried again after a while.
  mutating func failFirst(_ error: LedgerError, mayRetry: Bool, nowMs: Int64) {
    precondition(isSealing && !jobs.isEmpty, "no sealing was in progress")
    isSealing = false
    guard mayRetry else { return fail(error) }
    stall = error
    retryAtMs = nowMs + Self.retryMs
    // What could not be read is read again.
    if case .prepared(.failure) = jobs[0].progress { jobs[0].progress = .untouched }
  }

  /// Nothing can be sealed any more.
  mutating func fail(_ error: LedgerError) { failure = failure ?? error }
}
