// State that the parts of the workflow share: clocks, settings, projections, the writer.
import AppStore
import HTTPClient
package import Base
import Glibc
import Intake
package import Ledger
package import Projections
import Synchronization

/// The two clocks of the workflow.
package struct WorkflowClock: Sendable {
  /// Epoch milliseconds, for what is recorded.
  package var nowMs: @Sendable () -> Int64
  /// Milliseconds of a monotonic clock, for pauses.
  package var monotonicMs: @Sendable () -> Int64

  package init(
    nowMs: @escaping @Sendable () -> Int64, monotonicMs: @escaping @Sendable () -> Int64
  ) {
    self.nowMs = nowMs
    self.monotonicMs = monotonicMs
  }

  /// The system's clocks.
  package init() {
    self.init(nowMs: { Timestamp.now() }, monotonicMs: { MonotonicClock.nowMs() })
  }
}

/// The settings for calls.
struct CallSettings {
  let callsMax: Int
  let schedule: RetrySchedule

  init(_ configuration: Configuration) {
    callsMax = max(1, configuration.appStore.clientOptions.callsMax)
    schedule = RetrySchedule(
      firstMs: configuration.verification.retryFirstMs,
      ceilingMs: configuration.verification.retryCeilingMs)
  }
}

/// The limits of work in progress, and the output of messages.
package struct WorkflowOptions: Sendable {
  /// The most uploads that are accepted and not yet answered.
  package var uploadsMax = 8192
  /// The bytes of those uploads together.
  package var uploadBytesMax = 128 << 20
  /// The most questions about users that are accepted and not yet answered: half a second's work for one worker.
  package var questionsMax = 4096
  /// Threads that decode and check receipts: half as many as there are processors, because other threads commit, fold,
  /// seal and serve. One handles more than 9,000 uploads a second.
  package var workerCount = max(1, processorCount / 2)
  package var clock = WorkflowClock()
  package var log: OperatorLog = { _, _ in }
  /// Called once when nothing can be appended any more.
  package var onFatal: @Sendable () -> Void = {}
  /// Waits until erasure requests that are on disk may be acknowledged.
  package var confirmRequests: @Sendable () throws(LedgerError) -> Void = {}
  /// Sets further gauges, whenever the workflow sets its own.
  var setGauges: @Sendable (Metrics) -> Void = { _ in }

  package init() {}
}

/// The current configuration, and the signature checker that follows from it.
final class WorkflowSettings: Sendable {
  private struct Values {
    var configuration: Configuration
    var checker: any SignatureChecker & Sendable
    var validFiles = ValidFiles()
    var signedObjects: SignedObjectVerifier
  }

  private let values: Monitor<Values>

  init(_ configuration: Configuration, _ checker: any SignatureChecker & Sendable) {
    values = Monitor(
      Values(
        configuration: configuration, checker: checker,
        signedObjects: configuration.trust.signedObjectVerifier()))
  }

  /// For receipts.
  var checker: any SignatureChecker & Sendable { values.withLock { $0.checker } }
  /// The files that this checker has found valid.
  var validFiles: ValidFiles { values.withLock { $0.validFiles } }
  /// For signed transactions.
  var signedObjects: SignedObjectVerifier { values.withLock { $0.signedObjects } }

  /// The greatest age of a final reply that an upload reuses, in milliseconds; 0 for none.
  var reuseReplyMs: Int64 {
    values.withLock { max(0, $0.configuration.verification.reuseReplyMs) }
  }

  /// How many bytes of frauds are stored whole per app family and day.
  var forgedBytesDailyMax: Int64 {
    values.withLock { $0.configuration.verification.forgedBytesDailyMax }
  }

  var notifications: Configuration.Notifications {
    values.withLock { $0.configuration.notifications }
  }

  func sharedSecret(ofAppFamily id: String) -> [UInt8]? {
    values.withLock { $0.configuration.sharedSecrets[id] }
  }

  func acceptsSandbox(appFamily id: String) -> Bool {
    values.withLock { $0.configuration.apps[id]?.acceptsSandbox ?? true }
  }

  /// - Parameter checker: nil if trust has not changed.
  func replace(
    _ configuration: Configuration, _ checker: (any SignatureChecker & Sendable)?
  ) {
    values.withLock { values in
      values.configuration = configuration
      guard let checker else { return }
      values.checker = checker
      values.validFiles = ValidFiles()
      values.signedObjects = configuration.trust.signedObjectVerifier()
    }
  }
}

