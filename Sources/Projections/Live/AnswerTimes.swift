// When receipts were answered for good, roughly: spares the database most questions for a recent answer.
import Base
import Ledger
package import Revenue

/// Tells for which receipts there can be no recent answer. Of a fixed size: receipts share places, so that it may
/// name too late a time, never too early a one.
package final class AnswerTimes: Sendable {
  private static let placeCount = 1 << 16
  /// Epoch milliseconds of the newest answer of a place's receipts.
  private let times = Monitor([Int64](repeating: .min, count: placeCount))

  package init() {}

  /// Notes a final answer for a receipt.
  package func note(_ receiptID: Text, atMs: Int64) {
    let place = Self.place(receiptID)
    times.withLock { $0[place] = max($0[place], atMs) }
  }

  /// Notes that any receipt may have had an answer until a time.
  package func noteAll(atMs: Int64) {
    times.withLock { times in
      for place in times.indices { times[place] = max(times[place], atMs) }
    }
  }

  /// Whether a receipt may have had an answer since a time.
  package func mayHold(_ receiptID: Text, since notBeforeMs: Int64) -> Bool {
    let place = Self.place(receiptID)
    return times.withLock { $0[place] } >= notBeforeMs
  }

  private static func place(_ receiptID: Text) -> Int {
    Int(truncatingIfNeeded: receiptID.placeHash() & UInt64(placeCount - 1))
  }

  // MARK: Answers of others

  /// How many of the newest verifications are searched for a reply.
  private static let lookBackMax = 10_000

  /// Loads from a database what concerns events that were not folded here.
  /// - Parameter lastEventAtMs: that of the last of them.
  func noteAll(of database: Database, lastEventAtMs: Int64?) throws(DatabaseError) {
    let newest = try database.prepare(
      """
      SELECT count(*), max(occurred_at_ms) FILTER (WHERE reply_position IS NOT NULL) FROM
      (SELECT occurred_at_ms, reply_position FROM verifications ORDER BY position DESC LIMIT ?)
      """)
    newest.bind(1, Self.lookBackMax)
    guard try newest.step() else { return }
    if let atMs = newest.optionalInteger(1) {
      noteAll(atMs: atMs)
    } else if newest.integer(0) == Self.lookBackMax, let lastEventAtMs {
      noteAll(atMs: lastEventAtMs)
    }
  }
}
