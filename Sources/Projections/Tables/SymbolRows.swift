// The table `symbols`.
package import Revenue

extension StringInterner {
  /// Loads the symbols of a database that are not in memory yet.
  package func load(from database: Database) throws(DatabaseError) {
    let statement = try database.prepare("SELECT text FROM symbols WHERE id >= ? ORDER BY id")
    statement.bind(1, count)
    while try statement.step() { _ = symbol(statement.bytes(0)) }
  }
}

/// Writes the symbols that the database does not have yet.
package struct SymbolRows {
  private let symbols: StringInterner
  /// How many symbols the database has.
  private var storedCount: Int
  private var target: RowTarget?

  /// - Parameter symbols: exactly the symbols loaded from the database.
  package init(_ symbols: StringInterner) {
    self.symbols = symbols
    storedCount = symbols.count
  }

  package mutating func store(_ rows: RowWriter) throws(DatabaseError) {
    guard storedCount < symbols.count else { return }
    if target == nil { target = try rows.target("INSERT INTO symbols(id, text)", valueCount: 2) }
    guard let target else { return }
    for number in storedCount..<symbols.count {
      rows.begin(target)
      rows.add(number)
      rows.add(kept: symbols.text(Symbol(number)))
      try rows.end()
    }
    storedCount = symbols.count
  }
}
