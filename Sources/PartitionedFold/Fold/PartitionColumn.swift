// The columns of a table that a fold writes, and how their cells are encoded.
import JSON
import Projections

/// How the cells of a column are encoded; an empty cell has no bytes.
package enum PartitionContent: String {
  /// As it is.
  case text
  /// Decimal digits.
  case integer
  /// Micros, as decimal digits; the column `currency` has their currency.
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
    if name == "position" || name.hasSuffix("_position") {
      content = .position
    } else if name.hasSuffix("_positions") {
      content = .positions
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

  /// What a table has before them. An exception that is kept once per text has the scope `distinct`, and says when its
  /// event was recorded: of those that different partitions have, the first by time, ledger and position counts.
  package var leadingColumns: [PartitionColumn] {
    kind == .exceptions
      ? [PartitionColumn("scope", .text), PartitionColumn("recorded_at", .time)] : []
  }

  package var tableColumns: [PartitionColumn] { leadingColumns + reportColumns }
}

/// A table in the end of a stream, and in the answer to `--describe`.
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
