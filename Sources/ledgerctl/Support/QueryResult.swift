// The rows of a query, in any format.
import Base
import JSON
import Ledger
import Projections
import ReportDocuments

/// Passes the rows of a statement to a writer.
struct QueryResult {
  /// The ledger and the events that the rows rest on.
  struct Source {
    let identity: LedgerIdentity
    let head: (size: Int, root: SHA256Digest)
    /// Nil without events.
    let lastEventAtMs: Int64?
    let statement: String

    /// What the second sheet of an Excel file says.
    fileprivate var facts: [SpreadsheetAbout.Fact] {
      [
        .init("Ledger", identity.origin), .init("Ledger id", "\(identity.id)"),
        .init("Events", "\(head.size)"), .init("Root", head.root.base64),
        .init("Last event", lastEventAtMs.map { timeText($0) } ?? "none"),
        .init("Statement", statement),
      ]
    }
  }

  private let statement: SQLStatement
  private let rowsMax: Int

  init(_ statement: SQLStatement, rowsMax: Int) {
    self.statement = statement
    self.rowsMax = rowsMax
  }

  /// A writer of a format.
  /// - Parameter source: nil for a list that rests on no ledger.
  static func writer(
    _ format: ExportOptions.Format, _ source: Source?, to output: Output, _ context: Context
  ) throws -> any ReportWriter {
    let sink: (UnsafeRawBufferPointer) throws -> Void = { bytes in
      try context.interruption.check()
      try output.write(bytes)
    }
    switch format {
    case .csv: return CSVReportWriter(sink)
    case .ndjson: return JSONReportWriter(heading: nil, sink)
    case .json: return QueryJSONWriter(source, sink)
    case .table: return QueryTableWriter(to: output, context)
    case .xlsx:
      var about = SpreadsheetAbout(
        sheetName: "query", title: "Receipt Ledger: query", facts: source?.facts ?? [],
        zone: .utc, createdAtMs: source?.lastEventAtMs ?? 0)
      // A query's rows may be of anything.
      about.note = nil
      return try SpreadsheetReportWriter(
        about, check: { try context.interruption.check() }, sink)
    }
  }

  /// Writes all rows. Throws if there are too many.
  func write(to writer: any ReportWriter, _ context: Context) throws {
    var summary = ReportSummary()
    try writer.begin(statement.columns.map { ReportColumn($0) })
    while try statement.step() {
      if summary.rowCount == rowsMax {
        throw Failure(
          operation: "query", object: "SQL",
          cause: "it has more than \(counted(rowsMax, "row")) (--rows-max); LIMIT shows the first")
      }
      for index in statement.columns.indices { try Self.write(statement.value(index), to: writer) }
      try writer.endRow()
      summary.rowCount += 1
    }
    try writer.end(summary)
  }

  private static func write(_ value: SQLValue, to writer: any ReportWriter) throws {
    switch value {
    case .null: try writer.write(.empty)
    case .integer(let number): try writer.write(.integer(number))
    case .real(let number): try writer.write(.real(number))
    case .text(let bytes) where bytes.allSatisfy({ $0 < 0x80 }): try writer.write(.text(bytes))
    case .text(let bytes):
      // A statement can make a text of any bytes.
      var text = String(decoding: bytes, as: UTF8.self)
      try text.withUTF8 { try writer.write(.text(UnsafeRawBufferPointer($0))) }
    case .blob(let bytes):
      var text = Hex.text(bytes)
      try text.withUTF8 { try writer.write(.text(UnsafeRawBufferPointer($0))) }
    }
  }
}

/// Collects rows and writes them aligned; a column is of numbers if no text is in it.
private final class QueryTableWriter: ReportWriter {
  /// The text that it holds at most.
  private static let bytesMax = 256 << 20
  private let output: Output
  private let context: Context
  private var columns: [(name: String, isNumber: Bool)] = []
  private var rows: [[String]] = []
  private var cells: [String] = []
  private var byteCount = 0

