// What an additional projection consists of: a name, a version, tables, a fold.
import Base
package import Ledger

/// A fold of the log into tables of its own, kept with the standard ones: in the same database, in the same
/// transactions, rebuilt and caught up with them. docs/projections.md builds one from nothing.
///
/// It must be a function of what it is given: a rebuild, and a catch-up in pieces of any size, must give the same
/// rows. `ledgerctl rebuild --check` proves it.
package protocol Projection: Sendable {
  /// Unique; the names of its tables and views should begin with it.
  var name: String { get }
  /// From 1. Raised with every change of a table, a view or the fold: a database with another one is rebuilt. A changed
  /// table or view is noticed without it, a changed fold is not.
  var version: Int { get }
  var tables: [TableDefinition] { get }
  /// What people query; may read the standard views and tables too.
  var views: [ViewDefinition] { get }

  /// Folds an event. Called once for each that is not malformed, in the order of positions.
  /// - Parameter data: the event's data as its type's current version has it, valid inside the call alone.
  func fold(_ event: EventLine, data: UnsafeRawBufferPointer, into rows: ProjectionRows) throws

  /// Folds the current state of a sale. Called at least once for each sale, and again when it has changed: what was
  /// written for it before must be replaced, so the sale's number belongs into the key.
  func fold(_ sale: FoldedSale, into rows: ProjectionRows) throws
}

extension Projection {
  package var views: [ViewDefinition] { [] }

  package func fold(
    _ event: EventLine, data: UnsafeRawBufferPointer, into rows: ProjectionRows
  ) throws {}

  package func fold(_ sale: FoldedSale, into rows: ProjectionRows) throws {}
}

/// A table of a projection.
package struct TableDefinition: Sendable {
  package let name: String
  /// Columns and constraints in SQL, with a primary key: what identifies a row is how rows are compared.
  package let columns: String

  package init(_ name: String, columns: String) { (self.name, self.columns) = (name, columns) }

  var sql: String { "CREATE TABLE \(name)(\(columns));\n" }
}

/// A view of a projection.
package struct ViewDefinition: Sendable {
  package let name: String
  /// The SELECT statement.
  package let select: String

  package init(_ name: String, select: String) { (self.name, self.select) = (name, select) }

  var sql: String { "CREATE VIEW \(name) AS \(select);\n" }
}

/// A value of a row.
package enum RowCell: Equatable, Sendable {
  case integer(Int64)
  case text(String)
  case null

  package static func integer(_ value: Int?) -> RowCell {
    value.map { .integer(Int64($0)) } ?? .null
  }
  package static func integer(_ value: Int64?) -> RowCell { value.map { .integer($0) } ?? .null }
  package static func text(_ value: String?) -> RowCell { value.map { .text($0) } ?? .null }
}

/// A sale, with the words of the reports (docs/revenue.md).
package struct FoldedSale: Sendable {
  /// A line of the journal.
  package struct Line: Sendable {
    /// `Sale`, `Return`, `Reversal`.
    package let type: String
    /// Epoch milliseconds.
    package let dateMs: Int64
    /// Signed.
    package let quantity: Int64
    /// Signed, in micros of the sale's currency; 0 where nothing was to pay, nil where unpriced.
    package let amountMicros: Int64?
    /// The event that gave the line.
    package let position: Position
  }

  /// From 0, in the order of first observation.
  package let number: Int
  package let environment: String
  package let bundleID: String
  package let productID: String
  /// `regular`, `offer`, `trial`, `family_shared`.
  package let kind: String
  /// Whether the customer pays a price for it: a regular sale, or one at an offer's price.
  package let isPaid: Bool
  package let quantity: Int64
  /// Epoch milliseconds.
  package let saleDateMs: Int64
  /// `ZZ` where unknown.
  package let countryCode: String
  package let userIdentifier: String?
  /// The verification that showed it first.
  package let firstPosition: Position
  /// Of the price; nil where unpriced.
  package let currency: String?
  /// The price of one unit.
  package let unitPriceMicros: Int64?
  /// Whether its last line is a Return.
  package let isCancelled: Bool
  /// The Sale line first.
  package let lines: [Line]
}

