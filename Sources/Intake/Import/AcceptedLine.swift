// What is decided about an import line.
import Base
import Ledger

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
  /// A notification that the ledger has already.
  case known
}

/// What the judges of lines have in common, as long as one line is judged.
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
