// Records replies as events: one reply decides all waiting uploads of a receipt.
import AppStore
import Base
import Intake
import Ledger
import Projections

/// A result that was submitted to the writer, if there was anything to record.
struct RecordedResult {
  enum Subject {
    case call(AppStoreCall, ReplyVerification)
    case rest(UUID16, appFamily: UUID16, RecentReply)
  }

  let subject: Subject
  /// The uploads that get a verification.
  var uploads: [Position] = []
  /// Nil if there was nothing to record, or the append failed.
  var ticket: AppendTicket?
  var isFailed = false
  /// Whether more uploads wait for this reply.
  var isMore = false
  /// Epoch milliseconds.
  let occurredAtMs: Int64
}

/// Records results, on the completion loop's thread.
final class ResultRecorder {
  /// The most verifications of one frame.
  private static let frameUploadsMax = 1000

  private let shared: WorkflowShared
  /// Uploads whose verification was submitted and is not folded: they are still pending in the projections.
  private var underWay: Set<Position> = []
  /// Those of them that are durable although a fold failed.
  private var unfolded: Set<Position> = []

  init(_ shared: WorkflowShared) { self.shared = shared }

  /// Records that an upload's verification is submitted.
  func begin(_ position: Position) { underWay.insert(position) }

  /// Records the results of submitted verifications.
  func end(durable: [Position], failed: [Position], isFolded: Bool) {
    underWay.subtract(failed)
    unfolded.formUnion(durable)
    if isFolded {
      underWay.subtract(unfolded)
      unfolded = []
    }
  }

  /// Nil if the App Store must be asked again before the result counts.
  func record(_ result: CallResult, of call: AppStoreCall) -> RecordedResult? {
    let judgement: ReplyVerification
    var isMade = false
    switch result {
    case .notMade(let reason): judgement = ReplyVerification(reason)
    case .answer(let answer):
      judgement = ReplyVerification(answer) { mismatch(of: $0, to: call) }
      isMade = true
      shared.metrics.count(.appStoreCalls, label: judgement.metricLabel)
      if judgement.isNotAuthenticated, !call.isSecond {
        shared.scheduler.askAgain(call)
        return nil
      }
      if let alarm = judgement.alarm {
        shared.notes.alarm(alarm, appFamily: call.appFamily.description)
      }
    }
    var recorded = RecordedResult(
      subject: .call(call, judgement), occurredAtMs: shared.clock.nowMs())
    guard var uploads = waiters(of: call, judgement) else {
      recorded.isFailed = true
      return recorded
    }
    // A call that was not made means nothing for uploads without a waiting client.
    if isMade {
      let known = Set(uploads)
      let others = waitingUploads(
        of: call.receiptID, call.appFamily, besides: known, isFinal: judgement.isFinal)
      guard let others else {
        recorded.isFailed = true
        return recorded
      }
      recorded.isMore = judgement.isFinal && others.count > Self.frameUploadsMax
      uploads += others.prefix(Self.frameUploadsMax)
    }
    if uploads.isEmpty { return recorded }
    recorded.uploads = uploads
    underWay.formUnion(uploads)
    recorded.ticket = shared.submit(drafts(judgement, uploads, call, recorded.occurredAtMs))
    recorded.isFailed = recorded.ticket == nil
    return recorded
  }

  /// Why a reply does not belong to the receipt of a call; nil if it does.
  private func mismatch(of reply: Reply, to call: AppStoreCall) -> ReplyMismatch? {
    let file = try? Base64.decode(call.receiptText)
    let subject = ReceiptSubject(file.flatMap { try? ReceiptFile.decode($0) })
    return subject.mismatch(of: reply) { bundle in
      let owner = shared.projections.appFamily(ofBundle: String(decoding: bundle, as: UTF8.self))
      return owner == call.appFamily
    }
  }

  /// Applies a reply to more uploads of a receipt.
  func recordRest(
    of receiptID: UUID16, appFamily: UUID16, _ reply: RecentReply
  ) -> RecordedResult? {
    var recorded = RecordedResult(
      subject: .rest(receiptID, appFamily: appFamily, reply), occurredAtMs: shared.clock.nowMs())
    guard let uploads = waitingUploads(of: receiptID, appFamily, besides: [], isFinal: true)
    else {
      recorded.isFailed = true
      return recorded
    }
    if uploads.isEmpty { return nil }
    recorded.isMore = uploads.count > Self.frameUploadsMax
    recorded.uploads = Array(uploads.prefix(Self.frameUploadsMax))
    underWay.formUnion(recorded.uploads)
    recorded.ticket = shared.submit(
      recorded.uploads.map { upload in
        UploadDrafts.verification(
          reply.data(upload: upload, occurredAtMs: recorded.occurredAtMs))
      })
    recorded.isFailed = recorded.ticket == nil
    return recorded
  }

  /// The uploads whose clients wait for a call and that still need its result: an earlier call's result may have been
  /// recorded for them meanwhile. Nil if the projections cannot be read.
  private func waiters(
    of call: AppStoreCall, _ judgement: ReplyVerification
  ) -> [Position]? {
    do {
      return try shared.scheduler.waiterPositions(of: call).filter { position in
        guard !underWay.contains(position),
          let waiting = try shared.projections.waitingUpload(at: position)
        else { return false }
        return judgement.isFinal || !waiting.isUnreachableRecorded
      }
    } catch {
      shared.notes.fault("read the queue", error)
      return nil
    }
  }

  /// The first uploads of a receipt that need a result, by position: if there are many, one more than fit into a frame.
  /// Nil if the projections cannot be read.
  private func waitingUploads(
    of receiptID: UUID16, _ appFamily: UUID16, besides known: Set<Position>, isFinal: Bool
  ) -> [Position]? {
    let part = WaitingPart(
      limit: Self.frameUploadsMax + 1 + underWay.count + known.count,
      isUnrecordedAlone: !isFinal)
    do {
      return try shared.projections.waitingUploads(
        ofReceipt: receiptID, appFamily: appFamily, part
      ).map(\.position).filter { !underWay.contains($0) && !known.contains($0) }
    } catch {
      shared.notes.fault("read the queue", error)
      return nil
    }
  }

  /// The first verification holds the reply, the others name it.
  private func drafts(
    _ judgement: ReplyVerification, _ uploads: [Position], _ call: AppStoreCall, _ nowMs: Int64
  ) -> [EventDraft] {
    let attempt = call.earlierAttempts + (call.isSecond ? 2 : 1)
    var drafts: [EventDraft] = []
    for upload in uploads {
      func data(_ reply: ReceiptVerified.Reply) -> [UInt8] {
        judgement.data(upload: upload, attempt: attempt, occurredAtMs: nowMs, reply: reply)
      }
      if drafts.isEmpty {
        drafts.append(UploadDrafts.verification(data(judgement.reply)))
      } else if judgement.hasReply {
        drafts.append(UploadDrafts.verificationByFirstDraft(data(.reusedOfSameAppend)))
      } else {
        drafts.append(UploadDrafts.verification(data(.none)))
      }
    }
    return drafts
  }
}
