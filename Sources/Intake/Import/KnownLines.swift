// Records which lines and notifications were imported before; the events of one line, and its verdict.
import AppStore
package import Base
import Ledger

/// The lines already in the ledger, by the SHA-256 of their bytes.
package protocol KnownLines {
  func contains(_ digest: SHA256Digest) -> Bool
}

/// The notifications already in the ledger, by their `notificationUUID` as sent.
package protocol KnownNotifications {
  func contains(notificationUUID: String) -> Bool
}

/// The registered app families.
package protocol AppFamilies {
  /// The UUID of the app family with this bundle id.
  func id(forBundleID bundleID: String) -> String?
  /// The App Store's number of the app family with this UUID; nil if it declares none.
  func appAppleID(ofFamily id: String) -> Int64?
}

/// A growing set of digests that keeps half of each one. 128 bits rule out accidental collisions and the
/// forgery of a given line, and an import of a million lines takes 32 MB.
struct DigestSet {
  private struct Slot {
    var high: UInt64
    var low: UInt64
  }

  private var slots = [Slot](repeating: Slot(high: 0, low: 0), count: 1024)
  private(set) var count = 0

  private static func slot(_ digest: SHA256Digest) -> Slot {
    digest.withUnsafeBytes { bytes in
      Slot(
        high: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
        // All zeros marks an empty slot, so the low bit is set; two digests that differ only there (chance
        // 2^-127) coincide.
        low: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self) | 1)
    }
  }

  /// The index of the digest's slot, or of the empty slot where it belongs.
  private func index(of wanted: Slot) -> Int {
    let mask = slots.count - 1
    var index = Int(truncatingIfNeeded: wanted.high) & mask
    while slots[index].low != 0,
      slots[index].low != wanted.low || slots[index].high != wanted.high
    {
      index = (index + 1) & mask
    }
    return index
  }

  func contains(_ digest: SHA256Digest) -> Bool {
    slots[index(of: Self.slot(digest))].low != 0
  }

  mutating func insert(_ digest: SHA256Digest) {
    let wanted = Self.slot(digest)
    let index = index(of: wanted)
    guard slots[index].low == 0 else { return }
    slots[index] = wanted
    count += 1
    if count * 2 > slots.count { grow() }
  }

  private mutating func grow() {
    let old = slots
    slots = [Slot](repeating: Slot(high: 0, low: 0), count: old.count * 2)
    for slot in old where slot.low != 0 { slots[index(of: slot)] = slot }
  }
}

// MARK: - Events of a line

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

// MARK: - Verdict on a line

/// A line that is to be appended.
struct AcceptedLine {
  enum Kind {
    case upload
    /// - Parameter uuid: the digest of its `notificationUUID`.
    case notification(uuid: SHA256Digest)
    /// Of version 1, which has no UUID.
    case legacyNotification

    var isNotification: Bool {
      if case .upload = self { false } else { true }
    }
  }

  var kind = Kind.upload
  var drafts: [EventDraft]
  var warnings: [FieldProblem] = []
  /// The app that one of the drafts registers; nil if none does.
  var newFamily: (bundleID: String, id: UUID16)?
  /// Whether a signature was checked.
  var isChecked: Bool
  /// For the census of a dry run.
  var facts = ImportCensus.Facts()
}

enum LineVerdict {
  case accepted(AcceptedLine)
  /// At least one reason.
  case refused([FieldProblem])
  /// A notification that the ledger already has.
  case known
}

/// The context that all judges of a line share while it is judged.
struct LineContext {
  /// From 1.
  var number: Int
  /// Of the line's bytes.
  var digest: SHA256Digest
  /// The time of the import, in epoch milliseconds.
  var nowMs: Int64
  /// To be recorded before the first signature is checked; nil once it is recorded.
  var trust: TrustDeclared?

  var origin: ReceiptUploaded.Origin { .importLine(number: number, sha256Hex: digest.hex) }

  /// Accepts a line, unless one of its events would be too large.
  static func verdict(_ line: AcceptedLine) -> LineVerdict {
    if line.drafts.contains(where: { $0.data.count > EventLimits.dataBytes }) {
      return .refused([FieldProblem("", .tooLarge, "is too large for an event of 16 MiB")])
    }
    return .accepted(line)
  }
}
