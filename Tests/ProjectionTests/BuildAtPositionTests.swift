// Projections as they were at an earlier position, and the filters that manifests carry.
import Base
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct BuildAtPositionTests {
  private static let stepCount = 40

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func builtUpToAPositionTheProjectionsAreThoseOfALogThatEndsThere(seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    let steps = generator.steps(Self.stepCount)
    // Blocks of a few events: positions lie inside, at the edge of, and after blocks.
    let whole = try LedgerFixture(blockByteCount: 4 << 10)
    try whole.append(steps)
    var short = try LedgerFixture(blockByteCount: 4 << 10)
    var random = SeededRandom(seed: seed)
    for end in [0, 1, 7, 19, 33, Self.stepCount] {
      short = try LedgerFixture(blockByteCount: 4 << 10)
      try short.append(Array(steps[..<end]))
      let path = whole.path + "-at-\(end)-\(random.next()).sqlite"
      defer { try? FileManager.default.removeItem(atPath: path) }
      try whole.projector().build(upTo: short.eventCount, at: path)
      let database = try Database(path: path, mode: .read)
      try expectEqual(database.dump(), short.rebuilt().dump(), "after \(end) steps")
      let head = try Report.head(of: database)
      expectEqual(head.size, short.eventCount)
      expectEqual(head.root, (try LogReader(short.directory).head.root))
    }
    // Nothing was put in use.
    expectEqual(whole.projectionNames.filter { $0.hasSuffix(".sqlite") }, [])
  }

  @Test func beyondTheEndOrOverAFileNothingIsBuilt() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 9)
    try fixture.append(generator.steps(3))
    let path = fixture.path + "-beyond.sqlite"
    for position in [-1, fixture.eventCount + 1, Int.max] {
      #expect(throws: ProjectionError.self) {
        try fixture.projector().build(upTo: position, at: path)
      }
    }
    #expect(!FileManager.default.fileExists(atPath: path))
    try Data([1]).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(throws: ProjectionError.self) { try fixture.projector().build(upTo: 1, at: path) }
    try expectEqual(Data(contentsOf: URL(fileURLWithPath: path)), Data([1]))
  }

  private func filters(_ request: ReportRequest) throws -> JSONValue {
    var writer = JSONWriter()
    request.write(to: &writer)
    return try JSONValue(writer.bytes)
  }

  @Test(arguments: [
    "revenue", "revenue --by period,app,product,country,environment,basis --environment all",
    "revenue --by period --period week --timezone Europe/Berlin --include-pending",
    "revenue --in EUR --refunds sale-date --environment all", "journal --environment all",
    "journal --in USD --include-pending", "sales --environment all --include-pending",
    "exceptions --environment all", "exceptions --in EUR --include-pending",
    "receipts --environment all", "users --environment all --include-pending",
  ])
  func filtersAreReadAsTheyWereWritten(_ line: String) throws {
    let request = try ReportWords(line).request
    let written = try filters(request)
    let read = try ReportRequest(request.kind, filters: written)
    try expectEqual(filters(read), written)
  }

  @Test func daysOfFiltersAreRead() throws {
    let text = """
      {"by":["country"],"period":"day","refunds":"event-date","timezone":"UTC","from":"2026-01-02",\
      "to":"2026-02-03","environment":["Production","Xcode"],"include_pending":true}
      """
    let read = try ReportRequest(.revenue, filters: try JSONValue(Array(text.utf8)))
    expectEqual(String(decoding: try filters(read).bytes, as: UTF8.self), text)
  }

  @Test(arguments: [
    ("\"country\"", "\"continent\""), ("[\"country\"]", "[\"country\",\"country\"]"),
    ("[\"country\"]", "\"country\""), ("[\"country\"]", "[1]"), ("\"month\"", "\"fortnight\""),
    ("\"event-date\"", "\"today\""), ("\"UTC\"", "\"Mars/Olympus\""), ("\"UTC\"", "null"),
    ("\"from\":null", "\"from\":\"2026-02-30\""), ("\"to\":null", "\"until\":null"),
    ("[\"Production\"]", "\"some\""), ("[\"Production\"]", "[null]"), ("false", "0"),
    ("false", "false,\"in\":\"ABCD\""),
  ])
  func aFilterThatMeansNothingIsRefused(_ part: String, _ wrong: String) throws {
    let text = """
      {"by":["country"],"period":"month","refunds":"event-date","timezone":"UTC","from":null,"to":null,\
      "environment":["Production"],"include_pending":false}
      """
    let changed = text.replacing(part, with: wrong)
    try #require(changed != text)
    let value = try JSONValue(Array(changed.utf8))
    #expect(throws: ProjectionError.self) { try ReportRequest(.revenue, filters: value) }
  }
}
