// The findings and the report of an audit.
package import Base

/// One place where the log, or a signed checkpoint of it, is damaged.
package struct AuditFinding: Sendable, Equatable {
  /// The place and the kind of the damage.
  package let damage: LedgerError.Damage
  /// The first intact position after the damage; nil if unknown.
  package let endPosition: Position?
  /// What is wrong, as a sentence.
  package let cause: String

  package init(_ damage: LedgerError.Damage, endPosition: Position? = nil, cause: String) {
    self.damage = damage
    self.endPosition = endPosition
    self.cause = cause
  }

  init(
    _ verdict: LedgerError.Verdict, _ file: String, block: Int? = nil, at position: Position?,
    to endPosition: Position? = nil, _ cause: String
  ) {
    self.init(
      .init(verdict: verdict, file: file, block: block, position: position),
      endPosition: endPosition, cause: cause)
  }

  /// The finding for a failed read.
  init(_ error: LedgerError, file: String, block: Int? = nil, at position: Position?) {
    self.init(
      error.damage?.verdict ?? .unreadable, error.damage?.file ?? file,
      block: error.damage?.block ?? block, at: error.damage?.position ?? position, error.cause)
  }
}

extension AuditFinding {
  /// Whether the damage may concern events of a range.
  func touches(_ range: Range<Position>) -> Bool {
    guard let start = damage.position, start < range.upperBound else { return false }
    return range.lowerBound < endPosition ?? start + 1
  }
}

/// The outcome of an audit.
package struct AuditReport: Sendable {
  /// Findings and notes beyond this number are counted, not kept: hostile bytes could cause millions.
  package static let findingCountMax = 1000

  /// Intact events at their own positions.
  package internal(set) var eventCount = 0
  package internal(set) var segmentCount = 0
  /// Blocks that were inflated and hashed.
  package internal(set) var blockCount = 0
  package internal(set) var tailCount = 0
  /// How many bytes of the log's files were read.
  package internal(set) var byteCount = 0
  /// Where the log ends.
  package internal(set) var size = 0
  /// The tree of all events, computed from them. With findings, it may be incomplete or nil.
  package internal(set) var frontier: Frontier? = Frontier()
  /// Whether the tree was computed from all events.
  package internal(set) var isTreeCertain = false
  /// The roots at the requested sizes, computed from the events.
  package internal(set) var roots: [Int: SHA256Digest] = [:]
  /// Kept checkpoints whose signature and root were checked.
  package internal(set) var checkpointCount = 0
  /// Declarations of trust beyond this total size are counted, not kept.
  package static let trustByteCountMax = 1 << 20

  /// The trust that was declared, with the position from which it applied. At most `findingCountMax`.
  package private(set) var trust: [(position: Position, trust: TrustDeclared)] = []
  private var trustByteCount = 0
  /// How many declarations of trust are not in `trust`.
  package private(set) var furtherTrustCount = 0
  /// Erasures beyond this number are counted, not kept.
  package static let erasureCountMax = 10_000
  /// The newest erasures, by position.
  package internal(set) var erasures: [AuditedErasure] = []
  /// How many older ones are not in `erasures`.
  package internal(set) var furtherErasureCount = 0
  /// The erasures whose lists are not all in the log, by position.
  package internal(set) var unfinishedErasures: [UnfinishedErasure] = []
  /// How many events lost their data as an erasure lists it.
  package internal(set) var redactedCount = 0
  /// How many events still hold data that a finished erasure lists as redacted.
  package internal(set) var unredactedCount = 0
  /// The first of them.
  package internal(set) var firstUnredacted: Position?
  package private(set) var findings: [AuditFinding] = []
  /// How many findings are not in `findings`.
  package private(set) var furtherFindingCount = 0
  /// Traces of a crash. The next writer removes them.
  package var notes: [String] {
    furtherNoteCount > 0 ? keptNotes + ["and \(furtherNoteCount) more"] : keptNotes
  }
  private var keptNotes: [String] = []
  private var furtherNoteCount = 0

  /// Whether there are no findings.
  package var isWhole: Bool { findings.isEmpty }

  mutating func addNote(_ text: String) {
    if keptNotes.count < Self.findingCountMax {
      keptNotes.append(text)
    } else {
      furtherNoteCount += 1
    }
  }

  /// - Parameter byteCount: the size of the event's data.
  mutating func addTrust(_ declared: TrustDeclared, at position: Position, byteCount: Int) {
    if trust.count < Self.findingCountMax, trustByteCount + byteCount <= Self.trustByteCountMax {
      trust.append((position, declared))
      trustByteCount += byteCount
    } else {
      furtherTrustCount += 1
    }
  }

  package mutating func add(_ finding: AuditFinding) {
    if findings.count < Self.findingCountMax {
      findings.append(finding)
    } else {
      furtherFindingCount += 1
    }
  }
}
