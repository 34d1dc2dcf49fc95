// Folds a component of one or more ledgers from nothing, for reports alone; and the last steps of a fold from nothing.
package import Ledger

/// Folds events at positions from 0 without gaps into a database of its own.
package final class PartitionFold {
  /// After this many events, rows that will probably not change are written.
  private static let settlingEventCount = 8192
  /// More events than any fold has: the end is unknown.
  private static let remainingEventCount = 1 << 40

  private let database: Database
  private let fold: EventFold
  private let scan = EventScan()

  /// - Parameters:
  ///   - path: an empty file. When this returns, the file no longer needs its name.
  ///   - origins: knows the events by their positions in their ledgers.
  ///   - readEvent: returns the line of an event folded before, whose `seq` may differ.
  package init(
    at path: String, origins: any EventOrigins,
    readEvent: @escaping (Position) throws(LedgerError) -> [UInt8]
  ) throws(ProjectionError) {
    do throws(DatabaseError) {
      database = try Projector.beginFilling(path, .standard)
      fold = try EventFold(
        database, isFresh: true, nextPosition: 0, projections: .standard, repliesFromMs: .max,
        origins: origins, readEvent: readEvent)
    } catch { throw .database(error) }
  }

  /// Folds the next event.
  package func fold(_ event: EventLine) throws(ProjectionError) {
    try fold.fold(scan.scan(event))
    if fold.nextPosition % Self.settlingEventCount == 0 {
      try fold.writeSettled(total: fold.nextPosition + Self.remainingEventCount)
    }
  }

  /// Writes the remaining rows; returns the database, for reports.
  package func finish() throws(ProjectionError) -> Database {
    try fold.finish()
    do throws(DatabaseError) {
      try database.execute(Schema.views)
      try database.execute("COMMIT")
    } catch { throw .database(error) }
    return database
  }
}

// MARK: - Closing steps

/// When a fold from nothing writes rows that may still change, and when its closing steps run: after the last event
/// they would use only one thread.
package struct WritingPace: Sendable {
  /// Rows unchanged for this many events will rarely change again.
  package var settledEventCount = 4096
  /// The closing steps run during the last events: one in this many of all events, but no more than the maximum.
  package var closingDivisor = 5
  var closingEventCountMax = 65_536

  package init() {}

  /// During how many last events of a total the closing steps run.
  func closingEventCount(of total: Int) -> Int {
    min(total / closingDivisor, closingEventCountMax)
  }
}

/// A step that runs once, when most events are folded.
package enum ClosingStep: Equatable {
  /// Writes the users; most of them are known by then.
  case users
  /// Writes again the rows that changed after they were written.
  case sales, subscriptions, receipts
  /// Creates an index. Rows written afterwards cost more.
  case index(String)
}

/// The remaining steps, in order: rows that are written again should not have indexes yet.
package struct FinalTables {
  private static let all =
    [.users, .sales, .subscriptions, .receipts] + Schema.earlyIndexes.map { ClosingStep.index($0) }

  private var left = all[...]
  private let pace: WritingPace

  package init(_ pace: WritingPace) { self.pace = pace }

  /// The next step if it is due; the steps are spread over the last events. Nothing runs in parallel after the very
  /// last event, so the remaining steps then run when all rows are written.
  package mutating func next(after foldedCount: Int, of total: Int) -> ClosingStep? {
    let closingCount = pace.closingEventCount(of: total)
    guard foldedCount < total, (total - foldedCount) * Self.all.count < closingCount * left.count
    else { return nil }
    return left.popFirst()
  }

  /// The next step, whether or not it is due.
  package mutating func next() -> ClosingStep? { left.popFirst() }
}
