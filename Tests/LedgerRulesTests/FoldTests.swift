// A partitioned fold gives the rows that one ledger's reports have.
import Base
import Foundation
import Ledger
import LedgerRules
import Merge
import Projections
import TestSupport
import Testing

@Suite struct FoldTests {
  private static let reports = [
    "revenue --by period,app,product,country,environment,basis,trust --environment all",
    "revenue --by period --period week --timezone Europe/Berlin --include-pending",
    "revenue --in EUR --refunds sale-date --environment all", "journal --environment all",
    "journal --in USD --include-pending", "sales --environment all --include-pending",
    "exceptions --environment all", "exceptions --in EUR --include-pending",
    "receipts --environment all", "users --environment all --include-pending", "users --in EUR",
    "subscriptions --environment all", "subscriptions --at 2026-02-15",
  ]

  private static func requests() throws -> [ReportRequest] {
    try reports.map { try ReportWords($0).request }
  }

  private static func fixture(seed: UInt64, worlds: Int, steps: Int) throws -> LedgerFixture {
    let fixture = try LedgerFixture()
    try fixture.append(NastyHistory.steps(seed: seed, worldCount: worlds, stepCount: steps))
    return fixture
  }

  private static func bench(
    _ events: [PlacedEvent], ledgers names: [String] = ["shop"]
  ) throws -> FoldBench {
    var bench = try FoldBench(ledgers: names, requests())
    bench.momentMs = events.last.map { ms($0.recordedAt) }
    return bench
  }

  // MARK: One ledger

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func onePartitionOfOneLedgerGivesTheReportsByteForByte(seed: UInt64) throws {
    let fixture = try Self.fixture(seed: seed, worlds: seed % 2 == 0 ? 1 : 4, steps: 150)
    let events = try fixture.placedEvents()
    let bench = try Self.bench(events)
    let folded = try bench.fold(
      events.filter { !$0.isDeclaration }, declarations: events.filter(\.isDeclaration))
    let database = try fixture.rebuilt()
    for (number, table) in folded.tables.enumerated() {
      try expectEqual(
        bench.csv(table.rows, report: number), fixture.csv(bench.requests[number], from: database),
        "\(Self.reports[number])")
    }
    let count = events.count { !$0.isDeclaration }
    #expect(folded.end.hasPrefix("{\"events\":\(count),\"declarations\":\(events.count - count),"))
  }

