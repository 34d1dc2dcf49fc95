// Additional projections: the documented example, and that they are kept like the standard ones.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

/// Counts events by type and day of recording: a fold over events, whose rows grow.
private struct EventCounts: Projection {
  let name = "event_counts"
  var version = 1
  var tables = [
    TableDefinition("event_counts", columns: "type TEXT PRIMARY KEY, events INTEGER, bytes INTEGER")
  ]
  var views: [ViewDefinition] = []

  func fold(_ event: EventLine, data: UnsafeRawBufferPointer, into rows: ProjectionRows) throws {
    try rows.insert(
      in: "event_counts",
      [.text(String(decoding: event.type, as: UTF8.self)), .integer(1), .integer(data.count)],
      onConflict: """
        (type) DO UPDATE SET events = events + excluded.events, bytes = bytes + excluded.bytes
        """)
  }
}

/// Refuses every sale.
private struct Refusing: Projection {
  struct Refusal: Error, CustomStringConvertible { let description = "no sale is good enough" }

  let name = "refusing"
  let version = 1
  let tables: [TableDefinition] = []
  func fold(_ sale: FoldedSale, into rows: ProjectionRows) throws { throw Refusal() }
}

@Suite struct AdditionalProjectionTests {
  private static let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("docs/projections.md")
  private static let example = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("MonthlyActivePayers.swift")

  @Test func theDocumentShowsTheExampleThatIsCompiledHere() throws {
    let document = try String(contentsOf: Self.document, encoding: .utf8)
    let code = try String(contentsOf: Self.example, encoding: .utf8)
    #expect(document.contains("```swift\n\(code)```\n"))
  }

  private static func payers(_ database: Database) throws -> [String] {
    let rows = try database.prepare(
      "SELECT month || ' ' || country_code || ' ' || payers FROM monthly_active_payers_view ORDER BY 1"
    )
    var result: [String] = []
    while try rows.step() { result.append(rows.text(0)) }
    return result
  }

  @Test func theExampleCountsWhoPaidAndForgetsWhoGotTheMoneyBack() throws {
    let fixture = try LedgerFixture()
    fixture.projections = ProjectionSet([MonthlyActivePayers()])
    let cancelled = row("2", ["cancellation_date_ms": date("2026-01-20")])
    try fixture.append([
      .upload(reply(row("1")), user: "anna", metadata: shorthand("2.00"), receipt: "a"),
      .upload(
        reply(row("2")), country: "FR", user: "bob", metadata: shorthand("2.00"), receipt: "b"),
      .upload(reply(row("3")), user: "anna", metadata: shorthand("2.00"), receipt: "c"),
    ])
    try expectEqual(Self.payers(fixture.current()), ["2026-01 DE 1", "2026-01 FR 1"])
    try fixture.append([
      .upload(reply(cancelled), country: "FR", user: "bob", at: "2026-01-21", receipt: "b")
    ])
    try expectEqual(Self.payers(fixture.current()), ["2026-01 DE 1"])
    try expectEqual(Self.payers(fixture.rebuilt()), ["2026-01 DE 1"])
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func caughtUpInPiecesTheyAreThoseOfARebuild(seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    var random = SeededRandom(seed: seed)
    let fixture = try LedgerFixture()
    fixture.projections = ProjectionSet([MonthlyActivePayers(), EventCounts()])
    for _ in 0..<12 {
      try fixture.append(generator.steps(Int.random(in: 1...8, using: &random)))
      _ = try fixture.current()
    }
    expectEqual(fixture.notices, [])
    let caughtUp = try fixture.current().dump()
    for name in ["monthly_active_payers_sales", "event_counts"] {
      #expect(caughtUp.first { $0.name == name }?.rows.isEmpty == false)
    }
    let counted = try fixture.current().integer("SELECT sum(events) FROM event_counts")
    expectEqual(counted, Int64(fixture.eventCount))
    #expect(try fixture.projector().compare(.everything)?.isEmpty == true)
    try expectEqual(fixture.rebuilt().dump(), caughtUp)
  }

  @Test func aNewOneAndANewVersionAreNoticedAndBuilt() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 3)
    try fixture.append(generator.steps(5))
    _ = try fixture.current()
    let notice = "the projections belong to another version of this program: rebuilding"
    for (step, projection) in [EventCounts(), EventCounts(version: 2)].enumerated() {
      fixture.projections = ProjectionSet([projection])
      #expect(try fixture.projector().existing() == nil)
      #expect(try fixture.projector().list()?.mustBeRebuilt == true)
      let counted = try fixture.current().integer("SELECT sum(events) FROM event_counts")
      expectEqual(counted, Int64(fixture.eventCount))
      expectEqual(fixture.notices, Array(repeating: notice, count: step + 1))
      #expect(try fixture.projector().list()?.mustBeRebuilt == false)
    }
    let list = try #require(try fixture.projector().list())
    let entry = try #require(list.entries.last)
    #expect(entry.version.name == "event_counts" && entry.version.stored == 2)
    try expectEqual(
      fixture.current().integer("SELECT count(*) FROM event_counts"), entry.rowCount.map(Int64.init)
    )
    // And after the projection is removed.
    fixture.projections = .standard
    #expect(try fixture.projector().list()?.entries.last?.version.current == nil)
    _ = try fixture.current()
    expectEqual(fixture.notices.count, 3)
  }

  @Test func anotherTableOrViewOfTheSameVersionIsNoticedAndBuilt() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 3)
    try fixture.append(generator.steps(5))
    fixture.projections = ProjectionSet([EventCounts()])
    _ = try fixture.current()
    expectEqual(fixture.notices, [])
    let view = ViewDefinition("event_counts_view", select: "SELECT type FROM event_counts")
    var withColumn = EventCounts(views: [view])
    withColumn.tables = [
      TableDefinition(
        "event_counts",
        columns: "type TEXT PRIMARY KEY, events INTEGER CHECK (events > 0), bytes INTEGER")
    ]
    for (step, projection) in [EventCounts(views: [view]), withColumn].enumerated() {
      fixture.projections = ProjectionSet([projection])
      #expect(try fixture.projector().existing() == nil)
      let status = try #require(try fixture.projector().status())
      #expect(status.mustBeRebuilt)
      expectEqual(status.versions.filter { !$0.isCurrent }.map(\.name), ["event_counts"])
      // New events would be folded into tables that do not exist.
      try fixture.append(generator.steps(2))
      let counted = try fixture.current().integer("SELECT sum(events) FROM event_counts")
      expectEqual(counted, Int64(fixture.eventCount))
      expectEqual(fixture.notices.count, step + 1)
      #expect(try fixture.projector().status()?.mustBeRebuilt == false)
    }
  }

  @Test func whatAFoldThrowsEndsTheBuildAndIsSaid() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1")), metadata: shorthand("2.00"))])
    _ = try fixture.current()
    fixture.projections = ProjectionSet([Refusing()])
    #expect {
      try fixture.current()
    } throws: { error in
      "\(error)" == "projections: folding a sale: projection refusing: no sale is good enough"
    }
    fixture.projections = .standard
    try expectEqual(fixture.current().integer("SELECT count(*) FROM sales"), 1)
    expectEqual(fixture.projectionNames.filter { $0.contains("building") }, [])
  }
}
