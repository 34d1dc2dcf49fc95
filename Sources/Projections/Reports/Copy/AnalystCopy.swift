// A copy of the views as tables of a new SQLite file, for analysts.
import Base
package import Ledger
import Revenue

/// Copies the stable views into tables of the same names. Amounts also stand as exact text: `amount` beside
/// `amount_micros`. An anonymous copy has the columns that `CopiedView` shares, and no others.
package struct AnalystCopy {
  private let source: Database
  private let identity: LedgerIdentity
  private let isAnonymous: Bool
  private let isCancelled: () -> Bool

  /// A table that was written.
  package struct Table: Equatable, Sendable {
    package let name: String
    package let rowCount: Int
  }

  /// - Parameters:
  ///   - source: projections that no other statement reads meanwhile.
  ///   - isCancelled: ends the copy.
  package init(
    of source: Database, _ identity: LedgerIdentity, isAnonymous: Bool,
    isCancelled: @escaping () -> Bool
  ) {
    self.source = source
    self.identity = identity
    self.isAnonymous = isAnonymous
    self.isCancelled = isCancelled
  }

  /// Writes the copy into an empty file. It is not synced.
  /// - Parameter projections: those of the source; views of additional ones are in a full copy.
  package func write(
    to path: String, _ projections: ProjectionSet
  ) throws(ProjectionError) -> [Table] {
    do throws(DatabaseError) {
      return try source.interruptible(by: isCancelled) { () throws(DatabaseError) in
        // All tables must be of one moment.
        try source.execute("BEGIN")
        defer { try? source.execute("COMMIT") }
        let target = try Database(path: path, mode: .create)
        try target.execute(
          """
          PRAGMA page_size = 4096; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
          PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -32768; BEGIN
          """)
        var tables = [try about(in: target)]
        for view in CopiedView.all {
          if let table = try copy(view, to: target) { tables.append(table) }
        }
        if !isAnonymous {
          for view in projections.additional.flatMap(\.views) {
            tables.append(try copy(view.name, to: target))
          }
        }
        try target.execute("COMMIT")
        return tables
      }
    } catch {
      throw error.isInterrupted ? .interrupted : .database(error)
    }
  }

  // MARK: Standard views

  /// What is read of a view, and how it stands in the table.
  private struct Selection {
    var expressions: [String] = []
    var definitions: [String] = []
    /// The amounts that get a text: the place of the micros and of the currency among the expressions.
    var amounts: [(micros: Int32, currency: Int32)] = []
  }

  private func selection(of view: CopiedView) -> Selection? {
    let columns = view.columns.filter { !isAnonymous || $0.reason.isShared }
    // A position alone tells nothing.
    guard columns.contains(where: { $0.reason != .number }) else { return nil }
    var selection = Selection()
    for column in columns {
      let isKey = view.key == [column.name] && column.kind == .integer
      selection.expressions.append(isAnonymous ? column.anonymous ?? column.name : column.name)
      selection.definitions.append(
        "\(column.name) \(column.kind.rawValue)\(isKey ? " PRIMARY KEY" : "")")
    }
    if let currency = columns.firstIndex(where: { $0.name == "currency" }) {
      for (index, column) in columns.enumerated() where column.name.hasSuffix("_micros") {
        selection.definitions.append("\(column.name.dropLast("_micros".count)) TEXT")
        selection.amounts.append((Int32(index), Int32(currency)))
      }
    }
    return selection
  }

  private func copy(_ view: CopiedView, to target: Database) throws(DatabaseError) -> Table? {
    guard let selection = selection(of: view) else { return nil }
    try target.execute(
      "CREATE TABLE \(view.name)(\(selection.definitions.joined(separator: ", ")))")
    // The key is read from the view, also where the copy does not have it.
    let rows = try source.prepare(
      """
      SELECT \(selection.expressions.joined(separator: ", ")) FROM \(view.name)
      ORDER BY \(view.key.map { "\(view.name).\($0)" }.joined(separator: ", "))
      """)
    let marks = selection.definitions.map { _ in "?" }.joined(separator: ", ")
    let insert = try target.prepare("INSERT INTO \(view.name) VALUES(\(marks))")
    let count = Int32(selection.expressions.count)
    var rowCount = 0
    while try rows.step() {
      for index in 0..<count { insert.bind(index + 1, column: index, of: rows) }
      for (offset, amount) in selection.amounts.enumerated() {
        insert.bind(count + Int32(offset) + 1, text: Self.text(amount, of: rows))
      }
      try insert.run()
      rowCount += 1
    }
    for column in view.indexes where selection.expressions.contains(column) {
      try target.execute("CREATE INDEX \(view.name)_\(column) ON \(view.name)(\(column))")
    }
    return Table(name: view.name, rowCount: rowCount)
  }

  /// An exact amount; nil without one, or without a currency.
  private static func text(_ amount: (micros: Int32, currency: Int32), of rows: Statement)
    -> String?
  {
    guard let micros = rows.optionalInteger(amount.micros),
      let currency = rows.optionalText(amount.currency).flatMap({ Currency.parse($0) })
    else { return nil }
    return Amount.text(micros: micros, currency: currency)
  }

  // MARK: Other tables

  /// A view that this program does not describe, as it is.
  private func copy(_ view: String, to target: Database) throws(DatabaseError) -> Table {
    let found = try source.prepare("SELECT name FROM pragma_table_info('\(view)') ORDER BY cid")
    var columns: [String] = []
    while try found.step() { columns.append("\"\(found.text(0))\"") }
    let list = columns.joined(separator: ", ")
    try target.execute("CREATE TABLE \(view)(\(list))")
    let places = columns.indices.map { "\($0 + 1)" }.joined(separator: ", ")
    let rows = try source.prepare("SELECT \(list) FROM \(view) ORDER BY \(places)")
    let marks = columns.map { _ in "?" }.joined(separator: ", ")
    let insert = try target.prepare("INSERT INTO \(view) VALUES(\(marks))")
    var rowCount = 0
    while try rows.step() {
      for index in columns.indices {
        insert.bind(Int32(index) + 1, column: Int32(index), of: rows)
      }
      try insert.run()
      rowCount += 1
    }
    return Table(name: view, rowCount: rowCount)
  }

  /// What a reader must know about the file: no clock, so that the same events give the same rows.
  private func about(in target: Database) throws(DatabaseError) -> Table {
    let progress = try Progress(source)
    var facts = [
      ("origin", identity.origin), ("ledger_id", "\(identity.id)"),
      ("events", "\(progress.position)"), ("root", Base64.text(progress.root.bytes)),
    ]
    if let lastEventAtMs = progress.lastEventAtMs {
      facts.append(("last_event_at", Timestamp.text(ms: lastEventAtMs)))
    }
    facts += [
      ("content", isAnonymous ? "anonymous" : "full"),
      ("amounts", "columns that end in _micros are millionths of the currency"),
      ("note", reportNote),
    ]
    try target.execute("CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    let insert = try target.prepare("INSERT INTO about VALUES(?, ?)")
    for (name, value) in facts {
      insert.bind(1, text: name)
      insert.bind(2, text: value)
      try insert.run()
    }
    return Table(name: "about", rowCount: facts.count)
  }
}
