// Checks events as they are read: digests, times, the tree.
import Base
import Ledger

/// The state of the check: the tree and the time up to the last event.
struct RangeCheck {
  private let hasher = SHA256()
  let frontierBefore: Frontier
  private(set) var frontier: Frontier
  private(set) var lastEventAtMs: Int64 = 0
  private(set) var byteCount = 0

  /// - Parameter frontier: the tree before the first event.
  init(_ frontier: Frontier) {
    frontierBefore = frontier
    self.frontier = frontier
  }

  /// Checks the next event. Its position was checked when its line was read.
  mutating func check(_ line: EventLine) throws(LedgerError) {
    // The events that list redacted lines are elsewhere in the log: only an audit compares the two.
    guard line.isRedacted || line.verifyDigest(hasher) else {
      throw Self.tampered(line.position, "its digest is not that of its salt and data")
    }
    guard line.recordedAtMs >= lastEventAtMs else {
      throw Self.tampered(line.position, "event times decrease")
    }
    frontier.append(leafHash: line.leafHash(hasher), hasher)
    lastEventAtMs = line.recordedAtMs
    byteCount += line.bytes.count + 1
  }

  /// Compares the tree with the one that the log has after a chunk.
  func compare(with expected: Frontier) throws(LedgerError) {
    guard frontier == expected else {
      throw Self.tampered(frontier.size - 1, "the tree of the events is not that of the log")
    }
  }

  static func tampered(_ position: Position, _ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .tampered, file: "log", position: position), operation: "scan", cause: cause)
  }
}
