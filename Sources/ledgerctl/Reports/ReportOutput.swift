// Writes a report in one of the formats, for `export` and `audit report`.
import Base
import Ledger
import Projections
import ReportDocuments

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
