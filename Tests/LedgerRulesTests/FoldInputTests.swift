// Wrong tasks and wrong streams: each a clear error, and nothing half done.
import Base
import Foundation
import LedgerRules
import Projections
import TestSupport
import Testing

@Suite struct FoldInputTests {
  // MARK: Tasks

  private static let filters =
    #"{"refunds":"event-date","timezone":"UTC","from":null,"to":null,"environment":"all","include_pending":false}"#

  private static func task(
    ledgers: String = #"[{"origin":"1","name":"eu"},{"origin":"2","name":"us"}]"#,
    declarations: String = #""file""#, moment: String = "null", reports: String? = nil,
    more: String = ""
  ) -> String {
    let reports = reports ?? #"[{"kind":"journal","filters":\#(filters)}]"#
    return #"{"ledgers":\#(ledgers),"declarations":\#(declarations),"moment_ms":\#(moment),"#
      + #""reports":\#(reports)\#(more)}"#
  }

  private static func report(_ kind: String, _ member: String) -> String {
    #"[{"kind":"\#(kind)","filters":\#(filters.dropLast()),\#(member)}}]"#
  }

  @Test func aTaskIsRead() throws {
    let task = try FoldTask(Array(Self.task(moment: "1767225600000").utf8))
    expectEqual(task.ledgers.map(\.name), ["eu", "us"])
    #expect(task.declarationsPath == "file" && task.momentMs == 1_767_225_600_000)
    expectEqual(task.reports.map(\.kind), [.journal])
  }

