// `query`: the user's own SQL over the projections.
import Base
import Glibc
import Intake
import Ledger
import Projections
import ReportDocuments

let queryCommand = Command(
  "query", summary: "Ask the projections in SQL",
  details: [
    "Runs one SQL statement of SQLite that reads the projections. docs/projections.md describes the stable "
      + "views, such as `sale_view` and `journal_view`, docs/reports.md the limits and what is refused. All rows "
      + "are of one moment.",
    "If a limit is reached, the exit code is 1, and FILE is not replaced; after a mistake in the statement "
      + "it is 2. No message shows a text of the statement, because it may name a user. Amounts are integer "
      + "micros. CSV marks texts as `export` does.",
  ],
  positionals: [
    Positional("SQL", arity: .optional, help: "the statement; `-` reads it from standard input")
  ],
  options: [
    Option("schema", help: "list the views and their columns instead"),
    .asOf,
    Option(
      "time-max", value: .init("SECONDS", standard: String(QueryOptions.timeMaxStandard)),
      help: "how long SQLite may work"),
    Option(
      "rows-max", value: .init("N", standard: String(QueryOptions.rowsMaxStandard)),
      help: "more rows are an error; a table may have \(QueryOptions.tableRowsMax) at most"),
    Option(
      "format", value: .init("FORMAT", allowed: ExportOptions.Format.namesOfRows),
      help: "the output format"),
    Option(
      "output", short: "o", value: .init("FILE"),
      help: "write to FILE"),
    .noPager,
  ],
  examples: [
    Example(
      "ledgerctl query 'SELECT product_id, count(*) AS sales FROM sale_view GROUP BY product_id'",
      "Count the sales of each product")
  ],
  isReadOnly: true
) { invocation, context in
  let options = try QueryOptions(invocation)
  let schema = try SQLSchema(.ofProgram)
  guard let sql = try options.sql(schema) else {
    try withDestination(options.outputPath, context) { output in
      try writeSchema(schema, options, to: output, context)
    }
    return .done
  }
  try runQuery(sql, options, invocation, context)
  return .done
}

/// The options of `query`.
struct QueryOptions: Equatable, Sendable {
  static let timeMaxStandard = 60
  static let rowsMaxStandard = 1_000_000
  /// A table is held in memory until its widths are known.
  static let tableRowsMax = 100_000

  /// Nil lists the schema.
  let statement: String?
  let timeMaxMs: Int64
  let rowsMax: Int
  let format: ExportOptions.Format
  /// Nil is standard output.
  let outputPath: String?
  let asOf: PointInTime?

  init(_ invocation: Invocation) throws(UsageError) {
    statement = invocation.positionals.first
    if invocation.has("schema") {
      if statement != nil { throw UsageError("--schema", "takes no statement") }
    } else if statement == nil {
      throw UsageError("SQL", "is missing")
    }
    let seconds = try invocation.value("time-max", "is not a number of seconds from 1 to 86400") {
      positionValue($0).flatMap { (1...86_400).contains($0) ? $0 : nil }
    }
    timeMaxMs = Int64(seconds ?? Self.timeMaxStandard) * 1000
    let rows = try invocation.value("rows-max", "is not a number from 1") {
      positionValue($0).flatMap { $0 > 0 ? $0 : nil }
    }
    outputPath = invocation.outputPath
    format = try ExportOptions.format(invocation, outputPath)
    let rowsMax = rows ?? Self.rowsMaxStandard
    self.rowsMax = format == .table ? min(rowsMax, Self.tableRowsMax) : rowsMax
    asOf = try invocation.asOf()
    if format == .xlsx, outputPath == nil {
      throw UsageError("--format xlsx", "requires --output FILE")
    }
  }

  /// The statement, checked before any data is touched; nil if the schema is to be listed.
  func sql(_ schema: SQLSchema) throws -> String? {
    guard let statement else { return nil }
    var sql = statement
    if statement == "-" {
      let bytes = try readSmallFile("-", byteCountMax: SQLLimits.statementBytes)
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw UsageError("SQL", "is not UTF-8")
      }
      sql = text
    }
    do { try schema.check(sql) } catch let error as SQLError {
      guard error.kind == .statement else { throw error.failure }
      let names = try schema.views().flatMap { [$0.name] + $0.columns }
      throw UsageError(
        "SQL", error.cause + (error.unknownName.map { hint(for: $0, among: names) } ?? ""))
    }
    return sql
  }
}

extension SQLError {
  /// The error of a query that did not run to its end.
  fileprivate var failure: any Error {
    switch kind {
    case .cancelled: Interrupted()
    case .time: Failure(operation: "query", object: "SQL", cause: "\(cause) (--time-max)")
    default: Failure(operation: "query", object: "SQL", cause: cause)
    }
  }
}

