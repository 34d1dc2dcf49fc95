// What a submitter waits on until its events are on disk.
import Glibc

/// The positions of appended events.
package struct AppendResult: Sendable, Equatable {
  /// The position of the first event.
  package let firstPosition: Position
  /// The number of events.
  package let count: Int
  /// The time recorded in them, in milliseconds since 1970.
  package let recordedAtMs: Int64
}

/// A submission in progress. Any thread may wait for it, any number of times.
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
