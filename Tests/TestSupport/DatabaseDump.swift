// The content of a projections database, table by table, for comparisons.
package import Projections

/// The content of one table: lines of cells, sorted.
package struct TableDump: Equatable, Sendable {
  package let name: String
  package let rows: [String]
}

extension Database {
  /// All tables by name, `progress` with its blobs included.
  package func dump() throws -> [TableDump] {
    let tables = try prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    )
    var result: [TableDump] = []
    while try tables.step() { result.append(try dump(table: tables.text(0))) }
    return result
  }

  private func dump(table: String) throws -> TableDump {
    let columns = try prepare("SELECT name FROM pragma_table_info(?) ORDER BY cid")
    columns.bind(1, text: table)
    var names: [String] = []
    while try columns.step() { names.append("quote(\(columns.text(0)))") }
    let rows = try prepare("SELECT \(names.joined(separator: " || ',' || ")) FROM \(table)")
    var lines: [String] = []
    while try rows.step() { lines.append(rows.text(0)) }
    return TableDump(name: table, rows: lines.sorted())
  }
}
