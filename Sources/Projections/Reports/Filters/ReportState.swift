// The state of the projections that reports are made from.

extension Report {
  /// Calls `body` while nothing that another process folds becomes visible, so that all that it reads is of one state.
  /// Calls may be nested.
  package static func inOneState<Result>(
    _ database: Database, _ body: () throws -> Result
  ) throws -> Result {
    // Unlike a transaction, a savepoint may be inside another.
    try database.execute("SAVEPOINT report")
    defer { try? database.execute("RELEASE report") }
    return try body()
  }

  /// When the last event of a database was recorded, in epoch milliseconds; nil if it has none.
  package static func lastEventAtMs(of database: Database) throws(ProjectionError) -> Int64? {
    do throws(DatabaseError) { return try Progress(database).lastEventAtMs } catch {
      throw .database(error)
    }
  }
}
