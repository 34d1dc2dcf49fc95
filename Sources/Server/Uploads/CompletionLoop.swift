// The thread that waits for appends, brings the projections up to date, and decides what follows.
import AppStore
import Base
import Intake
import Ledger
import Projections

/// The input of the completion loop.
enum CompletionItem: Sendable {
  case uploaded(SubmittedUpload)
  case result(AppStoreCall, CallResult)
  /// More uploads of a receipt wait for a reply than fit into one frame.
  case rest(UUID16, appFamily: UUID16, RecentReply)
  /// Notifications are durable and answered.
  case notified
  /// Others have appended; waiting callers are notified when that is folded.
  case foreign(Latch)
  /// Whoever looks for progress is notified when the batch is done.
  case probe(Latch)
}

/// Handles batch after batch: one wait for the disk and one transaction for each batch.
final class CompletionLoop {
  /// The most items of one batch.
  private static let batchMax = 256

  private let shared: WorkflowShared
  private let caller: AppStoreCaller
  private let recorder: ResultRecorder
  private let lifecycle: UploadLifecycle
  private let answers: WorkQueue<AnswerItem>

  init(_ shared: WorkflowShared, _ caller: AppStoreCaller, _ answers: WorkQueue<AnswerItem>) {
    self.shared = shared
    self.caller = caller
    self.answers = answers
    recorder = ResultRecorder(shared)
    lifecycle = UploadLifecycle(shared)
  }

  /// Works until the inbox is closed and empty.
  func run() {
    while true {
      let batch = shared.inbox.popAll(atMost: Self.batchMax)
      if batch.isEmpty { return }
      handle(batch)
    }
  }

  private func handle(_ batch: [CompletionItem]) {
    var uploads: [SubmittedUpload] = []
    var results: [RecordedResult] = []
    var latches: [Latch] = []
    var probes: [Latch] = []
    for item in batch {
      switch item {
      case .uploaded(let upload): uploads.append(upload)
      case .result(let call, let result):
        if let recorded = recorder.record(result, of: call) { results.append(recorded) }
      case .rest(let receiptID, let appFamily, let reply):
        if let recorded = recorder.recordRest(of: receiptID, appFamily: appFamily, reply) {
          results.append(recorded)
        }
      case .notified: break
      case .foreign(let latch): latches.append(latch)
      case .probe(let latch): probes.append(latch)
      }
    }
    let positions = uploads.map { upload -> Position? in
      let first = durable(upload.ticket)
      let position = first.map { upload.position ?? $0 }
      if first != nil, upload.position == nil {
        shared.metrics.count(.uploads, label: upload.kind.rawValue)
      }
      shared.metrics.observe(
        .commitSeconds,
        seconds: Double(shared.clock.monotonicMs() - upload.submittedAtMs) / 1000)
      return position
    }
    let resultPositions = results.map { $0.ticket.flatMap(durable) }
    let isFolded = catchUp()
    endVerifications(results, resultPositions, uploads, positions, isFolded: isFolded)
    // Replies first: uploads of the same receipts that arrived meanwhile reuse them.
    for (result, position) in zip(results, resultPositions) {
      conclude(result, position, isFolded: isFolded)
    }
    for (upload, position) in zip(uploads, positions) {
      advance(upload, position, isFolded: isFolded)
    }
    caller.makeCalls()
    for probe in probes { answers.push(.probe(probe)) }
    if latches.isEmpty { return }
    // Imported receipts may also wait for the App Store.
    shared.scheduler.rescan()
    for latch in latches { latch.open() }
  }

  /// Verifications that are folded, or were not kept, are no longer in progress.
  private func endVerifications(
    _ results: [RecordedResult], _ resultPositions: [Position?],
    _ uploads: [SubmittedUpload], _ positions: [Position?], isFolded: Bool
  ) {
    var kept: [Position] = []
    var lost: [Position] = []
    for (result, position) in zip(results, resultPositions) {
      if position == nil { lost += result.uploads } else { kept += result.uploads }
    }
    for (upload, position) in zip(uploads, positions) {
      guard let verified = upload.position else { continue }
      if position == nil { lost.append(verified) } else { kept.append(verified) }
    }
    recorder.end(durable: kept, failed: lost, isFolded: isFolded)
  }

  private func durable(_ ticket: AppendTicket) -> Position? {
    guard let result = shared.wait(for: ticket) else { return nil }
    shared.metrics.count(.appendedEvents, by: result.count)
    return result.firstPosition
  }

  private func catchUp() -> Bool {
    do {
      try shared.projections.catchUp()
      shared.health.recordFold(isGood: true)
      return true
    } catch {
      shared.notes.fault("bring the projections up to date", error)
      shared.health.recordFold(isGood: false)
      // What is already durable is pending in the projections once they can be read again.
      shared.scheduler.rescan()
      return false
    }
  }

  // MARK: Uploads

  private func advance(_ upload: SubmittedUpload, _ position: Position?, isFolded: Bool) {
    let step = lifecycle.advance(upload, at: position, isFolded: isFolded) { recorder.begin($0) }
    if case .respond = step, let position {
      answers.push(.answer(upload.response, upload.folded(at: position)))
    }
  }

  // MARK: Results

  private func conclude(_ result: RecordedResult, _ position: Position?, isFolded: Bool) {
    let isKept = isFolded && !result.isFailed && (position != nil || result.ticket == nil)
    switch result.subject {
    case .call(let call, let judgement):
      let reply = position.map { judgement.earlierReply(at: $0, result.occurredAtMs) }
      let conclusion: VerificationScheduler.Conclusion =
        isKept && judgement.isFinal
        ? .answered
        : .unanswered(isAlarm: judgement.alarm?.waitsForOperator ?? false)
      for waiter in shared.scheduler.conclude(call, conclusion) {
        if isKept {
          answers.push(.answer(waiter.response, waiter.upload))
        } else {
          waiter.response.answer(.tryLater)
        }
      }
      if isKept, result.isMore, let reply {
        shared.inbox.push(.rest(call.receiptID, appFamily: call.appFamily, reply))
      }
    case .rest(let receiptID, let appFamily, let reply):
      if !isKept { return shared.scheduler.enqueue(receiptID, appFamily) }
      if result.isMore {
        shared.inbox.push(.rest(receiptID, appFamily: appFamily, reply))
      }
    }
  }
}
