// When the replication thread tries, makes a step, and writes its record: times alone, without I/O.
import Base

/// The times that decide what the replication thread does next, on the monotonic clock.
package struct StepSchedule: Sendable {
  /// The options of `ReplicatorOptions` that it follows.
  package struct Limits: Sendable {
    package let delayMs: Int64
    package let pollMs: Int64
    package let waitingByteCount: Int
    package let retryMsMax: Int

    package init(delayMs: Int64, pollMs: Int64, waitingByteCount: Int, retryMsMax: Int) {
      (self.delayMs, self.pollMs) = (delayMs, pollMs)
      (self.waitingByteCount, self.retryMsMax) = (waitingByteCount, retryMsMax)
    }
  }

  /// The shortest time between two writes of the record, which may lag because what it records stays true.
  package static let recordMs: Int64 = 1_000
  /// Content waits for this part of the delay, so that one step names more of it.
  static let contentDelayDivisor: Int64 = 2

  private let limits: Limits
  private var backoff = Backoff()
  private var retryAtMs: Int64 = 0
  /// When the events and the content that wait for a step began to wait; nil if nothing waits.
  private var waitingSinceMs: Int64?
  private var contentSinceMs: Int64?
  private var recordWrittenMs: Int64 = 0
  /// Whether the record on disk is older than what is known.
  package private(set) var recordIsDue = false
  /// Whether another step may follow at once.
  package var hasMore = false

  package init(_ limits: Limits) { self.limits = limits }

  // MARK: Attempts

  /// Whether the pause after a failure is over.
  package func mayTry(_ nowMs: Int64) -> Bool { nowMs >= retryAtMs }

  /// The store failed, and may have said when to ask again.
  package mutating func failed(retryAfterMs: Int?, _ nowMs: Int64) {
    hasMore = false
    retryAtMs = nowMs + Int64(min(backoff.next(retryAfterMs: retryAfterMs), limits.retryMsMax))
  }

  package mutating func succeeded() {
    backoff.reset()
    retryAtMs = 0
  }

  /// How long to wait before the next turn.
  package func pauseMs(_ nowMs: Int64) -> Int64 {
    if retryAtMs > nowMs { return max(1, min(limits.pollMs, retryAtMs - nowMs)) }
    return hasMore ? 0 : limits.pollMs
  }

  // MARK: Steps

  /// Records whether events wait for a step, as seen at a time.
  package mutating func observed(waitingEvents: Bool, atMs: Int64) {
    waitingSinceMs = waitingEvents ? waitingSinceMs ?? atMs : nil
  }

  /// A step was confirmed: what waits now began to wait at this time.
  package mutating func confirmed(waitingEvents: Bool, seenAtMs: Int64) {
    (waitingSinceMs, contentSinceMs) = (waitingEvents ? seenAtMs : nil, nil)
    hasMore = true
    succeeded()
  }

  /// Whether waiting events have waited long enough, or are enough for a step of their own.
  package func framesAreDue(lagByteCount: Int, _ nowMs: Int64) -> Bool {
    lagByteCount >= limits.waitingByteCount
      || nowMs - (waitingSinceMs ?? nowMs) >= limits.delayMs - limits.pollMs
  }

  /// Records whether there is content that a step could name, and returns whether it has waited long enough.
  package mutating func contentIsDue(hasContent: Bool, _ nowMs: Int64) -> Bool {
    contentSinceMs = hasContent ? contentSinceMs ?? nowMs : nil
    return contentSinceMs.map { nowMs - $0 >= limits.delayMs / Self.contentDelayDivisor } ?? false
  }

  // MARK: Record

  package mutating func recordChanged() { recordIsDue = true }

  /// Whether the record must be written now; a caller who waits for all has it written at once.
  package func mustWriteRecord(isAwaited: Bool, _ nowMs: Int64) -> Bool {
    recordIsDue && (isAwaited || nowMs - recordWrittenMs >= Self.recordMs)
  }

  /// An attempt to write the record begins, or has ended well.
  package mutating func recordBegins(_ nowMs: Int64) { recordWrittenMs = nowMs }
  package mutating func recordIsWritten() { recordIsDue = false }
}
