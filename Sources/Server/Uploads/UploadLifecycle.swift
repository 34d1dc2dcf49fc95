// The states of an upload, from its request to its response, and the transitions between them.
import AppStore
import Base
import Intake
import Ledger
import Projections

/// An upload that was passed to the writer. `UploadLifecycle.begin` runs on a worker, `advance` on the completion loop.
///
/// ```
///   prepared (UploadPreparation; a bad request ends before)
///      │ begin: upload, local result and what is already known go into one append
///      ▼
///   appending ───── not durable, or not folded ─────────────────────────────► 503
///      │ durable and folded: advance
///      ├─ .respond ──────────────────────────────────────────────────────────► 200, 402
///      ├─ .enqueue ── the receipt waits in the queue of pending verifications ► 206
///      └─ .ask
///           ├─ a result was recorded for it meanwhile ───────────────────────► 200, 206, 402
///           ├─ .ask: waits for a call ── its result is durable and folded ───► 200, 206, 402
///           ├─ .takeOver: appending a verification by an earlier reply, then .respond
///           └─ .goWithout: appending why no call was made, then .enqueue
/// ```
/// A response is read from the projections, so that 200, 206 and 402 follow from the events alone. The queue
/// (RetryWorker) continues after 206: it makes its own call, whose result applies to all uploads of a receipt.
struct SubmittedUpload: Sendable {
  /// What follows once it is durable and folded.
  enum Next: Sendable {
    case respond
    /// Respond; the receipt waits in the queue.
    case enqueue
    /// Ask the App Store before the response.
    case ask(reservation: AppStoreCall?, text: [UInt8])
  }

  let kind: Metrics.UploadKind
  let response: PendingResponse
  /// The receipt's id, or the id of an upload of signed transactions.
  let receiptID: UUID16
  let appFamily: UUID16
  let ticket: AppendTicket
  /// The upload's position if an earlier append holds it; nil if it is the first event of this one.
  var position: Position?
  /// The types of the products in its receipt's file.
  var filedTypes: [String: ProductType]?
  /// On the monotonic clock.
  let submittedAtMs: Int64
  let next: Next

  func folded(at position: Position) -> FoldedUpload {
    FoldedUpload(at: position, filedTypes: filedTypes)
  }
}

/// What is to be done about the App Store.
enum CallDecision {
  /// Ask it: by the reserved call, or by the one in progress for the receipt.
  case ask(AppStoreCall?)
  case takeOver(RecentReply)
  case goWithout(NoCallReason)
}

/// Moves uploads from state to state. Safe to use from several threads at once.
struct UploadLifecycle: Sendable {
  private let shared: WorkflowShared

  init(_ shared: WorkflowShared) { self.shared = shared }

  // MARK: prepared → appending

  /// Appends an upload, together with what is already known from the App Store.
  func begin(
    _ prepared: PreparedUpload, _ upload: ClientUpload<UploadFields>, _ response: PendingResponse
  ) {
    var drafts = prepared.drafts
    let next: SubmittedUpload.Next
    let decision =
      prepared.isInvalid
      ? nil
      : decide(
        prepared.receiptID, of: upload.appFamily, text: upload.fields.receiptText)
    switch decision {
    case nil: next = .respond
    case .ask(let reservation):
      next = .ask(reservation: reservation, text: upload.fields.receiptText)
    case .takeOver(let reply):
      drafts.append(UploadDrafts.verification(data(reply), ofDraftAt: 0))
      next = .respond
    case .goWithout(let reason):
      drafts.append(UploadDrafts.verification(data(reason), ofDraftAt: 0))
      next = .enqueue
    }
    guard let ticket = shared.submit(drafts) else {
      if case .ask(let reservation?) = decision { shared.scheduler.abandon(reservation) }
      return response.answer(.tryLater)
    }
    shared.inbox.push(
      .uploaded(
        SubmittedUpload(
          kind: .receipt, response: response, receiptID: prepared.receiptID,
          appFamily: upload.appFamily, ticket: ticket, filedTypes: prepared.filedTypes,
          submittedAtMs: shared.clock.monotonicMs(), next: next)))
  }

  /// Appends an upload of signed transactions, about which the App Store is not asked.
  /// - Parameter id: the upload's.
  func begin(
    _ draft: EventDraft, id: UUID16, of appFamily: UUID16, _ response: PendingResponse
  ) {
    guard let ticket = shared.submit([draft]) else { return response.answer(.tryLater) }
    shared.inbox.push(
      .uploaded(
        SubmittedUpload(
          kind: .signedTransactions, response: response, receiptID: id, appFamily: appFamily,
          ticket: ticket,
          submittedAtMs: shared.clock.monotonicMs(), next: .respond)))
  }

