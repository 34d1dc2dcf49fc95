// The schema of the projections without data: statements are checked against it, and it is listed.

/// The schema that this program gives the projections of a ledger.
package struct SQLSchema {
  private let database: Database
  private let viewNames: [String]

  package init(_ projections: ProjectionSet) throws(DatabaseError) {
    database = try Database(path: ":memory:", mode: .create)
    try database.execute(Schema.tables + projections.tables)
    try database.execute(Schema.indexes)
    try database.execute(Schema.views + projections.views)
    viewNames = Schema.viewNames + projections.additional.flatMap(\.views).map(\.name)
  }

  /// The views with their columns, in the order of docs/projections.md.
  package func views() throws(DatabaseError) -> [(name: String, columns: [String])] {
    var result: [(name: String, columns: [String])] = []
    for name in viewNames {
      let rows = try database.prepare(
        "SELECT name FROM pragma_table_info('\(name)') ORDER BY cid")
      var columns: [String] = []
      while try rows.step() { columns.append(rows.text(0)) }
      result.append((name, columns))
    }
    return result
  }

  /// Throws `SQLError` if a statement is not one that only reads what the projections hold.
  package func check(_ sql: String) throws {
    _ = try SQLQuery(sql, on: database, SQLStopwatch(limitMs: 60_000)) { false }
  }
}
