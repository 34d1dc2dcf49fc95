// Compares a table in two databases row by row, in the order of the key; and whole projections with a rebuild.
package import Ledger

/// The rows of one table or view that differ between two databases.
package struct TableDifference: Equatable, Sendable {
  package enum Change: String, Sendable { case added, removed, changed }

  /// A row that differs.
  package struct Row: Equatable, Sendable {
    package let change: Change
    /// The columns that identify the row, with their values. Texts that may name a user are omitted.
    package let key: [(column: String, value: String)]
    /// The columns that differ, with their values if these are integers.
    package let columns: [Column]

    package static func == (left: Row, right: Row) -> Bool {
      left.change == right.change && left.columns == right.columns
        && left.key.elementsEqual(right.key) { $0 == $1 }
    }
  }

  package struct Column: Equatable, Sendable {
    package let name: String
    /// Nil if the value is not an integer. The same holds for `after`.
    package let before: Int64?
    package let after: Int64?
  }

  package let name: String
  /// Nil if the older database does not have the table.
  package let rowsBefore: Int?
  /// Nil if the newer database does not have the table.
  package let rowsAfter: Int?
  package fileprivate(set) var added = 0
  package fileprivate(set) var removed = 0
  package fileprivate(set) var changed = 0
  /// Columns that only one of the databases has; they are not compared.
  package let addedColumns: [String]
  package let removedColumns: [String]
  /// The number of rows in which each column differs, by column name.
  package fileprivate(set) var changedColumns: [String: Int] = [:]
  /// The first rows that differ.
  package fileprivate(set) var rows: [Row] = []

  var isInBoth: Bool { rowsBefore != nil && rowsAfter != nil }

  package var isEmpty: Bool {
    added + removed + changed == 0 && addedColumns.isEmpty && removedColumns.isEmpty
      && isInBoth
  }
}

/// Compares tables of two databases. Memory use does not grow with the size of the tables.
struct TableComparison {
  /// Columns that help to identify a row if its table has no key.
  private static let telling = [
    "type", "exception", "sale", "position", "ordinal", "environment", "bundle",
  ]

  let older: Database
  let newer: Database
  /// The maximum number of rows to keep for each table.
  let rowLimit: Int
  let isCancelled: () -> Bool

  /// Compares one table or view.
  /// - Parameter key: the columns that identify a row; nil uses the table's primary key. Without a key, whole rows
  ///   are compared.
  func compare(_ name: String, key: [String]? = nil) throws(ProjectionError) -> TableDifference {
    let result: TableDifference
    do throws(DatabaseError) { result = try difference(name, key) } catch {
      throw .database(error)
    }
    // A comparison that was cancelled may have missed differences.
    if isCancelled() { throw .interrupted }
    return result
  }

  private func difference(
    _ name: String, _ key: [String]?
  ) throws(DatabaseError) -> TableDifference {
    let before = try Self.columns(of: name, in: older)
    let after = try Self.columns(of: name, in: newer)
    var result = TableDifference(
      name: name, rowsBefore: before.isEmpty ? nil : try count(name, older),
      rowsAfter: after.isEmpty ? nil : try count(name, newer),
      addedColumns: before.isEmpty ? [] : after.names.filter { !before.names.contains($0) },
      removedColumns: after.isEmpty ? [] : before.names.filter { !after.names.contains($0) })
    if before.isEmpty || after.isEmpty {
      result.added = result.rowsAfter ?? 0
      result.removed = result.rowsBefore ?? 0
      return result
    }
    let common = after.names.filter(before.names.contains)
    var keys = key ?? (before.keys == after.keys ? after.keys : [])
    if !keys.allSatisfy(common.contains) { keys = [] }
    let isKeyless = keys.isEmpty
    if isKeyless { keys = common }
    let others = common.filter { !keys.contains($0) }
    let shown = isKeyless ? Self.telling.filter(common.contains) : keys
    var merge = TableMerge(
      keys: keys, others: others, shown: shown, rowLimit: rowLimit, result: result)
    try merge.run(
      try rows(of: name, keys, others, isUnique: key == nil, in: older),
      try rows(of: name, keys, others, isUnique: key == nil, in: newer),
      isCancelled)
    return merge.result
  }

  /// The names of the tables or views in either database, sorted, without `Schema.ownTables`.
  func names(ofType type: String) throws(ProjectionError) -> [String] {
    var names: Set<String> = []
    do throws(DatabaseError) {
      for database in [older, newer] {
        names.formUnion(try Self.definitions(of: type, database).keys)
      }
    } catch { throw .database(error) }
    return names.sorted()
  }

