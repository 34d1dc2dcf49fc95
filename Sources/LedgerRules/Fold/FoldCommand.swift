// `fold` folds the events of a partition and writes its reports; `csv` writes a report's rows.
import AppStore
import Base
import Ledger
import Projections

package enum FoldCommand {
  static func run(_ arguments: RulesArguments) throws {
    var arguments = arguments
    let path = try arguments.required("--task")
    let scratch = try arguments.text("--scratch")
    let isDescription = try arguments.flag("--describe")
    try arguments.finish()
    let task = try FoldTask(readingFrom: path)
    if isDescription { return try describe(task) }
    try run(
      task, in: try ScratchFolder(scratch), from: LineInput(0), to: DescriptorOutput(1))
  }

  /// Writes the columns of each table.
  private static func describe(_ task: FoldTask) throws {
    var writer = JSONWriter()
    writer.beginObject()
    PartitionTable.write(task.reports.map { PartitionTable(request: $0) }, to: &writer)
    writer.endObject()
    try StandardOutput.write(line: writer.bytes)
  }

  package static func run(
    _ task: FoldTask, in scratch: ScratchFolder, from input: LineInput,
    to output: DescriptorOutput
  ) throws {
    let events = PartitionEvents(
      ledgerNames: task.ledgers.map(\.name), EventSpool(try scratch.unnamedFile()))
    do {
      let fold = try scratch.withPath { path in
        try PartitionFold(at: path, origins: events) { (position) throws(LedgerError) in
          do throws(Failure) { return try events.line(at: position) } catch {
            throw LedgerError(
              .inputOutput, operation: error.operation, object: error.object, cause: error.cause)
          }
        }
      }
      let counts = try foldAll(task, input, events, fold)
      try writeReports(
        task.asOf(declaredMs: counts.lastDeclaredMs), of: try fold.finish(), events, counts,
        to: output)
    } catch { throw Failure(folding: error, events) }
  }

  private struct Counts {
    var events = 0
    var declarations = 0
    var lastDeclaredMs: Int64?
  }

  /// Folds the events and, in order among them, the declarations of all ledgers.
  private static func foldAll(
    _ task: FoldTask, _ input: LineInput, _ events: PartitionEvents, _ fold: PartitionFold
  ) throws -> Counts {
    func declarations(_ file: InputFile) throws(Failure) -> EventStream {
      try EventStream(LineInput(file.descriptor), task, object: task.declarationsPath)
    }
    // Twice: all registrations decide what is one.
    let (first, second) = (
      try InputFile(task.declarationsPath), try InputFile(task.declarationsPath)
    )
    let fleet = try FleetEvents(ledgerCount: task.ledgers.count, try declarations(first))
    let declarations = try declarations(second)
    let stream = try EventStream(input, task, object: "standard input")
    var counts = Counts()
    while true {
      let source: EventStream
      switch (stream.next, declarations.next) {
      case (nil, nil): return counts
      case (nil, _): source = declarations
      case (_, nil): source = stream
      case (let event?, let declaration?):
        if event.key == declaration.key {
          let name = task.ledgers[event.key.ledger].name
          throw Failure(
            operation: "read", object: "standard input at \(name):\(event.key.position)",
            cause: "this event is among the declarations too")
        }
        source = event.key < declaration.key ? stream : declarations
      }
      guard let next = source.next else { preconditionFailure("a chosen stream is at its end") }
      var isFolded = true
      switch fleet.outcome(of: next.line, in: next.key.ledger, digest: next.digest) {
      case .asItIs: try self.fold(next.key, next.line, events, fold)
      case .passedOver: isFolded = false
      case .mapped(let text):
        try text.withUnsafeBytes { bytes in
          guard let line = EventLine(bytes) else {
            preconditionFailure("other data leave an event an event")
          }
          try self.fold(next.key, line, events, fold)
        }
      }
      if source === stream {
        counts.events += 1
      } else {
        counts.declarations += 1
        if isFolded { counts.lastDeclaredMs = next.key.recordedAtMs }
      }
      try source.advance()
    }
  }

  private static func fold(
    _ key: EventKey, _ line: EventLine, _ events: PartitionEvents, _ fold: PartitionFold
  ) throws {
    let position = try events.append(key, line.bytes)
    try fold.fold(line.moved(to: position))
  }

  private static func writeReports(
    _ task: FoldTask, of database: Database, _ events: PartitionEvents, _ counts: Counts,
    to output: DescriptorOutput
  ) throws {
    let writer = RowOutput(output)
    var tables: [PartitionTable] = []
    for (number, request) in task.reports.enumerated() {
      let table = writer.table(number)
      let rows = PartitionRows(request, events, table)
      try Report.write(request, from: database, to: rows)
      try table.flush()
      tables.append(PartitionTable(request: request, rowCount: rows.rowCount))
    }
    var end = JSONWriter()
    end.beginObject()
    end.member("events", counts.events)
    end.member("declarations", counts.declarations)
    PartitionTable.write(tables, to: &end)
    end.endObject()
    try writer.finish(end.bytes)
  }
}

// MARK: - `csv`

package enum CSVCommand {
  static func run(_ arguments: RulesArguments) throws {
    var arguments = arguments
    let path = try arguments.required("--task")
    guard let number = try arguments.integer("--report", 0...Int64(Int32.max)) else {
      throw Failure.usage("--report", "is missing")
    }
    try arguments.finish()
    let task = try FoldTask(readingFrom: path)
    guard task.reports.indices.contains(Int(number)) else {
      throw Failure.usage("--report", "the task has \(task.reports.count) reports, from 0")
    }
    try run(task, report: Int(number), from: LineInput(0), to: DescriptorOutput(1))
  }

  /// Writes one report's rows as `ledgerctl export` does, without the columns that the fold added to the report's own.
  package static func run(
    _ task: FoldTask, report number: Int, from input: LineInput, to output: DescriptorOutput
  ) throws {
    let request = task.reports[number]
    let csv = CSVReportWriter(form: request.layout.csv, zone: request.zone) { bytes in
      try output.write(bytes)
    }
    try PartitionCells(request, task).write(input, to: csv)
    try output.flush()
  }
}
