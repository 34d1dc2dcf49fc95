// What the threads of the workflow have in common.
import AppStore
import Base
import Ledger
import Projections

/// The input of the completion loop.
enum CompletionItem: Sendable {
  case uploaded(SubmittedUpload)
  case result(AppStoreCall, CallResult)
  /// More uploads of a receipt wait for a reply than went into one frame.
  case rest(UUID16, appFamily: UUID16, RecentReply)
  /// Others have appended; waiting callers are told when that is folded.
  case foreign(Latch)
}

/// Opens once.
final class Latch: Sendable {
  private let isOpen = Monitor(false, conditionCount: 1)

  func open() {
    isOpen.withLock { state in
      state = true
      isOpen.broadcast(0)
    }
  }

  /// Waits until it is open or the time is over; returns whether it is open.
  @discardableResult
  func wait(limitMs: Int64) -> Bool {
    isOpen.wait(on: 0, limitMs: limitMs) { state -> Void? in state ? () : nil } != nil
  }
}

/// The parts that do not change while the workflow runs.
struct WorkflowShared: Sendable {
  let writer: LedgerWriter
  let projections: any WorkflowProjections
  let settings: WorkflowSettings
  let scheduler: VerificationScheduler
  let clock: WorkflowClock
  let metrics: Metrics
  let notes: OperatorNotes
  let health: AppendHealth
  let inbox: WorkQueue<CompletionItem>

  /// Hands drafts to the writer; nil, noted, where it takes none.
  func submit(_ drafts: [EventDraft]) -> AppendTicket? {
    do throws(LedgerError) { return try writer.submit(drafts) } catch {
      noteAppend(error)
      return nil
    }
  }

  /// Waits until drafts are durable; nil, noted, where they are not.
  func wait(for ticket: AppendTicket) -> AppendResult? {
    do throws(LedgerError) {
      let result = try writer.wait(for: ticket)
      health.noteSuccess()
      return result
    } catch {
      noteAppend(error)
      return nil
    }
  }

  /// Handles the result of any append; nil where it succeeded.
  func noteAppend(_ error: LedgerError?) {
    guard let error else { return health.noteSuccess() }
    // It is this one submission that can't be appended.
    if error.kind == .invalidInput { return notes.fault("append", error) }
    health.noteFailure(error, isFatal: writer.failure != nil || error.kind == .closed)
  }

  /// If appends or folds have failed and none is being tried any more, tests them.
  func retryWhatFailed() {
    if health.takeAppendRetry() {
      do throws(LedgerError) {
        try writer.directory.probeAppend()
        health.noteSuccess()
      } catch { notes.fault("append", error) }
    }
    if health.takeFoldRetry() { inbox.push(.foreign(Latch())) }
  }
}

extension ClientAnswer {
  /// After a fault of ours.
  static let tryLater = ClientAnswer.unavailable(retryAfterSeconds: 5)
}
