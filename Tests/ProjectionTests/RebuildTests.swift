// A fold in one go and a fold in pieces give the same content, whatever the history.
import Projections
import TestSupport
import Testing

@Suite struct RebuildTests {
  private static let reports = [
    "revenue --by period,app,product,country,environment,basis --environment all",
    "revenue --by period --period week --timezone Europe/Berlin --include-pending",
    "revenue --in EUR --refunds sale-date --environment all", "journal --environment all",
    "journal --in USD --include-pending", "sales --environment all --include-pending",
    "exceptions --environment all", "exceptions --in EUR --include-pending",
    "receipts --environment all", "users --environment all --include-pending",
  ]

  /// All tables, and all reports in all formats.
  private struct Content: Equatable {
    var tables: [TableDump]
    var reports: [String]

    init(_ fixture: LedgerFixture, _ database: Database) throws {
      tables = try database.dump()
      reports = []
      for line in RebuildTests.reports {
        let words = try ReportWords(line)
        reports.append(try fixture.csv(words.request, from: database))
        reports.append(try fixture.json(words.request, from: database))
        reports.append(try fixture.ndjson(words.request, from: database))
      }
    }

    func expectSame(as other: Content, _ how: String) {
      for (mine, theirs) in zip(tables, other.tables) where mine != theirs {
        expectEqual(mine.name, theirs.name, "\(how)")
        let onlyMine = Set(mine.rows).subtracting(theirs.rows).sorted().prefix(3)
        let onlyTheirs = Set(theirs.rows).subtracting(mine.rows).sorted().prefix(3)
        Issue.record("\(how): table \(mine.name): \(onlyMine) against \(onlyTheirs)")
      }
      for (mine, theirs) in zip(reports, other.reports) where mine != theirs {
        Issue.record("\(how): a report differs:\n\(mine)\nagainst\n\(theirs)")
      }
      #expect(tables.count == other.tables.count && reports.count == other.reports.count)
    }
  }

  private static let stepCount = 60

  @Test(arguments: 1...5 as ClosedRange<UInt64>)
  func caughtUpInPiecesTheProjectionsAreThoseOfARebuild(seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    let steps =
      generator.steps(Self.stepCount - 3) + [
        .prices(["coins - EUR 3.00 2026-01-01"]),
        .rates(source: "bank", ["2026-01-01 EUR USD 1.2"]), .pending(.unified(.init("9000"))),
      ]
    let whole = try LedgerFixture()
    try whole.append(steps)
    let expected = try Content(whole, whole.rebuilt())
    // A history without content would test nothing.
    for name in [
      "open_uploads", "upload_verdicts", "sales", "later_lines", "exceptions", "pending_receipts",
      "price_list", "rates",
    ] {
      #expect(expected.tables.first { $0.name == name }?.rows.isEmpty == false, "\(name)")
    }
    var random = SeededRandom(seed: seed)
    let random1 = Self.cuts(Self.stepCount) { _ in Int.random(in: 1...20, using: &random) }
    let plans: [(String, [Int])] = [
      ("after each step", Self.cuts(Self.stepCount) { _ in 1 }),
      ("after each 3 steps", Self.cuts(Self.stepCount) { _ in 3 }),
      ("after each 25 steps", Self.cuts(Self.stepCount) { _ in 25 }),
      ("after \(random1) steps", random1),
    ]
    for (how, pieces) in plans {
      let growing = try LedgerFixture()
      var rest = steps[...]
      for piece in pieces {
        try growing.append(Array(rest.prefix(piece)))
        rest = rest.dropFirst(piece)
        _ = try growing.current()
      }
      #expect(growing.notices.isEmpty)
      let content = try Content(growing, growing.current())
      content.expectSame(as: expected, "seed \(seed), caught up \(how)")
      // A rebuild equals what has been caught up.
      try Content(growing, growing.rebuilt()).expectSame(as: expected, "seed \(seed), rebuilt")
    }
  }

  /// One fold that stays alive while others fold now and then: its memory must never differ from the database.
  @Test(arguments: 6...9 as ClosedRange<UInt64>)
  func keptLiveTheProjectionsAreThoseOfARebuild(seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    let steps = generator.steps(Self.stepCount)
    let whole = try LedgerFixture()
    try whole.append(steps)
    let expected = try Content(whole, whole.rebuilt())
    var random = SeededRandom(seed: seed)
    let growing = try LedgerFixture()
    let live = try LiveProjections(growing.directory)
    var rest = steps[...]
    while !rest.isEmpty {
      let piece = Int.random(in: 1...6, using: &random)
      try growing.append(Array(rest.prefix(piece)))
      rest = rest.dropFirst(piece)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: _ = try growing.current()
      case 1: _ = try growing.rebuilt()
      default: break
      }
      try live.catchUp()
      expectEqual(live.position, growing.eventCount)
    }
    #expect(growing.notices.isEmpty)
    let content = try Content(growing, #require(try growing.projector().existing()))
    content.expectSame(as: expected, "seed \(seed), kept live")
  }

  /// What is written before the end must equal what is written at the end.
  @Test(arguments: 10...13 as ClosedRange<UInt64>)
  func writtenBesideTheFoldTheProjectionsAreTheSame(seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    let steps = generator.steps(Self.stepCount) + [.prices(["coins - EUR 3.00 2026-01-01"])]
    // A block for each step: rows are written between blocks.
    let fixture = try LedgerFixture(blockByteCount: 1)
    try fixture.append(steps)
    let expected = try Content(fixture, fixture.rebuilt())
    for (settledEventCount, closingDivisor) in [(0, 1), (1, 2), (8, 1), (30, 5)] {
      let projector = try fixture.projector()
      projector.pace.settledEventCount = settledEventCount
      projector.pace.closingDivisor = closingDivisor
      try projector.rebuild()
      let content = try Content(fixture, #require(try fixture.projector().existing()))
      content.expectSame(
        as: expected,
        "seed \(seed), settled after \(settledEventCount), closing in the last 1/\(closingDivisor)"
      )
    }
  }

  /// Pieces that add up to this many steps.
  private static func cuts(_ count: Int, _ next: (Int) -> Int) -> [Int] {
    var pieces: [Int] = []
    var rest = count
    while rest > 0 {
      pieces.append(min(next(rest), rest))
      rest -= pieces[pieces.count - 1]
    }
    return pieces
  }
}