  /// Decides whether to ask the App Store: first before the upload is appended, so that what is known goes into the
  /// same frame, and again once it is durable and folded. Only this function looks for a recent reply.
  private func decide(
    _ receiptID: UUID16, of appFamily: UUID16, text: [UInt8], for waiter: Waiter? = nil,
    reservation: AppStoreCall? = nil
  ) -> CallDecision {
    if let reply = recentReply(for: receiptID, appFamily) {
      if let reservation { shared.scheduler.abandon(reservation) }
      return .takeOver(reply)
    }
    let request = shared.scheduler.requestCall(
      about: receiptID, of: appFamily, text: text, for: waiter, reservation: reservation)
    switch request {
    case .granted(let call): return .ask(call)
    case .denied(let reason): return .goWithout(reason)
    }
  }

  /// A folded final reply that is recent enough to be reused.
  private func recentReply(for receiptID: UUID16, _ appFamily: UUID16) -> RecentReply? {
    let reuseReplyMs = shared.settings.reuseReplyMs
    if reuseReplyMs == 0 { return nil }
    let nowMs = shared.clock.nowMs()
    do {
      return try shared.projections.recentReply(
        ofReceipt: receiptID, appFamily: appFamily, givenInMs: nowMs - reuseReplyMs...nowMs)
    } catch {
      shared.notes.fault("look up an earlier reply", error)
      return nil
    }
  }

  // MARK: appending →

  /// The result of an append.
  enum Step {
    /// Respond from the projections.
    case respond
    /// A call, or a further append, continues it.
    case waits
    /// It was answered, and nothing remains to be done.
    case ended
  }

  /// Advances an upload whose append has ended.
  /// - Parameters:
  ///   - position: the upload's; nil if the append failed.
  ///   - isFolded: whether the projections hold what was appended.
  ///   - begin: called with the position of an upload for which a further verification was submitted.
  func advance(
    _ upload: SubmittedUpload, at position: Position?, isFolded: Bool,
    onVerification begin: (Position) -> Void
  ) -> Step {
    guard let position, isFolded else {
      if case .ask(let reservation?, _) = upload.next { shared.scheduler.abandon(reservation) }
      upload.response.answer(.tryLater)
      return .ended
    }
    switch upload.next {
    case .respond: return .respond
    case .enqueue:
      shared.scheduler.enqueue(upload.receiptID, upload.appFamily)
      return .respond
    case .ask(let reservation, let text):
      if hasResultMeanwhile(upload, position) {
        if let reservation { shared.scheduler.abandon(reservation) }
        return .respond
      }
      let decision = decide(
        upload.receiptID, of: upload.appFamily, text: text,
        for: Waiter(upload: upload.folded(at: position), response: upload.response),
        reservation: reservation)
      switch decision {
      case .ask: return .waits
      case .takeOver(let reply):
        return append(
          data(reply, upload: position), for: upload, at: position, next: .respond, begin)
      case .goWithout(let reason):
        return append(
          data(reason, upload: position), for: upload, at: position, next: .enqueue, begin)
      }
    }
  }

  /// Whether a result was recorded for an upload before its own turn: a fold covers all that is durable, and a result
  /// applies to all uploads that are pending in the projections.
  private func hasResultMeanwhile(_ upload: SubmittedUpload, _ position: Position) -> Bool {
    do {
      guard let own = try shared.projections.waitingUpload(at: position) else { return true }
      if own.isUnreachableRecorded { shared.scheduler.enqueue(upload.receiptID, upload.appFamily) }
      return own.isUnreachableRecorded
    } catch {
      shared.notes.fault("read the queue", error)
      return false
    }
  }

  /// Appends a verification of an upload that is durable; a later batch handles the result.
  private func append(
    _ data: [UInt8], for upload: SubmittedUpload, at position: Position,
    next: SubmittedUpload.Next, _ begin: (Position) -> Void
  ) -> Step {
    guard let ticket = shared.submit([UploadDrafts.verification(data)]) else {
      shared.scheduler.enqueue(upload.receiptID, upload.appFamily)
      upload.response.answer(.tryLater)
      return .ended
    }
    begin(position)
    shared.inbox.push(
      .uploaded(
        SubmittedUpload(
          kind: upload.kind, response: upload.response, receiptID: upload.receiptID,
          appFamily: upload.appFamily, ticket: ticket, position: position,
          filedTypes: upload.filedTypes, submittedAtMs: shared.clock.monotonicMs(), next: next)))
    return .waits
  }

  // MARK: Events

  /// - Parameter upload: its position; nil for an upload of the same append.
  private func data(_ reply: RecentReply, upload: Position? = nil) -> [UInt8] {
    reply.data(upload: upload, occurredAtMs: shared.clock.nowMs())
  }

  private func data(_ reason: NoCallReason, upload: Position? = nil) -> [UInt8] {
    ReplyVerification(reason).data(
      upload: upload, attempt: 1, occurredAtMs: shared.clock.nowMs(), reply: .none)
  }
}
