// `audit report`: reproduces a report from the log, up to the position in its manifest, and compares the two.
import Base
import Erasure
import Glibc
import Ledger
import Projections
import ReportDocuments

let auditReportCommand = Command(
  "audit report", summary: "Check a report against the log",
  details: [
    "Audits the log, folds it from nothing up to the position in the manifest, writes the report again with "
      + "the same filters, and compares byte for byte; an Excel file of another form, cell by cell. If an "
      + "erasure has redacted events of the report, a report in CSV or JSON is compared without "
      + "`user_identifier`, `receipt_id` and `detail`, in any order, and the erasures are named.",
    "The exit code is 21 if the report or a filter was changed, 20 if the events were: the log is damaged, "
      + "its root at that position differs, or the checkpoint's signature is wrong.",
    "JSON has `report`, `origin`, `size` and `root` of the events behind it, `compared`, which is `bytes`, "
      + "`cells` or `rows`, and `erasures`, the positions of those that explain the differences.",
  ],
  positionals: [Positional("FILE", help: "the manifest that `export --manifest` wrote")],
  options: [.verifierKeys(), .json],
  examples: [
    Example(
      "ledgerctl audit report revenue.csv.manifest.json",
      "Check that a report follows from the log")
  ]
) { invocation, context in
  try auditReport(invocation, context)
}

private func auditReport(_ invocation: Invocation, _ context: Context) throws -> ExitCode {
  let keys = try invocation.verifierKeys()
  let path = invocation.positionals[0]
  let manifest = try readManifest(path)
  let ledger = try OpenLedger(invocation, context)
  let audit = ReportAudit(manifest, path: path, ledger, context)
  try audit.checkLedger(keys)
  try audit.checkLog()
  let match = try audit.checkBytes()
  let record: Record = [
    "report": manifest.file, "origin": manifest.origin, "size": manifest.size,
    "root": manifest.root.base64, "compared": match.name, "erasures": match.erasures,
  ]
  try context.print(invocation, record) { sections in
    try sections.line(
      "\(visible(manifest.file)) follows from the first \(counted(manifest.size, "event")) of "
        + "\(manifest.origin), root \(manifest.root.base64)"
        + match.text)
  }
  return .done
}

/// The manifest at a path. A file that has neither its name nor its form is a usage error: probably the report itself.
private func readManifest(_ path: String) throws -> Manifest {
  do { return try Manifest(try readSmallFile(path), path: path) } catch {
    let isMissing = access(path, F_OK) != 0
    if path == "-" || isMissing || path.hasSuffix(Manifest.suffix) { throw error }
    if Manifest.isOne(path) { throw error }
    let beside = path + Manifest.suffix
    let advice =
      access(beside, F_OK) == 0
      ? "give \(visible(beside))"
      : "give the file that 'export --manifest' wrote next to the report"
    throw UsageError(visible(path), "is not a manifest; \(advice)")
  }
}

/// How a report equals its reproduction.
private enum ReportMatch {
  case bytes
  /// The cells of an Excel file in another form.
  case cells
  /// Rows, except for the columns in which these erasures show.
  case rows(since: [Position])

  /// What was compared, in JSON.
  var name: String {
    switch self {
    case .bytes: "bytes"
    case .cells: "cells"
    case .rows: "rows"
    }
  }

  /// The positions of the erasures that explain all differences.
  var erasures: [Position] { if case .rows(let erasures) = self { erasures } else { [] } }

  /// The continuation of the sentence that the report follows from the log.
  var text: String {
    switch self {
    case .bytes: ""
    case .cells: ": the same cells in another form of Excel files"
    case .rows(let erasures):
      ": the same but for redaction by the \(erasures.count == 1 ? "erasure" : "erasures") at "
        + erasures.map { "\($0)" }.joined(separator: ", ")
    }
  }
}

/// Checks one report against one ledger.
private struct ReportAudit {
  private let manifest: Manifest
  private let manifestPath: String
  private let ledger: OpenLedger
  private let context: Context

