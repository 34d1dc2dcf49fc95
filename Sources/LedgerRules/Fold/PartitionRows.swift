// Writes a report's rows as a table for Spark, with positions of ledgers; its columns and filters.
import Base
import Ledger
import Projections
import Revenue

/// Encodes the cells of one report, each according to its column's `PartitionContent`.
final class PartitionRows: ReportWriter {
  private static let oncePerText = Set(
    ExceptionType.allCases.filter(\.isOncePerText).map { Array($0.word.utf8) })

  private let events: PartitionEvents
  private let table: RowTable
  private let columns: [PartitionColumn]
  private let isOfExceptions: Bool
  /// The cells of the current row, and the end of each.
  private var bytes: [UInt8] = []
  private var ends: [Int] = []
  /// The position in the row's position cell.
  private var position: Position?
  private(set) var rowCount = 0

  init(_ request: ReportRequest, _ events: PartitionEvents, _ table: RowTable) {
    self.events = events
    self.table = table
    columns = request.reportColumns
    isOfExceptions = request.kind == .exceptions
  }

  func begin(_ columns: [ReportColumn]) throws {
    precondition(columns.map(\.name) == self.columns.map(\.name), "a report has other columns")
  }

  func write(_ cell: ReportCell) throws {
    let content = columns[ends.count].content
    switch cell {
    case .empty: break
    case .text(let text):
      if let shown = events.shown(text) {
        bytes.append(contentsOf: shown)
      } else {
        bytes.append(contentsOf: text)
      }
    case .word(let word):
      bytes.append(
        contentsOf: UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    case .currency(let currency): currency.append(to: &bytes)
    case .integer(let value) where content == .position:
      position = Int(value)
      appendPlace(Int(value))
    case .integer(let value), .time(let value): bytes.append(contentsOf: String(value).utf8)
    case .amount(let micros, _): bytes.append(contentsOf: String(micros).utf8)
    case .amounts(let sums): append(sums)
    case .flag(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
    case .list(let texts): append(texts)
    case .integers(let positions): append(positions)
    case .decimal(let digits): bytes.append(contentsOf: digits.utf8)
    case .real: preconditionFailure("reports have no binary numbers")
    }
    ends.append(bytes.count)
  }

  private func appendPlace(_ position: Position) {
    bytes.append(contentsOf: String(events.ledger(of: position)).utf8)
    bytes.append(UInt8(ascii: ":"))
    bytes.append(contentsOf: String(events.ledgerPosition(of: position)).utf8)
  }

  private func append(_ sums: [Currency: Int128]) {
    if sums.isEmpty { return }
    var writer = JSONWriter()
    writer.beginObject()
    for (currency, micros) in sums.sorted(by: { $0.key < $1.key }) {
      writer.key(currency.description)
      writer.string(String(micros))
    }
    writer.endObject()
    bytes.append(contentsOf: writer.bytes)
  }

  private func append(_ texts: [UnsafeRawBufferPointer]) {
    if texts.isEmpty { return }
    var writer = JSONWriter()
    writer.beginArray()
    for text in texts {
      if let shown = events.shown(text) {
        shown.withUnsafeBytes { writer.string($0) }
      } else {
        writer.string(text)
      }
    }
    writer.endArray()
    bytes.append(contentsOf: writer.bytes)
  }

  private func append(_ positions: [Int64]) {
    if positions.isEmpty { return }
    for (ordinal, position) in positions.enumerated() {
      bytes.append(contentsOf: (ordinal == 0 ? "[\"" : ",\"").utf8)
      appendPlace(Int(position))
      bytes.append(UInt8(ascii: "\""))
    }
    bytes.append(UInt8(ascii: "]"))
  }

  func endRow() throws {
    precondition(ends.count == columns.count, "a row has another number of cells")
    if isOfExceptions { try writeScope() }
    bytes.withUnsafeBytes { bytes in
      var start = 0
      for end in ends {
        table.append(quoted: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        start = end
      }
    }
    try table.endRow()
    bytes.removeAll(keepingCapacity: true)
    ends.removeAll(keepingCapacity: true)
    position = nil
    rowCount += 1
  }

  private func writeScope() throws {
    guard Self.oncePerText.contains(Array(bytes[..<ends[0]])), let position else {
      table.append("".utf8)
      return table.append("".utf8)
    }
    let recordedAtMs = try events.line(at: position).withUnsafeBytes { EventLine($0)?.recordedAtMs }
    guard let recordedAtMs else { preconditionFailure("a line that was folded is an event") }
    table.append("distinct".utf8)
    table.append(recordedAtMs)
  }

  func end(_ summary: ReportSummary) throws {}
}

// MARK: - Columns

/// How the cells of a column are encoded; an empty cell has no bytes.
package enum PartitionContent: String {
  /// Unchanged.
  case text
  /// Decimal digits.
  case integer
  /// Micros, as decimal digits; the column `currency` has their currency, of `original_amount` `original_currency`.
  case amount
  /// A JSON object: micros, as texts of decimal digits, by currency.
  case amounts
  /// Epoch milliseconds, as decimal digits.
  case time
  /// `true` or `false`.
  case flag
  /// A JSON array of texts.
  case list
  /// The index of a ledger, `:`, a position.
  case position
  /// A JSON array of such texts.
  case positions
}

/// A column of a table.
package struct PartitionColumn: Equatable {
  package let name: String
  package let content: PartitionContent

  init(_ name: String, _ content: PartitionContent) {
    self.name = name
    self.content = content
  }

  fileprivate init(_ column: ReportColumn, of kind: ReportKind) {
    name = column.name
    if name.hasSuffix("_positions") || name == "rate_position" {
      content = .positions
    } else if name == "position" || name.hasSuffix("_position") {
      content = .position
    } else if kind == .users, name == "net" {
      // The report declares it as a text.
      content = .amounts
    } else {
      content =
        switch column.content {
        case .text: .text
        case .integer: .integer
        case .amount: .amount
        case .time: .time
        case .flag: .flag
        case .list: .list
        }
    }
  }
}

extension ReportRequest {
  /// The report's own columns.
  package var reportColumns: [PartitionColumn] { columns.map { PartitionColumn($0, of: kind) } }

  /// The columns before the report's own. An exception that is kept once per text has the scope `distinct` and the time
  /// when its event was recorded: if several partitions have it, the first by time, ledger and position counts.
  package var leadingColumns: [PartitionColumn] {
    kind == .exceptions
      ? [PartitionColumn("scope", .text), PartitionColumn("recorded_at", .time)] : []
  }

  package var tableColumns: [PartitionColumn] { leadingColumns + reportColumns }
}

/// A table in the end of a stream, and in the output of `--describe`.
struct PartitionTable {
  let request: ReportRequest
  /// Nil if no rows were written.
  var rowCount: Int?

  func write(to writer: inout JSONWriter) {
    let columns = request.tableColumns
    writer.beginObject()
    writer.member("kind", request.kind.rawValue)
    writer.member("columns", columns.map(\.name))
    writer.member("content", columns.map(\.content.rawValue))
    writer.member("rows", ifPresent: rowCount)
    writer.endObject()
  }

  static func write(_ tables: [PartitionTable], to writer: inout JSONWriter) {
    writer.key("tables")
    writer.beginArray()
    for table in tables { table.write(to: &writer) }
    writer.endArray()
    writer.key("report_versions")
    writer.beginObject()
    for kind in ReportKind.allCases where tables.contains(where: { $0.request.kind == kind }) {
      writer.key(kind.rawValue)
      writer.integer(kind.version)
    }
    writer.endObject()
  }
}

// MARK: - Filters

enum PartitionFilters {
  /// Refuses members that this program does not know: a mistyped one would be ignored.
  static func check(_ filters: JSONValue, of kind: ReportKind) throws(TaskError) {
    guard case .object(let members) = filters else { throw TaskError("filters are not an object") }
    for key in members.map(\.key) {
      guard let option = ReportOption(rawValue: key) else {
        throw TaskError("the filter '\(key)' is unknown")
      }
      if option.isOfWholeReports {
        throw TaskError("the filter '\(key)' applies to whole reports, not to those of partitions")
      }
    }
    if let key = members.map(\.key).firstRepeated {
      throw TaskError("the filter '\(key)' is given twice")
    }
  }

  /// Rejects reports whose rows cannot be combined from partitions.
  static func check(_ request: ReportRequest) throws(TaskError) {
    if request.isByMonth {
      throw TaskError("subscriptions by month cannot be put together from partitions")
    }
    if request.kind.isOfSettlement {
      throw TaskError("Apple's reports are those of one ledger, and not in partitions")
    }
    // The first of equal exceptions decides whether a filter shows them, and it may be in another partition.
    guard request.kind == .exceptions else { return }
    if request.from != nil || request.to != nil || !request.filter.isEmpty {
      throw TaskError("exceptions of partitions can be filtered by environment alone")
    }
  }
}
