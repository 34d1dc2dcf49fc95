// Commits on disk that wait for the copy, while the next ones are made: waiting commits share a step; and tickets.
import Base
import Glibc

/// Resolves submissions in the order of their commits, once they may be acknowledged. One thread waits for all.
final class ConfirmationQueue: Sendable {
  private struct Commit: Sendable {
    let tickets: [AppendTicket]
    let results: [AppendResult]
    /// The position after its events.
    let end: Position
    /// When it was on disk, on the monotonic clock.
    let sinceMs: Int64
    let byteCount: Int
  }

  private struct State {
    var commits: [Commit] = []
    var byteCount = 0
    var isClosing = false
  }

  private enum Condition {
    static let work = 0
    static let room = 1
  }

  private let confirmation: any AppendConfirmation
  /// The limit of waiting commits, in bytes of events.
  private let byteCountMax: Int
  private let monitor = Monitor(State(), conditionCount: 2)
  private let thread = Monitor<WorkerThread?>(nil)

  init(_ confirmation: any AppendConfirmation, byteCountMax: Int) {
    (self.confirmation, self.byteCountMax) = (confirmation, byteCountMax)
  }

  /// - Parameter failure: why nothing may be acknowledged any more; nil if acknowledgements are allowed.
  func start(failure: @escaping @Sendable () -> LedgerError?) throws(LedgerError) {
    let started = try WorkerThread.start { [self] in
      while let commit = next() { resolve(commit, failure) }
    }
    thread.withLock { $0 = started }
  }

  /// Adds a commit that is on disk; waits while the limit is reached.
  func add(_ tickets: [AppendTicket], _ results: [AppendResult]) {
    let commit = Commit(
      tickets: tickets, results: results,
      end: results.last.map { $0.firstPosition + $0.count } ?? 0,
      sinceMs: MonotonicClock.nowMs(),
      byteCount: tickets.reduce(0) { $0 + $1.byteCountLimit })
    monitor.wait(on: Condition.room) { state -> Void? in
      guard state.commits.isEmpty || state.byteCount + commit.byteCount <= byteCountMax else {
        return nil
      }
      state.commits.append(commit)
      state.byteCount += commit.byteCount
      return ()
    }
    monitor.signal(Condition.work)
  }

  /// Resolves the waiting commits, and ends the thread.
  func close() {
    monitor.withLock { $0.isClosing = true }
    monitor.signal(Condition.work)
    thread.withLock { $0.take() }?.join()
  }

  /// The oldest commit, which stays in the queue; nil at the end.
  private func next() -> Commit? {
    monitor.wait(on: Condition.work) { state -> Commit?? in
      if let first = state.commits.first { return .some(first) }
      return state.isClosing ? .some(nil) : nil
    }
  }

  private func resolve(_ commit: Commit, _ failure: () -> LedgerError?) {
    let outcome: Result<Void, LedgerError>
    do throws(LedgerError) {
      try confirmation.waitUntilConfirmed(commit.end, sinceMs: commit.sinceMs)
      // If another writer has taken over meanwhile, it lacks these events if they came after its first step.
      if let failure = failure() { throw failure }
      outcome = .success(())
    } catch { outcome = .failure(error) }
    monitor.withLock { state in
      state.commits.removeFirst()
      state.byteCount -= commit.byteCount
    }
    monitor.signal(Condition.room)
    for (ticket, result) in zip(commit.tickets, commit.results) {
      ticket.resolve(outcome.map { result })
    }
  }
}

// MARK: - Tickets

/// The positions of appended events.
package struct AppendResult: Sendable, Equatable {
  /// The position of the first event.
  package let firstPosition: Position
  /// The number of events.
  package let count: Int
  /// The time recorded in them, in milliseconds since 1970.
  package let recordedAtMs: Int64
}

/// A submission in progress, for waiting until its events are on disk. Any thread may wait for it, any number of times.
///
/// Sendable because the committing thread alone changes it until the semaphore is posted, and none does afterwards.
package final class AppendTicket: @unchecked Sendable {
  /// The drafts to append. Emptied once the result is known, so that a ticket can be kept for long.
  private(set) var drafts: [PreparedEvent]
  /// An upper limit for the size of the event lines.
  let byteCountLimit: Int
  private var outcome: Result<AppendResult, LedgerError>?
  private let semaphore: UnsafeMutablePointer<sem_t>

  init(_ drafts: [PreparedEvent], byteCountLimit: Int) {
    self.drafts = drafts
    self.byteCountLimit = byteCountLimit
    semaphore = .allocate(capacity: 1)
    semaphore.initialize(to: sem_t())
    sem_init(semaphore, 0, 0)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func resolve(_ outcome: Result<AppendResult, LedgerError>) {
    self.outcome = outcome
    drafts = []
    sem_post(semaphore)
  }

  func wait() throws(LedgerError) -> AppendResult {
    while sem_wait(semaphore) != 0 {}
    // Posted again for the next waiting thread.
    sem_post(semaphore)
    guard let outcome else {
      throw LedgerError(
        .closed, operation: "append", object: "ticket", cause: "the writer ended without a result")
    }
    return try outcome.get()
  }
}
