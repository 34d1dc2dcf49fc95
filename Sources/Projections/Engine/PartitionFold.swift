// A fold of a part of the events of one or more ledgers: what belongs together, from nothing, for reports alone.
package import Ledger

/// Folds events at positions from 0 without gaps into a database of its own.
package final class PartitionFold {
  /// After this many events, rows that will probably not change are written.
  private static let settlingEventCount = 8192
  /// The end is not known: more events than any fold has.
  private static let remainingEventCount = 1 << 40

  private let database: Database
  private let fold: EventFold
  private let scan = EventScan()

  /// - Parameters:
  ///   - path: an empty file. When this returns, the file no longer needs its name.
  ///   - origins: knows the events by their positions in their ledgers.
  ///   - readEvent: returns the line of an event folded before, in which `seq` may be another.
  package init(
    at path: String, origins: any EventOrigins,
    readEvent: @escaping (Position) throws(LedgerError) -> [UInt8]
  ) throws(ProjectionError) {
    do throws(DatabaseError) {
      database = try Projector.beginFilling(path, .standard)
      fold = try EventFold(
        database, isFresh: true, nextPosition: 0, projections: .standard, origins: origins,
        readEvent: readEvent)
    } catch { throw .database(error) }
  }

  /// Folds the next event.
  package func fold(_ event: EventLine) throws(ProjectionError) {
    try fold.fold(scan.scan(event))
    if fold.nextPosition % Self.settlingEventCount == 0 {
      try fold.writeSettled(total: fold.nextPosition + Self.remainingEventCount)
    }
  }

  /// Writes what is left; returns the database, for reports.
  package func finish() throws(ProjectionError) -> Database {
    try fold.finish()
    do throws(DatabaseError) {
      try database.execute(Schema.views)
      try database.execute("COMMIT")
    } catch { throw .database(error) }
    return database
  }
}
