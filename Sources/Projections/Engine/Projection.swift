// The interface of an additional projection (name, version, tables, fold), and how the standard fold drives it.
package import Base
package import Ledger
import Revenue

/// A fold of the log into additional tables. They share the database and transactions of the standard ones, and are
/// rebuilt and caught up with them. docs/projections.md builds one from nothing.
///
/// The fold must depend only on its input: a rebuild, and a catch-up in pieces of any size, must give the same rows.
/// `ledgerctl rebuild --check` verifies this.
package protocol Projection: Sendable {
  /// Unique. The names of its tables and views should begin with it.
  var name: String { get }
  /// From 1. Raise it with every change to a table, a view or the fold: a database with a different version is
  /// rebuilt. The program detects a changed table or view by itself, but not a changed fold.
  var version: Int { get }
  var tables: [TableDefinition] { get }
  /// Views for analysts. They may also read the standard views and tables.
  var views: [ViewDefinition] { get }

  /// Folds an event. Called once for each well-formed event, in position order.
  /// - Parameter data: the event's data in the current version of its type, valid only during the call.
  func fold(_ event: EventLine, data: UnsafeRawBufferPointer, into rows: ProjectionRows) throws

  /// Folds the current state of a sale. Called at least once for each sale, and again whenever it changes. Each call
  /// must replace what earlier calls wrote for the sale, so the key must contain the sale's number.
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
  /// Columns and constraints in SQL, with a primary key: rows are compared by it.
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

/// A sale, in the terms of the reports (docs/revenue.md).
package struct FoldedSale: Sendable {
  /// A line of the journal.
  package struct Line: Sendable {
    /// `Sale`, `Return`, `Reversal`.
    package let type: String
    /// Epoch milliseconds.
    package let dateMs: Int64
    /// Signed; 0 if a refund is of no whole unit.
    package let quantity: Int64
    /// Signed, in micros of the sale's currency; 0 if nothing was to be paid, nil if unpriced.
    package let amountMicros: Int64?
    /// The event that caused the line.
    package let position: Position
  }

  /// From 0, in the order of first observation.
  package let number: Int
  package let environment: String
  package let bundleID: String
  package let productID: String
  /// `regular`, `offer`, `trial`, `family_shared`.
  package let kind: String
  /// Whether the customer pays for it: a regular sale, or one at an offer's price.
  package let isPaid: Bool
  package let quantity: Int64
  /// Epoch milliseconds.
  package let saleDateMs: Int64
  /// The end of the period that the sale paid for, in epoch milliseconds; nil if it has no expiry (rule R13).
  package let periodEndMs: Int64?
  /// `ZZ` if unknown.
  package let countryCode: String
  package let userIdentifier: String?
  /// The event that first showed the sale.
  package let firstPosition: Position
  /// The currency of the price; nil if unpriced.
  package let currency: String?
  /// The price of one unit; rounded where Apple signed a price for several units.
  package let unitPriceMicros: Int64?
  /// Whether any of it is refunded.
  package let isCancelled: Bool
  /// The Sale line comes first.
  package let lines: [Line]
}

/// Receives the rows of a projection. They are written in batches, in parallel with the fold where that is faster.
package final class ProjectionRows {
  private struct Key: Hashable {
    let table: String
    let conflict: String?
    let count: Int
  }

  private let rows: RowWriter
  private var targets: [Key: RowTarget] = [:]

  init(_ rows: RowWriter) { self.rows = rows }

  /// Writes a row, with a value for each column of the table. Replaces a row with the same key.
  package func replace(in table: String, _ cells: [RowCell]) throws {
    try write(table, "INSERT OR REPLACE INTO", conflict: nil, cells)
  }

  /// Writes a row. If a row with the same key exists, `update` determines the result, as in
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
      // Without a condition, SQLite would parse ON CONFLICT as part of the SELECT.
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

/// The definition that made a projection's tables. If tables changed without a new version, the program would otherwise
/// misread them or write wrong rows.
package struct ProjectionIdentity: Hashable, Sendable {
  let name: String
  let version: Int
  /// The SHA-256, in hexadecimal, of the statements that create its tables, indexes and views.
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

/// The projections that a projector maintains: standard and additional ones.
package struct ProjectionSet: Sendable {
  /// The standard projections alone.
  package static let standard = ProjectionSet([])

  package let additional: [any Projection]

  /// - Parameter additional: projections with unique names, none of them a standard one's.
  package init(_ additional: [any Projection]) {
    self.additional = additional
    let names = versions.map(\.name)
    precondition(Set(names).count == names.count, "two projections have the same name")
  }

  /// Each projection's name and version, the standard ones first.
  package var versions: [(name: String, version: Int)] {
    Schema.versions + additional.map { ($0.name, $0.version) }
  }

  /// The identity that each projection must have to be read or folded into, the standard ones first.
  var identities: [ProjectionIdentity] {
    Schema.identities
      + additional.map { projection in
        ProjectionIdentity(
          name: projection.name, version: projection.version,
          sql: projection.tables.map(\.sql).joined() + projection.views.map(\.sql).joined())
      }
  }

  /// The statements that create the tables of the additional projections.
  var tables: String { additional.flatMap(\.tables).map(\.sql).joined() }
  var views: String { additional.flatMap(\.views).map(\.sql).joined() }

  /// The tables whose rows count as a projection's rows; empty for an unknown name.
  func tableNames(of name: String) -> [String] {
    Schema.tableNames[name] ?? additional.first { $0.name == name }?.tables.map(\.name) ?? []
  }
}

// MARK: - Errors

/// A failure of the projections: the operation and its cause.
package enum ProjectionError: ReportableError, CustomStringConvertible {
  case database(DatabaseError)
  case ledger(LedgerError)
  case event(position: Int, EventError)
  /// An event names an upload or a reply that the log does not have.
  case missingEvent(position: Int, names: Int)
  case file(operation: String, name: String, cause: String)
  /// A snapshot that cannot be used, by its name.
  case snapshot(name: String, cause: String)
  /// The projections' history differs from the log's.
  case anotherHistory(HistoryConflict)
  /// An invalid argument, such as an unknown time zone.
  case usage(String)
  /// The tables contradict each other: another program wrote to them.
  case inconsistent(String)
  /// The caller stopped the work.
  case interrupted
  /// The consumer wants no more output or cannot accept more.
  case output(any Error)

  package var description: String {
    switch self {
    case .database(let error): "projections: \(error)"
    case .ledger(let error): "\(error)"
    case .event(let position, let error): "reading the event at position \(position): \(error)"
    case .missingEvent(let position, let names):
      "reading the event at position \(position): it refers to position \(names), which is not such an event"
    case .file(let operation, let name, let cause): "\(operation) \(name): \(cause)"
    case .snapshot(let name, let cause): "\(name): \(cause)"
    case .anotherHistory(let conflict): "projections: \(conflict)"
    case .usage(let text): text
    case .inconsistent(let what):
      "projections: \(what); 'ledgerctl rebuild' rebuilds them from the log"
    case .interrupted: "interrupted"
    case .output(let error): "\(error)"
    }
  }

  /// The error that this one passes on.
  private var inner: (any ReportableError)? {
    switch self {
    case .ledger(let error): error
    case .database(let error): error
    case .output(let error): error.reportable
    default: nil
    }
  }

  package var exitCode: ExitCode {
    switch self {
    case .event(_, let error) where error.isOfLaterProgram: .newerFormat
    case .snapshot, .anotherHistory: .mismatch
    case .interrupted: .interrupted
    default: inner?.exitCode ?? .failed
    }
  }

  package func lines(for command: String) -> [String] {
    switch self {
    case .event(let position, let error) where error.isOfLaterProgram:
      ["\(command): position \(position): \(error)"]
    case .snapshot: ["\(command): snapshot \(self)"]
    case .file: [description]
    default: inner?.lines(for: command) ?? ["\(command): \(self)"]
    }
  }
}

// MARK: - Errors of the rules

/// Runs the rules, which throw the errors of their source of sales or their exception sink: here, database errors.
@inline(__always)
func byRules<Result>(_ body: () throws -> Result) throws(DatabaseError) -> Result {
  do { return try body() } catch let error as DatabaseError { throw error } catch {
    throw DatabaseError(operation: "applying the rules", cause: "\(error)", code: 0)
  }
}

// MARK: - Additional projections in the fold

/// Passes events and sales to the additional projections.
final class AdditionalFold {
  private let projections: [any Projection]
  private let rows: ProjectionRows
  private let symbols: StringInterner
  private let userIdentifier: (Int32) throws(DatabaseError) -> Text

  /// Nil if there are none, so that the fold has no cost for them.
  init?(
    _ projections: ProjectionSet, _ rows: RowWriter, _ symbols: StringInterner,
    userIdentifier: @escaping (Int32) throws(DatabaseError) -> Text
  ) {
    if projections.additional.isEmpty { return nil }
    self.projections = projections.additional
    self.rows = ProjectionRows(rows)
    self.symbols = symbols
    self.userIdentifier = userIdentifier
  }

  func fold(_ event: EventLine, _ data: Text) throws {
    for projection in projections { try projection.fold(event, data: data, into: rows) }
  }

  /// Passes on the sale at an index of the store.
  func fold(_ place: Int, of store: SaleStore) throws(DatabaseError) {
    let sale = try sale(store.sales[place], store)
    for projection in projections {
      do { try projection.fold(sale, into: rows) } catch let error as DatabaseError {
        throw error
      } catch {
        throw DatabaseError(
          operation: "folding a sale", cause: "projection \(projection.name): \(error)", code: 0)
      }
    }
  }

  private func sale(_ sale: Sale, _ store: SaleStore) throws(DatabaseError) -> FoldedSale {
    var lines: [FoldedSale.Line] = []
    try store.forEachJournalLine(of: sale) { line throws(DatabaseError) in
      lines.append(
        FoldedSale.Line(
          type: "\(line.type.word)", dateMs: line.dateMs, quantity: line.quantity,
          amountMicros: line.amountMicros, position: line.position))
    }
    return FoldedSale(
      number: sale.id, environment: symbols.string(sale.environment),
      bundleID: symbols.string(sale.bundle), productID: symbols.string(sale.product),
      kind: "\(sale.kind.word)", isPaid: sale.kind.isPaid, quantity: sale.quantity,
      saleDateMs: sale.saleDateMs, periodEndMs: sale.periodEndMs,
      countryCode: sale.country == .none ? "ZZ" : symbols.string(sale.country),
      userIdentifier: sale.user < 0
        ? nil : String(decoding: try userIdentifier(sale.user), as: UTF8.self),
      firstPosition: sale.firstPosition, currency: sale.price?.currency.description,
      unitPriceMicros: sale.price?.micros, isCancelled: sale.cancellationState == .returned,
      lines: lines)
  }
}