  private static let wrongTasks = [
    ("", "invalid JSON: unexpected end at byte 0"),
    ("[]", "the task is not a JSON object"),
    (task(more: #","report":1"#), "the task has the unknown member 'report'"),
    ("{}", "the task lacks the member 'ledgers'"),
    (task(ledgers: "[]"), "'ledgers' must be a list of 1 to 65536 ledgers"),
    (task(ledgers: #"[{"origin":"1"}]"#), "a ledger lacks the member 'name'"),
    (task(ledgers: #"[{"origin":"1","name":""}]"#), "a ledger has no origin or no name"),
    (
      task(ledgers: #"[{"origin":"2","name":"a"},{"origin":"1","name":"b"}]"#),
      "the ledgers are not sorted by origin"
    ),
    (
      task(ledgers: #"[{"origin":"1","name":"a"},{"origin":"1","name":"b"}]"#),
      "two ledgers have the origin '1'"
    ),
    (
      task(ledgers: #"[{"origin":"1","name":"a"},{"origin":"2","name":"a"}]"#),
      "two ledgers have the name 'a'"
    ),
    (task(declarations: "5"), "'declarations' is not a path"),
    (task(moment: #""now""#), "'moment_ms' is neither an integer nor null"),
    (task(reports: "[]"), "'reports' must be a list of 1 to 256 reports"),
    (task(reports: #"[{"kind":"jurnal","filters":{}}]"#), "'jurnal' is not a kind of report"),
    (
      task(reports: #"[{"kind":"journal","filters":{}}]"#),
      "the report 'journal': the filter 'refunds' is missing or invalid"
    ),
    (
      task(reports: report("journal", #""rates_max_agee":5"#)),
      "the report 'journal': the filter 'rates_max_agee' is unknown"
    ),
    (
      task(reports: report("journal", #""top":5"#)),
      "the report 'journal': the filter 'top' applies to whole reports, not to those of partitions"
    ),
    (
      task(reports: report("exceptions", #""country":["DE"]"#)),
      "the report 'exceptions': exceptions of partitions can be filtered by environment alone"
    ),
    (
      task(reports: report("subscriptions", #""by":"month","at":null"#)),
      "the report 'subscriptions': subscriptions by month cannot be put together from partitions"
    ),
  ]

  @Test(arguments: wrongTasks)
  func aWrongTaskIsRefused(_ text: String, _ cause: String) throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("task.json")
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    let failure = #expect(throws: Failure.self) { try FoldTask(readingFrom: path) }
    expectEqual(failure?.line, "ledger-rules: read: \(path): \(cause)")
    expectEqual(failure?.exitCode, .usage)
  }

  @Test func aTaskThatIsNotThereIsRefused() throws {
    let failure = #expect(throws: Failure.self) { try FoldTask(readingFrom: "/no/task") }
    expectEqual(failure?.line, "ledger-rules: read: /no/task: no such file or directory")
    expectEqual(failure?.exitCode, .failed)
  }

  // MARK: Streams

  private static func events() throws -> [PlacedEvent] {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1")), user: "u1"), .upload(user: "u2")])
    return try fixture.placedEvents()
  }

  private static func bench(ledgers: [String] = ["shop"]) throws -> FoldBench {
    try FoldBench(ledgers: ledgers, [ReportWords("journal").request])
  }

  private func failure(
    _ change: (inout [PlacedEvent]) -> Void, ledgers: [String] = ["shop"]
  ) throws -> Failure {
    var events = try Self.events()
    change(&events)
    let bench = try Self.bench(ledgers: ledgers)
    let failure = #expect(throws: Failure.self) { try bench.fold(events, declarations: []) }
    // Nothing stays in the scratch folder.
    let names = try FileManager.default.contentsOfDirectory(atPath: bench.directory.path)
    expectEqual(names, ["declarations"])
    return try #require(failure)
  }

  @Test func wrongRowsAreRefused() throws {
    let order = "it does not follow the row before: rows ascend by time, ledger and position"
    try expectEqual(
      failure { $0.swapAt(0, 2) }.line, "ledger-rules: read: standard input at shop:1: \(order)")
    try expectEqual(
      failure { $0.append($0[2]) }.line, "ledger-rules: read: standard input at shop:2: \(order)")
    try expectEqual(
      failure { $0[1].ledger = 3 }.line,
      "ledger-rules: read: a row of standard input: there is no ledger 3: the task has 1")
    try expectEqual(
      failure { $0[1].position = 7 }.line,
      "ledger-rules: read: standard input at shop:7: the line is of position 1")
    try expectEqual(
      failure { $0[1].line = "{}" }.line,
      "ledger-rules: read: standard input at shop:1: the line is not an event")
    try expectEqual(
      failure { $0[1].line += "\n" }.line,
      "ledger-rules: read: a row of standard input: it has another form")
    // Within a ledger, time never falls.
    try expectEqual(
      failure({ events in
        events[1].position = 9
        events[1].line.replace("{\"seq\":1,", with: "{\"seq\":9,")
      }).line,
      "ledger-rules: fold: event 2: position 9 of its ledger came before it: "
        + "within a ledger time never falls")
  }

  @Test func anEventOfALaterProgramIsRefusedAsSuch() throws {
    let failure = try failure { events in
      events[2].line.replace("\"type\":\"receipt.uploaded\"", with: "\"type\":\"receipt.renamed\"")
    }
    expectEqual(failure.exitCode, .newerFormat)
    #expect(failure.line.hasPrefix("ledger-rules: fold: event 2: "))
  }

  @Test func aStreamWithoutEndIsRefused() throws {
    let bench = try Self.bench()
    _ = try bench.fold(try Self.events(), declarations: [])
    let path = bench.directory.path("declarations")
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    try whole.dropLast(1).write(to: URL(fileURLWithPath: path))
    let input = try UnnamedFile()
    let failure = #expect(throws: Failure.self) {
      try FoldCommand.run(
        bench.parsedTask(), in: ScratchFolder(bench.directory.path),
        from: LineInput(input.descriptor), to: DescriptorOutput(input.descriptor))
    }
    expectEqual(failure?.line, "ledger-rules: read: \(path): it is cut short")
    try whole.write(to: URL(fileURLWithPath: path))
    let second = #expect(throws: Failure.self) {
      try FoldCommand.run(
        bench.parsedTask(), in: ScratchFolder(bench.directory.path),
        from: LineInput(input.descriptor), to: DescriptorOutput(input.descriptor))
    }
    expectEqual(second?.line, "ledger-rules: read: standard input: it is cut short")
  }

  @Test func anEventThatIsDeclaredTooIsRefused() throws {
    let events = try Self.events()
    let failure = #expect(throws: Failure.self) {
      try Self.bench().fold(events, declarations: [events[1]])
    }
    expectEqual(
      failure?.line,
      "ledger-rules: read: standard input at shop:1: this event is among the declarations too")
  }

  @Test func aScratchFolderThatIsNotThereIsRefused() throws {
    let failure = #expect(throws: Failure.self) { try ScratchFolder("/no/folder") }
    expectEqual(
      failure?.line, "ledger-rules: open scratch folder: /no/folder: no such file or directory")
  }

  // MARK: CSV

  @Test(arguments: [
    ("amount", "x"), ("position", "5"), ("position", "1:5"), ("position", "0:-5"),
    ("date", "2026"), ("date", "1.5"), ("currency", "ABC"), ("quantity", ""),
  ])
  func aCellOfAnotherFormIsRefused(_ name: String, _ cell: String) throws {
    let bench = try Self.bench()
    let rows = try bench.fold(try Self.events(), declarations: []).tables[0]
    var row = try #require(rows.rows.first)
    row[try rows.column(name)] = cell
    if cell.isEmpty || name == "date" && cell == "2026" {
      try expectEqual(bench.csv([row], report: 0).split(separator: "\n").count, 2)
      return
    }
    let failure = #expect(throws: Failure.self) { try bench.csv([row], report: 0) }
    expectEqual(
      failure?.line,
      "ledger-rules: read: standard input, row 0, column '\(name)': "
        + "the cell does not have the form of its column")
  }
}