  init(_ manifest: Manifest, path: String, _ ledger: OpenLedger, _ context: Context) {
    self.manifest = manifest
    manifestPath = path
    self.ledger = ledger
    self.context = context
  }

  private func failure(_ code: ExitCode, _ object: String, _ cause: String) -> Failure {
    Failure(code, operation: "audit report", object: object, cause: cause)
  }

  /// Checks that it belongs to this ledger and that its checkpoint is signed.
  func checkLedger(_ keys: [VerifierKey]) throws {
    let identity = ledger.directory.identity
    guard manifest.origin.hasSameBytes(as: identity.origin), manifest.id == "\(identity.id)"
    else { throw failure(.mismatch, manifestPath, "it belongs to another ledger") }
    guard let note = manifest.checkpoint else { return }
    let known = keys.isEmpty ? try KeyStore(ledger.directory).publicKeys() : keys
    let checkpoint = try Checkpoint(note, keys: known)
    guard checkpoint.origin.hasSameBytes(as: manifest.origin), checkpoint.size == manifest.size,
      checkpoint.root == manifest.root
    else { throw failure(.corrupted, manifestPath, "its checkpoint has another head") }
  }

  /// Checks that the events are those behind the report.
  func checkLog() throws {
    let report = try auditLog(ledger.directory, rootsAt: [manifest.size], context)
    let findings = report.findings.filter { ($0.damage.position ?? 0) < manifest.size }
    for finding in findings {
      context.diagnostics.writeLine(
        visible(
          "ledgerctl: \(finding.damage.verdict.rawValue): \(finding.damage.file), positions "
            + "\(positions(finding)): \(finding.cause)"))
    }
    if !findings.isEmpty {
      throw failure(.corrupted, "log", "the events before position \(manifest.size) are damaged")
    }
    guard manifest.size <= report.size else {
      throw failure(
        .corrupted, "log",
        "the report is based on \(manifest.size) events, the log has \(report.size)")
    }
    guard report.roots[manifest.size] == manifest.root else {
      throw failure(
        .corrupted, "log",
        "its first \(manifest.size) events are not those of the report")
    }
  }

