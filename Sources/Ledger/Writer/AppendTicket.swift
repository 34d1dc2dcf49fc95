// What a submitter holds until its events are on disk.
import Glibc

/// The positions of appended events.
package struct AppendResult: Sendable, Equatable {
  /// The position of the first event.
  package let firstPosition: Position
  /// How many events there are.
  package let count: Int
  /// The time in them, in milliseconds since 1970.
  package let recordedAtMs: Int64
}

/// A submission in progress. Any thread may wait for it, any number of times.
package final class AppendTicket: @unchecked Sendable {
  /// The drafts to append; emptied once the result is known, so that a ticket may be kept for long.
  private(set) var drafts: [PreparedEvent]
  /// The most bytes that the event lines can take.
  let byteCountLimit: Int
  // Written once before the semaphore is raised, read after it was passed. The drafts belong to the committing
  // thread until then.
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
    // Signalled again for the next waiting thread.
    sem_post(semaphore)
    guard let outcome else {
      throw LedgerError(
        .closed, operation: "append", object: "ticket", cause: "the writer ended without a result")
    }
    return try outcome.get()
  }
}
