// Writes a report in one of the formats, for `export` and `audit report`.
import Base
import Intake
import Ledger
import Projections
import ReportDocuments
import Revenue

/// A written report: its summary and what identifies its bytes.
struct WrittenReport {
  var summary = ReportSummary()
  /// With the moment of the report.
  var request: ReportRequest
  /// The number of events behind the report, and their root.
  var size = 0
  var root: SHA256Digest
  var byteCount = 0
  var sha256: SHA256Digest
}

/// Writes a report of one ledger.
struct ReportOutput {
  let request: ReportRequest
  let format: ExportOptions.Format
  private let identity: LedgerIdentity

  init(_ request: ReportRequest, _ format: ExportOptions.Format, _ identity: LedgerIdentity) {
    self.request = request
    self.format = format
    self.identity = identity
  }

  /// Writes the report and flushes the output.
  func write(
    from database: Database, to output: Output, _ context: Context
  ) throws -> WrittenReport {
    let hasher = SHA256()
    var byteCount = 0
    output.observer = { bytes in
      hasher.update(bytes)
      byteCount += bytes.count
    }
    defer { output.observer = nil }
    let sink: (UnsafeRawBufferPointer) throws -> Void = { bytes in
      try context.interruption.check()
      try output.write(bytes)
    }
    var head: (size: Int, root: SHA256Digest)?
    var request = request
    let summary = try Report.write(request, from: database) { size, root, resolved in
      head = (size, root)
      request = resolved
      let writer: any ReportWriter
      switch format {
      case .csv:
        writer = CSVReportWriter(form: request.layout.csv, zone: request.zone, sink)
      case .ndjson: writer = JSONReportWriter(heading: nil, sink)
      case .json:
        let heading = ReportHeading(request: request, ledger: identity, size: size, root: root)
        writer = JSONReportWriter(heading: .report(heading), sink)
      case .xlsx:
        let about = SpreadsheetAbout(
          ReportHeading(request: request, ledger: identity, size: size, root: root),
          lastEventAtMs: try Report.lastEventAtMs(of: database))
        writer = try SpreadsheetReportWriter(
          about, check: { try context.interruption.check() }, sink)
      case .table: writer = TableReportWriter(request, to: output, context)
      case .hledger: writer = EntryTextWriter(.hledger, sink)
      case .beancount: writer = EntryTextWriter(.beancount, sink)
      }
      return request.layout.applied(to: writer)
    }
    try output.flush()
    let sha256 = hasher.finish()
    return WrittenReport(
      summary: summary, request: request, size: head?.size ?? 0, root: head?.root ?? sha256,
      byteCount: byteCount,
      sha256: sha256)
  }
}

// MARK: - Compares a report with the same report after erasures, without the columns that an erasure changes

/// Reads two files of one report and compares their rows as sets: erased users sort elsewhere.
enum RedactedComparison {
  /// The columns in which an erasure shows.
  static let columns: Set<String> = ["user_identifier", "receipt_id", "detail"]
  /// Larger files are not compared in memory.
  static let byteCountMax = 256 << 20

  /// Why two files can't be compared, or that they differ.
  enum Verdict: Equatable {
    case same
    case different
    case incomparable(String)
  }

  static func compare(_ left: [UInt8], _ right: [UInt8], _ format: ExportOptions.Format) -> Verdict
  {
    switch format {
    case .csv: return verdict(rows(ofCSV: left), rows(ofCSV: right))
    case .json: return verdict(rows(ofJSON: left), rows(ofJSON: right))
    default: return .incomparable("a file of this format can't be compared row by row")
    }
  }

  private static func verdict(_ left: [String]?, _ right: [String]?) -> Verdict {
    guard let left, let right else {
      return .incomparable("a file does not have the report's form")
    }
    return left == right ? .same : .different
  }

  /// The rows without those columns, sorted; the first is the header. Nil if it is no such file.
  private static func rows(ofCSV bytes: [UInt8]) -> [String]? {
    var reader = CSVReader(bytes)
    guard let header = (try? reader.next()) ?? nil else { return nil }
    let kept = header.cells.indices.filter { !columns.contains(header.cells[$0]) }
    var rows: [String] = []
    while true {
      let record: CSVRecord?
      do throws(CSVError) { record = try reader.next() } catch { return nil }
      guard let record else { break }
      guard record.cells.count == header.cells.count else { return nil }
      rows.append(kept.map { record.cells[$0] }.joined(separator: "\u{1F}"))
    }
    return [header.cells.joined(separator: "\u{1F}")] + rows.sorted()
  }

  private static func rows(ofJSON bytes: [UInt8]) -> [String]? {
    guard let value = try? JSONValue(bytes), case .object(let members) = value,
      let rows = value["rows"]?.arrayValue
    else { return nil }
    func text(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }
    let heading = JSONValue.object(members.filter { $0.key != "rows" })
    let kept = rows.map { row -> JSONValue in
      guard case .object(let cells) = row else { return row }
      return .object(cells.filter { !columns.contains($0.key) })
    }
    return [text(heading)] + kept.map(text).sorted()
  }
}