  /// Checks that the reproduced report has the same bytes, or differs only by its form or by what was redacted since.
  func checkBytes() throws -> ReportMatch {
    let reportPath = Self.path(of: manifest.file, beside: manifestPath)
    let differences = manifest.versionDifferences
    if !differences.isEmpty {
      context.log(
        "audit report: made by another version of the program: "
          + differences.joined(separator: ", "))
    }
    let folder: TemporaryFolder
    do throws(LedgerError) { folder = try TemporaryFolder() } catch {
      throw Failure(operation: error.operation, object: error.object, systemError: error.code)
    }
    try ledger.reader.refresh()
    let database = folder.path("projections.sqlite")
    try ledger.projector().build(upTo: manifest.size, at: database)
    let again = folder.path("report")
    let descriptor = open(again, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0
    else { throw Failure(operation: "write", object: again, systemError: errno) }
    defer { close(descriptor) }
    let books = try Database(path: database, mode: .read)
    if let trust = manifest.trust, try Manifest.Trust.all(in: books) != trust {
      throw failure(.mismatch, manifestPath, "its trust is not the one that the log declares")
    }
    let written = try ReportOutput(
      manifest.request, manifest.format, ledger.directory.identity
    ).write(
      from: books,
      to: Output(descriptor: descriptor, name: again), context)
    if manifest.isSpreadsheetOfAnotherForm, written.sha256 != manifest.sha256,
      let cells = try cells(at: reportPath, sha256: manifest.sha256),
      try cells == self.cells(at: again, sha256: written.sha256)
    {
      return .cells
    }
    let erasures = try ErasureQueries(try ledger.projections()).all()
      .filter { $0.position >= manifest.size && $0.lineCount > 0 }.map(\.position)
    if !erasures.isEmpty, written.sha256 != manifest.sha256 {
      try checkRows(reportPath, again, since: erasures)
      return .rows(since: erasures)
    }
    if let line = try firstDifference(reportPath, descriptor) {
      let isRebuilt = written.sha256 == manifest.sha256
      throw failure(
        .mismatch, reportPath,
        difference(at: line) + " from the log"
          + (isRebuilt ? "; the file was changed after it was written" : ""))
    }
    guard written.sha256 == manifest.sha256, written.byteCount == manifest.byteCount else {
      throw failure(.mismatch, manifestPath, "its SHA-256 or size is not that of the report")
    }
    return .bytes
  }

  private func difference(at line: Int) -> String {
    if manifest.isSpreadsheetOfAnotherForm { return "its cells do not follow" }
    // A zip file has no lines.
    return manifest.format == .xlsx ? "its bytes do not follow" : "line \(line) does not follow"
  }

  /// The cells of an Excel file; nil if its digest differs or it cannot be read as one.
  private func cells(at path: String, sha256: SHA256Digest) throws -> SpreadsheetCells? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0
    else { throw Failure(operation: "read", object: path, systemError: errno) }
    defer { close(descriptor) }
    let hasher = SHA256()
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    var byteCount = 0
    while true {
      let count = try buffer.withUnsafeMutableBytes {
        try fill($0, from: descriptor, at: byteCount, path)
      }
      if count == 0 { break }
      buffer.withUnsafeBytes { hasher.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      byteCount += count
    }
    guard hasher.finish() == sha256 else { return nil }
    do {
      return try SpreadsheetCells(byteCount: byteCount) {
        try fill($0, from: descriptor, at: $1, path)
      }
    } catch is SpreadsheetError { return nil }
  }

  /// Checks that the rows of the report are those of its reproduction, except for the columns in which an erasure
  /// shows.
  private func checkRows(
    _ path: String, _ again: String, since erasures: [Position]
  ) throws {
    let events = erasures.map { "\($0)" }.joined(separator: ", ")
    func refusal(_ cause: String) -> Failure {
      failure(
        .mismatch, path, "events were redacted since, by the erasures at \(events), and \(cause)")
    }
    guard access(path, F_OK) == 0 else {
      throw refusal("without the report's file its other columns can't be compared")
    }
    let limit = RedactedComparison.byteCountMax
    let before = try readSmallFile(path, byteCountMax: limit)
    guard before.withUnsafeBytes({ SHA256.hash($0) }) == manifest.sha256 else {
      throw failure(.mismatch, path, "the file was changed after it was written")
    }
    let after = try readSmallFile(again, byteCountMax: limit)
    switch RedactedComparison.compare(before, after, manifest.format) {
    case .same: break
    case .different: throw refusal("other columns do not follow from the log")
    case .incomparable(let cause): throw refusal(cause)
    }
  }

  private static func path(of file: String, beside path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return file }
    return path[...slash] + file
  }
}

/// The number, from 1, of the first line in which two files differ; nil if they are equal.
private func firstDifference(_ path: String, _ other: Int32) throws -> Int? {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw Failure(operation: "read", object: path, systemError: errno) }
  defer { close(descriptor) }
  var (left, right) = ([UInt8](repeating: 0, count: 1 << 16), [UInt8](repeating: 0, count: 1 << 16))
  var offset = 0
  var line = 1
  while true {
    let leftCount = try left.withUnsafeMutableBytes {
      try fill($0, from: descriptor, at: offset, path)
    }
    let rightCount = try right.withUnsafeMutableBytes {
      try fill($0, from: other, at: offset, path)
    }
    let count = min(leftCount, rightCount)
    for index in 0..<count {
      if left[index] != right[index] { return line }
      if left[index] == 0x0A { line += 1 }
    }
    if leftCount != rightCount { return line }
    if count == 0 { return nil }
    offset += count
  }
}

/// Fills the buffer from an offset; reads less only at the end of the file.
private func fill(
  _ buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32, at offset: Int, _ path: String
) throws(Failure) -> Int {
  var count = 0
  while count < buffer.count {
    let added = pread(
      descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count, offset + count)
    if added == 0 { break }
    if added > 0 {
      count += added
    } else if errno != EINTR {
      throw Failure(operation: "read", object: path, systemError: errno)
    }
  }
  return count
}
