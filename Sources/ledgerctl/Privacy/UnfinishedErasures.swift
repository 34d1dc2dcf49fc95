// Erasures that the log begins and does not finish, and what finishes each: a take-over may leave them so.
import Base
import Erasure
import Ledger
import Projections

/// The unfinished erasures of a ledger.
struct UnfinishedErasures {
  private let entries: [(erasure: UnfinishedErasure, isWaiting: Bool)]
  /// How many are named in lines of text.
  private static let namedCountMax = 10

  /// - Parameter found: those that the log does not finish.
  init(_ found: [UnfinishedErasure], _ directory: LedgerDirectory) throws(ErasureError) {
    let queue = ErasureQueue(directory)
    var entries: [(erasure: UnfinishedErasure, isWaiting: Bool)] = []
    for erasure in found {
      let state = try queue.record(erasure.request)?.state
      // Earlier versions listed nothing if there was nothing to redact.
      if state == .done { continue }
      entries.append((erasure, state == .waiting || state == .running))
    }
    self.entries = entries
  }

  /// Looks for them in the projections and in the log after these.
  init(_ ledger: OpenLedger) throws {
    try self.init(try ledger.lookingProjector().unfinishedErasures(), ledger.directory)
  }

  var isEmpty: Bool { entries.isEmpty }
  /// Whether the request of one is not in this ledger, so that no pass finishes it.
  var isAnyLost: Bool { entries.contains { !$0.isWaiting } }

  /// What is said of the erasure at a position; nil if it is finished.
  func state(of position: Position) -> String? {
    entries.first { $0.erasure.position == position }.map {
      $0.isWaiting ? "waiting" : "unfinished"
    }
  }

  /// A line for each of the first.
  var lines: [String] {
    let named = entries.prefix(Self.namedCountMax).map { erasure, isWaiting in
      isWaiting
        ? "the erasure at \(erasure.position) is not finished: the next pass does that, or 'ledgerctl redact --again'"
        : "the erasure at \(erasure.position) is not finished, and its request is not in this ledger: repeat "
          + "request \(erasure.request) (\(erasure.scope.rawValue), \(erasure.reason)) with "
          + "'ledgerctl redact --\(erasure.scope.rawValue) … --request \(erasure.request)'"
    }
    let rest = entries.count - named.count
    return rest > 0 ? named + ["and \(rest) more"] : named
  }

  var fields: Fields { lines.map { ("unfinished", $0) } }

  var record: [Record] {
    entries.map { erasure, isWaiting in
      [
        "erasure": erasure.position, "request": erasure.request.description,
        "scope": erasure.scope.rawValue, "reason": erasure.reason, "waiting": isWaiting,
      ]
    }
  }
}
