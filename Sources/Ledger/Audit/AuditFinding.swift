// The findings of an audit, and its result as a whole.
package import Base

/// One place where the log, or what was signed of it, is damaged.
package struct AuditFinding: Sendable, Equatable {
  /// Where it is and what kind of damage.
  package let damage: LedgerError.Damage
  /// The first position behind the damage that is whole again; nil where that is not known.
  package let endPosition: Position?
  /// What is wrong, in words.
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

  /// What a failed read means.
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

  /// Events that are whole, and in their place.
  package internal(set) var eventCount = 0
  package internal(set) var segmentCount = 0
  /// Blocks that were inflated and hashed.
  package internal(set) var blockCount = 0
  package internal(set) var tailCount = 0
  /// Bytes of the log's files that were looked at.
  package internal(set) var byteCount = 0
  /// Where the log ends.
  package internal(set) var size = 0
  /// The tree of all events, computed from them; where there are findings, as far as it could be.
  package internal(set) var frontier: Frontier? = Frontier()
  /// Whether the tree is that of all events, as the events themselves give it.
  package internal(set) var isTreeCertain = false
  /// The roots at the sizes that were asked for, computed from the events.
  package internal(set) var roots: [Int: SHA256Digest] = [:]
  /// Kept checkpoints whose signature and root were checked.
  package internal(set) var checkpointCount = 0
  /// Declarations of trust that together have more bytes than this are counted, not kept.
  package static let trustByteCountMax = 1 << 20

  /// Whom verification trusted, from which position on; at most as many as findings.
  package private(set) var trust: [(position: Position, trust: TrustDeclared)] = []
  private var trustByteCount = 0
  /// How many declarations of trust are not in `trust`.
  package private(set) var furtherTrustCount = 0
  package private(set) var findings: [AuditFinding] = []
  /// How many findings are not in `findings`.
  package private(set) var furtherFindingCount = 0
  /// What a crash can leave and the next writer repairs.
  package var notes: [String] {
    furtherNoteCount > 0 ? keptNotes + ["and \(furtherNoteCount) more"] : keptNotes
  }
  private var keptNotes: [String] = []
  private var furtherNoteCount = 0

  /// Whether nothing was found.
  package var isWhole: Bool { findings.isEmpty }

  mutating func note(_ text: String) {
    if keptNotes.count < Self.findingCountMax {
      keptNotes.append(text)
    } else {
      furtherNoteCount += 1
    }
  }

  /// - Parameter byteCount: the size of the event's data.
  mutating func note(_ declared: TrustDeclared, at position: Position, byteCount: Int) {
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
