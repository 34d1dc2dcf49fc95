// Folds of test histories through the commands themselves, with streams in files without names.
import AppStore
import Base
import Foundation
import Ledger
import LedgerRules
import Projections
import Revenue
import TestSupport
import Testing

/// An event of a ledger, and its line in a stream.
struct PlacedEvent {
  var ledger: Int
  var position: Int
  var line: String

  var type: String { text(after: "\"type\":\"", to: "\"") }
  var recordedAt: String { text(after: "\"at\":\"", to: "\"") }

  var isDeclaration: Bool {
    [
      "app.registered", "prices.declared", "rates.declared", "trust.declared", "snapshot.created",
      "history.accepted", "data.redacted", "merged.from",
    ].contains(type)
  }

  private func text(after start: String, to end: String) -> String {
    guard let start = line.range(of: start), let end = line[start.upperBound...].range(of: end)
    else { return "" }
    return String(line[start.upperBound..<end.lowerBound])
  }
}

/// A table that a fold wrote.
struct FoldedTable {
  let kind: ReportKind
  let columns: [PartitionColumn]
  var rows: [[String]]

  func column(_ name: String) throws -> Int {
    try #require(columns.firstIndex { $0.name == name })
  }
}

/// Reports over events, as tasks name them.
struct FoldBench {
  let directory: TemporaryDirectory
  let ledgerNames: [String]
  var requests: [ReportRequest]
  var momentMs: Int64?

  init(ledgers names: [String] = ["shop"], _ requests: [ReportRequest]) throws {
    directory = try TemporaryDirectory()
    ledgerNames = names
    self.requests = requests
  }

  /// The task's file.
  func task(declarations path: String) -> String {
    let ledgers = ledgerNames.enumerated().map { index, name in
      JSONText.object([("origin", "origin-\(index)"), ("name", JSONText(stringLiteral: name))])
    }
    let reports = requests.map { request in
      var writer = JSONWriter()
      request.write(to: &writer)
      return JSONText.object([
        ("kind", JSONText(stringLiteral: request.kind.rawValue)),
        ("filters", JSONText(raw: String(decoding: writer.bytes, as: UTF8.self))),
      ])
    }
    return JSONText.object([
      ("ledgers", .array(ledgers)), ("declarations", JSONText(stringLiteral: path)),
      ("moment_ms", JSONText(raw: momentMs.map(String.init) ?? "null")),
      ("reports", .array(reports)),
    ]).text
  }

  func parsedTask() throws -> FoldTask {
    try FoldTask(Array(task(declarations: directory.path("declarations")).utf8))
  }

  /// Folds events: those of this partition, and the declarations of all partitions.
  func fold(
    _ events: [PlacedEvent], declarations: [PlacedEvent]
  ) throws -> (tables: [FoldedTable], end: String) {
    try Self.write(declarations, to: directory.path("declarations"))
    let task = try parsedTask()
    let output = try UnnamedFile()
    let input = try UnnamedFile()
    try Self.write(events, to: DescriptorOutput(input.descriptor))
    input.rewind()
    try FoldCommand.run(
      task, in: ScratchFolder(directory.path), from: LineInput(input.descriptor),
      to: DescriptorOutput(output.descriptor))
    let read = try ReadTables(output)
    let tables = task.reports.enumerated().map { number, request in
      FoldedTable(
        kind: request.kind, columns: request.tableColumns, rows: read.rows[number] ?? [])
    }
    return (tables, read.end)
  }

  /// Writes a table's rows, given without its leading columns, as CSV.
  func csv(_ rows: [[String]], report: Int) throws -> String {
    let leading = requests[report].leadingColumns.count
    var text = ""
    for row in rows {
      let cells = row.dropFirst(leading).map { JSONText(stringLiteral: $0) }
      text += JSONText.array(cells).text + "\n"
    }
    let input = try lines(Array("\(text)end\n".utf8))
    let output = try UnnamedFile()
    try CSVCommand.run(
      parsedTask(), report: report, from: LineInput(input.descriptor),
      to: DescriptorOutput(output.descriptor))
    return output.text()
  }

  private static func write(_ events: [PlacedEvent], to path: String) throws {
    let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
    defer { close(descriptor) }
    try write(events, to: DescriptorOutput(descriptor))
  }

  private static func write(_ events: [PlacedEvent], to output: DescriptorOutput) throws {
    for event in events {
      try output.write(Array("\(event.ledger)\t\(event.position)\t\t\(event.line)\n".utf8))
    }
    try output.write(Array("end\n".utf8))
    try output.flush()
  }
}

/// A temporary file that has no name.
final class UnnamedFile {
  let descriptor: Int32

  init() throws {
    var name = Array("/tmp/partition-XXXXXX".utf8CString)
    descriptor = mkstemp(&name)
    try #require(descriptor >= 0)
    unlink(name)
  }

  deinit { close(descriptor) }

  func rewind() { lseek(descriptor, 0, SEEK_SET) }

  func bytes() -> [UInt8] {
    rewind()
    return Array(FileHandle(fileDescriptor: descriptor).readDataToEndOfFile())
  }

  func text() -> String { String(decoding: bytes(), as: UTF8.self) }
}

extension LedgerFixture {
  /// All events of the ledger, under its index.
  func placedEvents(ledger: Int = 0) throws -> [PlacedEvent] {
    var events: [PlacedEvent] = []
    try LogReader(directory).read(from: 0) { chunk in
      try chunk.forEachEvent {
        events.append(
          PlacedEvent(
            ledger: ledger, position: $0.position, line: String(decoding: $0.bytes, as: UTF8.self)))
      }
      return true
    }
    return events
  }
}