/// The projections as the workflow uses them. Any thread may query them; one thread at a time catches up.
package protocol WorkflowProjections: AnyObject, Sendable {
  /// Folds every durable event.
  func catchUp() throws
  /// Closes tails that have become blocks.
  func closeSealedTails() throws(LedgerError)
  /// How many events are folded.
  var position: Position { get }
  /// The app family that has registered a bundle id.
  func appFamily(ofBundle bundleID: String) -> UUID16?
  /// The latest registration of an app family; nil if there is none.
  func appFamily(_ id: UUID16) -> AppFamily?
  /// The receipts of uploads, each as of its upload; nil if there is none. Returns at least one, and stops once they take
  /// this many bytes in memory.
  func answers(
    uploads: ArraySlice<FoldedUpload>, byteCountMax: Int
  ) throws -> [Result<ClientReceipt?, any Error>]
  /// The receipt as its newest upload sees it; nil if the app family has no such receipt.
  func answer(receiptID: UUID16, appFamily: UUID16) throws -> ClientReceipt?
  /// Answers a question about a user of an app family, as of a moment in epoch milliseconds.
  func answer(
    _ question: OwnershipQuestion, about user: String, of family: UUID16, atMs: Int64
  ) throws -> OwnershipResponse
  /// Pending receipts, by number.
  func waiting(afterReceipt: Int64, limit: Int) throws -> [WaitingReceipt]
  /// The uploads of a receipt that wait, by position.
  func waitingUploads(
    ofReceipt receiptID: UUID16, appFamily: UUID16, _ part: WaitingPart
  ) throws -> [WaitingUpload]
  /// The upload at a position; nil if none waits there.
  func waitingUpload(at position: Position) throws -> WaitingUpload?
  /// How many receipts wait, and since when, in epoch milliseconds.
  func waitingSummary() throws -> (receipts: Int, oldestMs: Int64?)
  /// Products that are sold but that their apps do not declare, although these declare others.
  func undeclaredProducts() throws -> [UndeclaredProduct]
  /// Whether a notification with this `notificationUUID` is folded.
  func containsNotification(uuid: String) throws -> Bool
  /// The newest final reply for a receipt, unless it was given outside a range of time (epoch milliseconds).
  func recentReply(
    ofReceipt receiptID: UUID16, appFamily: UUID16, givenInMs times: ClosedRange<Int64>
  ) throws -> RecentReply?
}

extension WorkflowProjections {
  /// Does nothing if there are no open files.
  package func closeSealedTails() {}
}

extension LiveProjections: WorkflowProjections {}

extension ClientReceipt {
  /// The response of the client API: 402 if and only if it is a fraud, 206 while it is pending.
  var answer: ClientResponse {
    .receipt(status: isFraud ? 402 : isPending ? 206 : 200, body: body)
  }
}

/// Counts how often stored events lost data. The owner of an open file of the log compares the count.
final class RedactionCount: Sendable {
  private let value = Atomic<Int>(0)

  var now: Int { value.load(ordering: .acquiring) }
  func add() { value.add(1, ordering: .acquiringAndReleasing) }
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
  let redactions = RedactionCount()
  let forgeries = ForgeryBudget()

  /// Passes drafts to the writer; records a failure and returns nil if it rejects them.
  func submit(_ drafts: [EventDraft]) -> AppendTicket? {
    do throws(LedgerError) { return try writer.submit(drafts) } catch {
      recordAppend(error)
      return nil
    }
  }

  /// Waits until drafts are durable; records a failure and returns nil if they are not.
  func wait(for ticket: AppendTicket) -> AppendResult? {
    do throws(LedgerError) {
      let result = try writer.wait(for: ticket)
      health.recordSuccess()
      return result
    } catch {
      recordAppend(error)
      return nil
    }
  }

  /// Handles the result of an append; nil means success.
  func recordAppend(_ error: LedgerError?) {
    guard let error else { return health.recordSuccess() }
    // Only this submission can't be appended.
    if error.kind == .invalidInput { return notes.fault("append", error) }
    health.recordFailure(error, isFatal: writer.failure != nil || error.kind == .closed)
  }

  /// If appends or folds have failed and no attempt is running, tests them.
  func retryWhatFailed() {
    if health.beginAppendRetry() {
      do throws(LedgerError) {
        try writer.directory.probeAppend()
        health.recordSuccess()
      } catch { notes.fault("append", error) }
    }
    if health.beginFoldRetry() { inbox.push(.foreign(Latch())) }
  }
}

extension ClientResponse {
  /// The response after a fault of the server.
  static let tryLater = ClientResponse.unavailable(retryAfterSeconds: 5)
  static let overForgeryBound = ClientResponse.unavailable(
    retryAfterSeconds: ForgeryBudget.pauseSeconds)
}