  /// Without these the tests above would compare little.
  @Test func theHistoriesMeetWhatPartitionsCouldGetWrong() throws {
    var types: Set<String> = []
    for seed in 1...4 as ClosedRange<UInt64> {
      let events = try Self.fixture(seed: seed, worlds: 3, steps: 160).placedEvents()
      let folded = try Self.bench(events).fold(
        events.filter { !$0.isDeclaration }, declarations: events.filter(\.isDeclaration))
      for table in folded.tables {
        #expect(!table.rows.isEmpty, "\(seed): \(table.kind)")
        guard table.kind == .exceptions else { continue }
        for row in table.rows {
          types.insert(row[2] + (row[0].isEmpty ? "" : " once"))
          expectEqual(row[0].isEmpty, row[1].isEmpty)
        }
      }
    }
    #expect(
      types.isSuperset(of: [
        "malformed_event once", "malformed_transaction once", "product_unknown once",
        "reply_not_valid", "reply_mismatch", "price_ambiguous", "transaction_replayed",
        "claimed_by_other_user", "unconverted", "pending_sale", "country_conflict",
      ]), "\(types.sorted())")
  }

  @Test func aLedgerWithoutEventsHasReportsWithoutRows() throws {
    let bench = try Self.bench([])
    let folded = try bench.fold([], declarations: [])
    let fixture = try LedgerFixture()
    let database = try fixture.rebuilt()
    for (number, table) in folded.tables.enumerated() {
      try expectEqual(
        bench.csv(table.rows, report: number), fixture.csv(bench.requests[number], from: database))
    }
  }

  // MARK: Several partitions

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func partitionsPutTogetherGiveWhatOneGives(seed: UInt64) throws {
    let events = try Self.fixture(seed: seed, worlds: 6, steps: 240).placedEvents()
    let numbers = try events.componentNumbers()
    let bench = try Self.bench(events)
    let declarations = events.filter(\.isDeclaration)
    let whole = try bench.fold(events.filter { !$0.isDeclaration }, declarations: declarations)
    for count in [2, 5] {
      let parts = try (0..<count).map { part in
        let own = zip(events, numbers).filter { $1 % count == part && !$0.isDeclaration }.map(\.0)
        return try bench.fold(own, declarations: declarations).tables
      }
      for number in bench.requests.indices {
        let merged = try FoldedTable.merged(parts.map { $0[number] })
        try expectEqual(
          merged, FoldedTable.merged([whole.tables[number]]),
          "\(count) partitions: \(Self.reports[number])")
      }
    }
  }

  @Test func historiesOfSeveralGroupsHaveSeveralComponents() throws {
    let events = try Self.fixture(seed: 3, worlds: 6, steps: 240).placedEvents()
    let sizes = Dictionary(grouping: try events.componentNumbers()) { $0 }.mapValues(\.count)
    #expect(sizes.values.count { $0 > 10 } >= 5)
  }

  // MARK: Several ledgers

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func severalLedgersGiveWhatTheirMergeGives(seed: UInt64) throws {
    let names = ["eu", "us", "a:b"]
    let fixtures = try names.indices.map { index in
      let fixture = try LedgerFixture(id: UInt8(index + 1), origin: "shop.example/\(index)")
      // They share ids of receipts and transactions, and times.
      try fixture.append(
        NastyHistory.steps(seed: seed &+ UInt64(index) * 1009, worldCount: 3, stepCount: 60))
      return fixture
    }
    let place = try TemporaryDirectory()
    let report = try Merge().run(fixtures.map(\.directory), into: place.path("all"))
    let merged = try LedgerFixture(opening: place.path("all"), in: place).placedEvents()
    let sources = try merged.map { try Self.source($0) }
    let events = try fixtures.enumerated()
      .flatMap { try $1.placedEvents(ledger: $0) }
      .filter { ms($0.recordedAt) < report.beforeMs }
      .sorted { ($0.recordedAt, $0.ledger, $0.position) < ($1.recordedAt, $1.ledger, $1.position) }
    var bench = try Self.bench(events, ledgers: names)
    let single = try Self.bench(merged)
    let whole = try single.fold(
      merged.filter { !$0.isDeclaration }, declarations: merged.filter(\.isDeclaration))
    bench.momentMs = single.momentMs
    let folded = try bench.fold(
      events.filter { !$0.isDeclaration }, declarations: events.filter(\.isDeclaration))
    for (number, table) in folded.tables.enumerated() {
      let expected = try Self.mapped(whole.tables[number], sources, names)
      expectEqual(table.rows, expected, "\(Self.reports[number])")
    }
    let sales = try #require(bench.requests.firstIndex { $0.kind == .journal })
    let csv = try bench.csv(folded.tables[sales].rows, report: sales)
    #expect(
      csv.split(separator: "\n").dropFirst().allSatisfy { line in
        names.contains { line.contains(",\($0):") }
      })
  }

  /// Where a merged event comes from.
  private static func source(_ event: PlacedEvent) throws -> PlacedEvent {
    var event = event
    let data = try JSONValue(Array(event.line.utf8))["data"]
    guard let source = data?["merged"], let origin = source["ledger"]?.stringValue else {
      return event
    }
    event.ledger = Int(String(origin.suffix(1))) ?? -1
    event.position = Int(try #require(source["position"]?.integerValue))
    return event
  }

  /// The rows of the merged ledger with the positions of its sources.
  private static func mapped(
    _ table: FoldedTable, _ sources: [PlacedEvent], _ names: [String]
  ) throws -> [[String]] {
    func place(_ text: String) throws -> PlacedEvent {
      sources[try #require(Int(text.dropFirst(2)))]
    }
    return try table.rows.map { row in
      try zip(table.columns, row).map { column, cell in
        if cell.isEmpty { return cell }
        switch column.content {
        case .position:
          let event = try place(cell)
          return "\(event.ledger):\(event.position)"
        case .positions:
          let places = try JSONSerialization.jsonObject(with: Data(cell.utf8)) as? [String] ?? []
          let moved = try places.map { try place($0) }
          return "[" + moved.map { "\"\($0.ledger):\($0.position)\"" }.joined(separator: ",") + "]"
        default:
          guard column.name == "detail", let range = cell.range(of: " at "),
            let position = Int(cell[range.upperBound...])
          else { return cell }
          let event = sources[position]
          return cell[..<range.upperBound] + "\(names[event.ledger]):\(event.position)"
        }
      }
    }
  }
}