/// A writer of the rows of a query in any format.
/// - Parameter source: the ledger and the query; nil for a list that rests on no ledger.
private func queryWriter(
  _ format: ExportOptions.Format, _ source: (ledger: LedgerIdentity, query: SQLQuery, sql: String)?,
  to output: Output, _ context: Context
) throws -> any ReportWriter {
  let sink: (UnsafeRawBufferPointer) throws -> Void = { bytes in
    try context.interruption.check()
    try output.write(bytes)
  }
  switch format {
  case .csv: return CSVReportWriter(sink)
  case .ndjson: return JSONReportWriter(heading: nil, sink)
  case .json:
    return JSONReportWriter(heading: .query(source?.ledger, head: source?.query.head), sink)
  case .table: return TableReportWriter(nil, to: output, context)
  case .hledger, .beancount: preconditionFailure("a query of entries")
  case .xlsx:
    var facts: [SpreadsheetAbout.Fact] = []
    if let (ledger, query, sql) = source {
      facts = [
        .init("Ledger", ledger.origin), .init("Ledger id", "\(ledger.id)"),
        .init("Events", "\(query.head.size)"), .init("Root", query.head.root.base64),
        .init("Last event", query.lastEventAtMs.map { timeText($0) } ?? "none"),
        .init("Statement", sql),
      ]
    }
    var about = SpreadsheetAbout(
      sheetName: "query", title: "Receipt Ledger: query", facts: facts, zone: .utc,
      createdAtMs: source?.query.lastEventAtMs ?? 0)
    // A query's rows may be of anything.
    about.note = nil
    return try SpreadsheetReportWriter(
      about, check: { try context.interruption.check() }, sink)
  }
}

private func writeSchema(
  _ schema: SQLSchema, _ options: QueryOptions, to output: Output, _ context: Context
) throws {
  let writer = try queryWriter(options.format, nil, to: output, context)
  try writer.begin([ReportColumn("view"), ReportColumn("column")])
  var summary = ReportSummary()
  for view in try schema.views() {
    for column in view.columns {
      for var text in [view.name, column] {
        try text.withUTF8 { try writer.write(.text(UnsafeRawBufferPointer($0))) }
      }
      try writer.endRow()
      summary.rowCount += 1
    }
  }
  try writer.end(summary)
}

private func runQuery(
  _ sql: String, _ options: QueryOptions, _ invocation: Invocation, _ context: Context
) throws {
  let ledger = try OpenLedger(invocation, context)
  let database = try ledger.projector().readOnly(try ledger.projections(asOf: options.asOf))
  let folder = try TemporaryFolder()
  SQLLimits.confineProcess(temporaryFolder: folder.folder.path)
  defer { SQLLimits.releaseProcess() }
  let stopwatch = SQLStopwatch(limitMs: options.timeMaxMs)
  let deadline = QueryDeadline(stopwatch, context.interruption, folder.folder.path)
  defer { deadline.end() }
  try withDestination(options.outputPath, context) { output in
    do {
      let query = try SQLQuery(sql, on: database, stopwatch) { context.interruption.isRequested }
      let source = (ledger.directory.identity, query, sql)
      try write(
        query, rowsMax: options.rowsMax,
        to: try queryWriter(options.format, source, to: output, context))
    } catch let error as SQLError { throw error.failure }
  }
}

private func write(_ query: SQLQuery, rowsMax: Int, to writer: any ReportWriter) throws {
  var summary = ReportSummary()
  try writer.begin(query.columns.map { ReportColumn($0) })
  while try query.step() {
    if summary.rowCount == rowsMax {
      throw Failure(
        operation: "query", object: "SQL",
        cause: "it has more than \(counted(rowsMax, "row")) (--rows-max); LIMIT shows the first")
    }
    try query.write(to: writer)
    try writer.endRow()
    summary.rowCount += 1
  }
  try writer.end(summary)
}

// MARK: - Ends the process if SQLite does not return in time

/// SQLite asks between its steps whether to go on. One step can take hours: `instr` of two long blobs, for example.
/// So a thread ends the process once a query has worked for longer than it may, or was interrupted, and has not noticed
/// for a while. An output file that was begun stays hidden beside its target, as after a kill.
final class QueryDeadline {
  /// What the thread uses.
  private struct Watch: Sendable {
    static let graceMs: Int64 = 2000
    static let pauseMs: Int64 = 200
    let isOver: Monitor<Bool>
    let stopwatch: SQLStopwatch
    let interruption: Interruption
    let folder: String

    func run() {
      var interruptedMs: Int64 = 0
      while !hasEnded() {
        guard stopwatch.isWorking else { continue }
        if interruption.isRequested { interruptedMs += Self.pauseMs }
        if interruptedMs > Self.graceMs { end(.interrupted, "interrupted") }
        if stopwatch.workedMs > stopwatch.limitMs + Self.graceMs {
          end(.failed, "SQL: \(stopwatch.error.cause) (--time-max)")
        }
      }
    }

    private func end(_ exitCode: ExitCode, _ cause: String) -> Never {
      var text = "ledgerctl: query: \(cause)\n"
      text.withUTF8 { _ = writeAll(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
      rmdir(folder)
      _exit(exitCode.rawValue)
    }

    private func hasEnded() -> Bool {
      let ended = isOver.wait(on: 0, limitMs: Self.pauseMs) { (isOver) -> Bool? in
        isOver ? true : nil
      }
      return ended ?? false
    }
  }

  private let isOver = Monitor(false, conditionCount: 1)
  private let thread: WorkerThread?

  /// - Parameter folder: SQLite's temporary files were in it; they have no names.
  init(_ stopwatch: SQLStopwatch, _ interruption: Interruption, _ folder: String) {
    let watch = Watch(
      isOver: isOver, stopwatch: stopwatch, interruption: interruption, folder: folder)
    thread = try? WorkerThread { watch.run() }
  }

  /// Ends the thread. Call it once the query has ended.
  func end() {
    isOver.withLock { $0 = true }
    isOver.broadcast(0)
    thread?.join()
  }
}