  /// The names of tables, indexes and views with different definitions. A table or view must be in both databases; an
  /// index may be in only one.
  func definitions() throws(ProjectionError) -> [String] {
    var names: [String] = []
    do throws(DatabaseError) {
      for type in ["table", "index", "view"] {
        let before = try Self.definitions(of: type, older)
        let after = try Self.definitions(of: type, newer)
        // A table or view that only one database has is reported with its rows.
        let known = type == "index" ? Set(before.keys).union(after.keys) : Set(before.keys)
        for name in known where before[name] != after[name] {
          if type == "index" || after[name] != nil { names.append(name) }
        }
      }
    } catch { throw .database(error) }
    return names.sorted()
  }

  /// The definitions of tables, indexes or views by name, without `Schema.ownTables`, which do not follow from
  /// events.
  static func definitions(
    of type: String, _ database: Database
  ) throws(DatabaseError) -> [String: String] {
    let rows = try database.prepare(
      """
      SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = ?
      AND substr(name, 1, 7) <> 'sqlite_'
      """)
    rows.bind(1, text: type)
    var result: [String: String] = [:]
    while try rows.step() { result[rows.text(0)] = rows.text(1) }
    for name in Schema.ownTables { result[name] = nil }
    return result
  }

  struct Columns {
    var names: [String] = []
    /// The columns of the primary key, in the key's order.
    var keys: [String] = []
    var isEmpty: Bool { names.isEmpty }
  }

  static func columns(of name: String, in database: Database) throws(DatabaseError) -> Columns {
    let rows = try database.prepare("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid")
    rows.bind(1, text: name)
    var result = Columns()
    var keys: [(place: Int64, name: String)] = []
    while try rows.step() {
      result.names.append(rows.text(0))
      if rows.integer(1) > 0 { keys.append((rows.integer(1), rows.text(0))) }
    }
    result.keys = keys.sorted { $0.place < $1.place }.map(\.name)
    return result
  }

  private func count(_ name: String, _ database: Database) throws(DatabaseError) -> Int {
    Int(try database.integer("SELECT count(*) FROM \(Self.quoted(name))") ?? 0)
  }

  private func rows(
    of name: String, _ keys: [String], _ others: [String], isUnique: Bool, in database: Database
  ) throws(DatabaseError) -> Statement {
    let columns = (keys + others).map(Self.quoted).joined(separator: ", ")
    // A key that may not be unique can match several rows. Sorting by the other columns too gives both databases the
    // same order.
    let order = (isUnique ? keys : keys + others).map(Self.quoted).joined(separator: ", ")
    return try database.prepare(
      "SELECT \(columns) FROM \(Self.quoted(name)) ORDER BY \(order)")
  }

  /// Quotes a name, because another program may have written it to the file.
  static func quoted(_ name: String) -> String {
    "\"\(name.replacing("\"", with: "\"\""))\""
  }
}

/// Merges two sorted lists of rows and records the differences.
private struct TableMerge {
  let keys: [String]
  let others: [String]
  let shown: [String]
  let rowLimit: Int
  var result: TableDifference
  private let packing = ReplyPacking()

  init(
    keys: [String], others: [String], shown: [String], rowLimit: Int, result: TableDifference
  ) {
    (self.keys, self.others, self.shown) = (keys, others, shown)
    (self.rowLimit, self.result) = (rowLimit, result)
  }

  mutating func run(
    _ before: Statement, _ after: Statement, _ isCancelled: () -> Bool
  ) throws(DatabaseError) {
    var hasBefore = try before.step()
    var hasAfter = try after.step()
    while hasBefore || hasAfter, !isCancelled() {
      let order = hasBefore && hasAfter ? order(before, after) : hasBefore ? -1 : 1
      if order < 0 {
        result.removed += 1
        note(.removed, before)
        hasBefore = try before.step()
      } else if order > 0 {
        result.added += 1
        note(.added, after)
        hasAfter = try after.step()
      } else {
        compare(before, after)
        hasBefore = try before.step()
        hasAfter = try after.step()
      }
    }
  }

  private func order(_ before: Statement, _ after: Statement) -> Int {
    for index in keys.indices {
      let order = before.order(of: Int32(index), against: after)
      if order != 0 { return order }
    }
    return 0
  }

  private mutating func compare(_ before: Statement, _ after: Statement) {
    var columns: [TableDifference.Column] = []
    for (place, name) in others.enumerated() {
      let index = Int32(keys.count + place)
      if isSame(name, index, before, after) { continue }
      result.changedColumns[name, default: 0] += 1
      columns.append(
        .init(name: name, before: before.wholeNumber(index), after: after.wholeNumber(index)))
    }
    if columns.isEmpty { return }
    result.changed += 1
    note(.changed, after, columns)
  }

  private func isSame(
    _ column: String, _ index: Int32, _ before: Statement, _ after: Statement
  ) -> Bool {
    if before.order(of: index, against: after) == 0 { return true }
    guard ReplyPacking.packs(column, of: result.name),
      let one = try? packing.unpacked(before.bytes(index)),
      let other = try? packing.unpacked(after.bytes(index))
    else { return false }
    return one == other
  }