  init(to output: Output, _ context: Context) {
    self.output = output
    self.context = context
  }

  func begin(_ columns: [ReportColumn]) { self.columns = columns.map { ($0.name, true) } }

  func write(_ cell: ReportCell) throws {
    switch cell {
    case .empty: cells.append("")
    case .integer(let value): cells.append("\(value)")
    case .real(let value): cells.append(ReportCell.text(value))
    case .text(let bytes):
      columns[cells.count].isNumber = false
      cells.append(String(decoding: bytes, as: UTF8.self))
    default: preconditionFailure("a query has no such cell")
    }
    byteCount += cells.last?.utf8.count ?? 0
    if byteCount > Self.bytesMax {
      throw Failure(
        operation: "query", object: "SQL",
        cause: "it has more than \(Self.bytesMax >> 20) MiB of text, too much for a table")
    }
  }

  func endRow() throws {
    try context.interruption.check()
    rows.append(cells)
    cells.removeAll(keepingCapacity: true)
  }

  func end(_ summary: ReportSummary) throws {
    var table = TextTable(columns.map { TextTable.Column(visible($0.name), isNumber: $0.isNumber) })
    for row in rows { table.append(row) }
    var sheet = Sheet(context, to: output)
    try sheet.table(table)
  }
}

/// One JSON text: the ledger and the head that the rows rest on, and the rows.
private final class QueryJSONWriter: ReportWriter {
  private static let limitBytes = 1 << 16
  private let source: QueryResult.Source?
  private let sink: (UnsafeRawBufferPointer) throws -> Void
  private var writer = JSONWriter()
  private var bytes: [UInt8] = []
  private var columns: [String] = []
  private var column = 0
  private var rowCount = 0

  init(_ source: QueryResult.Source?, _ sink: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.source = source
    self.sink = sink
  }

  func begin(_ columns: [ReportColumn]) {
    self.columns = columns.map(\.name)
    var lines = JSONLines()
    if let source {
      lines.add("ledger") { writer in
        writer.beginObject()
        writer.member("origin", source.identity.origin)
        writer.member("id", "\(source.identity.id)")
        writer.endObject()
      }
      lines.add("head") { writer in
        writer.beginObject()
        writer.member("size", source.head.size)
        writer.member("root", source.head.root.base64)
        writer.endObject()
      }
    }
    lines.add("columns") { writer in
      writer.beginArray()
      for name in self.columns { writer.string(name) }
      writer.endArray()
    }
    bytes = lines.bytes
    // The rows continue the object.
    while let last = bytes.last, last == 0x0A || last == UInt8(ascii: "}") { bytes.removeLast() }
    bytes += Array(",\n\"rows\":[".utf8)
  }

  func write(_ cell: ReportCell) {
    if column == 0 {
      writer.removeAll()
      writer.beginObject()
    }
    writer.key(columns[column])
    column += 1
    switch cell {
    case .empty: writer.null()
    case .integer(let value): writer.integer(value)
    case .real(let value):
      let text = ReportCell.text(value)
      if value.isFinite {
        Array(text.utf8).withUnsafeBytes { writer.raw($0) }
      } else {
        writer.string(text)
      }
    case .text(let text): writer.string(text)
    default: preconditionFailure("a query has no such cell")
    }
  }

  func endRow() throws {
    writer.endObject()
    bytes += Array(rowCount > 0 ? ",\n".utf8 : "\n".utf8)
    bytes += writer.bytes
    column = 0
    rowCount += 1
    if bytes.count >= Self.limitBytes { try flush() }
  }

  private func flush() throws {
    try bytes.withUnsafeBytes(sink)
    bytes.removeAll(keepingCapacity: true)
  }

  func end(_ summary: ReportSummary) throws {
    bytes += Array("\(rowCount > 0 ? "\n" : "")],\n\"row_count\":\(rowCount)\n}\n".utf8)
    try flush()
  }
}