/// Takes the rows of a projection. They are written in batches, in parallel with the fold where that is faster.
package final class ProjectionRows {
  private struct Key: Hashable {
    let table: String
    let conflict: String?
    let count: Int
  }

  private let rows: RowWriter
  private var targets: [Key: RowTarget] = [:]

  init(_ rows: RowWriter) { self.rows = rows }

  /// Writes a row with a value for each column of the table; one with the same key is replaced.
  package func replace(in table: String, _ cells: [RowCell]) throws {
    try write(table, "INSERT OR REPLACE INTO", conflict: nil, cells)
  }

  /// Writes a row; where there is one with the same key, `update` determines the result, as
  /// `DO UPDATE SET uploads = uploads + excluded.uploads`.
  package func insert(in table: String, _ cells: [RowCell], onConflict update: String) throws {
    try write(table, "INSERT INTO", conflict: update, cells)
  }

  private func write(
    _ table: String, _ verb: String, conflict: String?, _ cells: [RowCell]
  ) throws(DatabaseError) {
    let key = Key(table: table, conflict: conflict, count: cells.count)
    let target: RowTarget
    if let known = targets[key] {
      target = known
    } else {
      // Without a condition SQLite would take ON CONFLICT for a part of the SELECT.
      let ending = conflict.map { " WHERE true ON CONFLICT \($0)" } ?? ""
      target = try rows.target(
        reading: "\(verb) \(table) SELECT \(RowTable.columns(cells.count)) FROM row_batch\(ending)",
        valueCount: cells.count)
      targets[key] = target
    }
    rows.begin(target)
    for cell in cells {
      switch cell {
      case .integer(let value): rows.add(value)
      case .null: rows.add(Int64?.none)
      case .text(var text): text.withUTF8 { rows.add(text: UnsafeRawBufferPointer($0)) }
      }
    }
    try rows.end()
  }
}

/// What a database was made with: tables that were changed without a new version would be read, or written to, as what
/// they are not.
struct ProjectionIdentity: Hashable, Sendable {
  let name: String
  let version: Int
  /// The SHA-256 of the statements that make its tables, indexes and views, in hexadecimal digits.
  let definition: String

  init(name: String, version: Int, definition: String) {
    (self.name, self.version, self.definition) = (name, version, definition)
  }

  /// - Parameter sql: the statements.
  init(name: String, version: Int, sql: String) {
    let digest = Array(sql.utf8).withUnsafeBytes { SHA256.hash($0) }
    self.init(name: name, version: version, definition: digest.hex)
  }
}

/// What a projector keeps: the standard projections and additional ones.
package struct ProjectionSet: Sendable {
  /// Without additional ones.
  package static let standard = ProjectionSet([])

  package let additional: [any Projection]

  /// - Parameter additional: with names that are neither each other's nor those of standard ones.
  package init(_ additional: [any Projection]) {
    self.additional = additional
    let names = versions.map(\.name)
    precondition(Set(names).count == names.count, "two projections have the same name")
  }

  /// Each projection's name and version, the standard ones first.
  package var versions: [(name: String, version: Int)] {
    Schema.versions + additional.map { ($0.name, $0.version) }
  }

  /// What each projection must be to be read or folded into, the standard ones first.
  var identities: [ProjectionIdentity] {
    Schema.identities
      + additional.map { projection in
        ProjectionIdentity(
          name: projection.name, version: projection.version,
          sql: projection.tables.map(\.sql).joined() + projection.views.map(\.sql).joined())
      }
  }

  /// The statements that create the tables of the additional ones.
  var tables: String { additional.flatMap(\.tables).map(\.sql).joined() }
  var views: String { additional.flatMap(\.views).map(\.sql).joined() }

  /// The tables of a projection, by which its rows are counted; empty for an unknown name.
  func tableNames(of name: String) -> [String] {
    Schema.tableNames[name] ?? additional.first { $0.name == name }?.tables.map(\.name) ?? []
  }
}