  private mutating func note(
    _ change: TableDifference.Change, _ row: Statement, _ columns: [TableDifference.Column] = []
  ) {
    if result.rows.count >= rowLimit { return }
    var key: [(column: String, value: String)] = []
    for name in shown {
      guard let place = keys.firstIndex(of: name) else { continue }
      if let number = row.wholeNumber(Int32(place)) {
        key.append((name, "\(number)"))
      } else if !row.isNull(Int32(place)), !name.contains("user") {
        key.append((name, row.text(Int32(place))))
      }
    }
    result.rows.append(.init(change: change, key: key, columns: columns))
  }
}

// MARK: - Comparison with a rebuild

/// What a rebuild would change.
package struct ProjectionComparison: Sendable {
  /// The number of events that both have folded.
  package let position: Position
  /// Whether the current projections match the log's history.
  package let isOfThisLog: Bool
  package let versions: [ProjectionStatus.Version]
  /// The names of tables, indexes and views whose definitions differ, sorted.
  package let definitions: [String]
  /// All tables, sorted by name.
  package let tables: [TableDifference]
  /// All views, sorted by name; empty if the scope leaves them out.
  package let views: [TableDifference]
  /// Nil if the scope leaves it out, or if there is no `journal_view` to read it from.
  package let revenue: RevenueDifference?

  package var isSameVersions: Bool { versions.allSatisfy(\.isCurrent) }

  /// Whether a rebuild would change nothing.
  package var isEmpty: Bool {
    isOfThisLog && isSameVersions && definitions.isEmpty && tables.allSatisfy(\.isEmpty)
      && views.allSatisfy(\.isEmpty) && revenue?.isEmpty ?? true
  }
}

extension Projector {
  /// What to compare in addition to the tables.
  package enum ComparisonScope: Sendable {
    /// Only the tables: with the same versions, the views follow from them.
    case tables
    /// Also the views that people query, and the revenue of production.
    case everything
  }

  /// Builds the projections from nothing up to the position of the current ones, compares the two, and removes what
  /// it built. The current projections stay in use. They are read in one consistent state, even while events are
  /// being folded into them.
  /// - Parameter rowLimit: the maximum number of rows to keep for each table, and of sales for each row.
  /// - Returns: nil if no projections are in use.
  package func compare(
    _ scope: ComparisonScope, rowLimit: Int = 10
  ) throws(ProjectionError) -> ProjectionComparison? {
    guard generations.current != nil else { return nil }
    let older = try open()
    do {
      try older.execute("BEGIN")
      let progress = try Progress(older)
      if progress.position > reader.head.size { try reader.refresh() }
      let position = min(progress.position, reader.head.size)
      let scratch = try scratchFromNothing(at: position)
      // The file is removed when `scratch` is released.
      defer { withExtendedLifetime(scratch) {} }
      return try compare(older, scratch.path, progress, scope, rowLimit)
    } catch { throw Self.projectionError(error) }
  }

  private func compare(
    _ older: Database, _ path: String, _ progress: Progress, _ scope: ComparisonScope,
    _ rowLimit: Int
  ) throws(ProjectionError) -> ProjectionComparison {
    do {
      let newer = try Database(path: path, mode: .read)
      let comparison = TableComparison(
        older: older, newer: newer, rowLimit: rowLimit, isCancelled: observer.isCancelled)
      var tables: [TableDifference] = []
      for name in try comparison.names(ofType: "table") {
        tables.append(try comparison.compare(name))
      }
      var views: [TableDifference] = []
      var revenue: RevenueDifference?
      if scope == .everything {
        for name in try comparison.names(ofType: "view") {
          views.append(try comparison.compare(name, key: Schema.viewKeys[name] ?? []))
        }
        if views.first(where: { $0.name == "journal_view" })?.isInBoth == true {
          revenue = try RevenueDifference(
            from: older, to: newer, saleLimit: rowLimit, isCancelled: observer.isCancelled)
        }
      }
      return ProjectionComparison(
        position: min(progress.position, reader.head.size), isOfThisLog: rests(progress),
        versions: try versions(older), definitions: try comparison.definitions(),
        tables: tables, views: views, revenue: revenue)
    } catch { throw Self.projectionError(error) }
  }
}

extension Schema {
  /// The columns that identify a row of each view. Views without such columns are not listed.
  static let viewKeys = [
    "app_view": ["app_family_id"], "receipt_view": ["receipt_id"], "upload_view": ["position"],
    "verification_view": ["position"], "user_view": ["user_identifier"],
    "sale_view": ["environment", "bundle_id", "sale_key"],
    "journal_view": ["environment", "bundle_id", "sale_key", "ordinal"],
    "price_view": ["position", "ordinal"], "rate_view": ["position", "ordinal"],
  ]
}
