// The events of one valid import line.
import AppStore
import Base
import JSON
import Ledger

/// Builds the events of lines.
struct LineDrafts {
  /// The part of a line that is the same for importing and for checking.
  struct Subject {
    var line: ReceiptLine
    /// Nil if the file cannot be decoded, which is acceptable only with an operator's recorded reply.
    var receipt: Receipt?
    /// Why the recorded reply does not fit the receipt; nil if it fits or there is none.
    var mismatch: ReplyMismatch?

    /// The bundle id in the receipt, otherwise the one in the reply, otherwise empty.
    var bundleID: String {
      if let receipt, !receipt.bundleID.isEmpty { return receipt.bundleID }
      return line.recorded?.bundleID ?? ""
    }

    var style: ReceiptStyle {
      receipt?.style ?? (line.recorded?.isLegacy == true ? .transaction : .unified)
    }
  }

  var number: Int
  var digest: SHA256Digest
  var appFamily: UUID16
  /// The time of the import, in epoch milliseconds.
  var nowMs: Int64
  let hasher: SHA256

  /// The upload and its verification results, in the order in which they are appended.
  /// - Parameters:
  ///   - local: the result of the local check, if there was one.
  ///   - firstIndex: the upload's index among the drafts that are appended together.
  func drafts(
    _ subject: Subject, local: LocalVerification?, firstIndex: Int
  ) -> [EventDraft] {
    let recorded = subject.line.recorded
    let uploadedAtMs = subject.line.occurredAtMs ?? recorded?.requestDateMs ?? nowMs
    var drafts = [upload(subject, occurredAtMs: uploadedAtMs)]
    if let local {
      drafts.append(
        UploadDrafts.verification(
          local.data(of: subject.receipt, occurredAtMs: nowMs), ofDraftAt: firstIndex))
    }
    // A reply to a forged receipt is not evidence of a sale.
    if let recorded, local?.outcome != .invalid {
      let event = verification(recorded, subject.mismatch, uploadedAtMs: uploadedAtMs)
      drafts.append(
        UploadDrafts.verification(
          event.data(upload: nil, reply: .json(Array(recorded.bytes))), ofDraftAt: firstIndex,
          version: event.version))
    }
    return drafts
  }

  private func upload(_ subject: Subject, occurredAtMs: Int64) -> EventDraft {
    let fields = subject.line.fields
    let sha256 = fields.receiptFile.withUnsafeBytes { hasher.hash($0) }
    return UploadDrafts.upload(
      fields,
      UploadDrafts.Context(
        identity: ReceiptIdentity(sha256: sha256, appFamily: appFamily), appFamily: appFamily,
        style: subject.style, bundleID: subject.bundleID, occurredAtMs: occurredAtMs,
        origin: .importLine(number: number, sha256Hex: digest.hex)))
  }

  private func verification(
    _ recorded: ReceiptLine.RecordedReply, _ mismatch: ReplyMismatch?, uploadedAtMs: Int64
  ) -> ReceiptVerified {
    var event = ReceiptVerified(
      authority: .appStore, outcome: recorded.outcome,
      occurredAtMs: recorded.occurredAtMs ?? uploadedAtMs)
    event.environment = recorded.environment
    event.status = recorded.status
    event.reason = recorded.fraudReason
    event.endpoint = recorded.endpoint
    event.source = .imported
    event.notification = recorded.notification
    if recorded.outcome == .valid {
      event.mismatch = mismatch?.rawValue ?? ReceiptVerified.noMismatch
    }
    return event
  }
}
