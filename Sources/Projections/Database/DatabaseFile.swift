// Checks that a database is intact before it is kept or put in use.

extension Projector {
  /// What is wrong with a projections database according to SQLite's own check and the list of its tables, as the end
  /// of a sentence. Nil if nothing is.
  func damage(in database: Database) throws(ProjectionError) -> String? {
    do throws(DatabaseError) {
      return try database.interruptible(by: observer.isCancelled) { () throws(DatabaseError) in
        let check = try database.prepare("PRAGMA quick_check(1)")
        guard try check.step(), check.text(0) == "ok" else { return "is damaged" }
        return try otherShape(of: database)
      }
    } catch {
      if error.isCorrupt { return "is damaged" }
      if error.isInterrupted { throw .interrupted }
      throw .database(error)
    }
  }

  /// The same, by the list of its tables alone, which is fast.
  func otherShape(of database: Database) throws(DatabaseError) -> String? {
    var found: [String: String] = [:]
    for definition in try Self.definitions(in: database) {
      found[definition.name] = definition.columns
    }
    for (name, columns) in try expectedDefinitions() where found[name] != columns {
      return found[name] == nil ? "has no \(name)" : "has a different \(name)"
    }
    return nil
  }

  /// The tables, indexes and views that a projections database must have.
  private func expectedDefinitions() throws(DatabaseError) -> [(name: String, columns: String)] {
    let empty = try Database(path: ":memory:", mode: .create)
    try empty.execute(Schema.tables + projections.tables)
    try empty.execute(Schema.indexes)
    try empty.execute(Schema.views + projections.views)
    return try Self.definitions(in: empty)
  }

  /// In creation order. Only tables have columns, because a view names the columns that it reads.
  private static func definitions(
    in database: Database
  ) throws(DatabaseError) -> [(name: String, columns: String)] {
    let rows = try database.prepare(
      """
      SELECT type || ' ' || name,
        CASE type WHEN 'table'
          THEN (SELECT group_concat(c.name) FROM pragma_table_info(m.name) c) ELSE '' END
      FROM sqlite_master m WHERE sql IS NOT NULL ORDER BY m.rowid
      """)
    var result: [(name: String, columns: String)] = []
    while try rows.step() { result.append((rows.text(0), rows.text(1))) }
    return result
  }
}
