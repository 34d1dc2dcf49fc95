// What a rebuild would change: every difference is found, and reported by table, row, month and
// sale.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct ComparisonTests {
  private static let steps: [TestEvent] = [
    .upload(reply(row("1")), user: "anna", metadata: shorthand("2.00"), receipt: "a"),
    .upload(
      reply(row("2", on: "2026-02-05")), country: "FR", user: "bob", metadata: shorthand("3.00"),
      receipt: "b"),
    .upload(reply(row("3")), user: "anna", receipt: "c"),
    .upload(
      reply(row("4"), status: 21003), receipt: "d", outcome: .invalid,
      status: 21003),
    .prices(["gems - EUR 3.00 2026-01-01"]),
  ]

  private static func folded() throws -> LedgerFixture {
    let fixture = try LedgerFixture()
    try fixture.append(steps)
    _ = try fixture.current()
    return fixture
  }

  private static func comparison(_ fixture: LedgerFixture) throws -> ProjectionComparison {
    try #require(try fixture.projector().compare(.everything))
  }

  /// `sales +1 -0 ~2`, for each table that differs.
  private static func summary(_ differences: [TableDifference]) -> [String] {
    differences.filter { !$0.isEmpty }.map {
      "\($0.name) +\($0.added) -\($0.removed) ~\($0.changed)"
    }
  }

  private static func tamper(_ fixture: LedgerFixture, _ sql: String) throws {
    try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(sql)
  }

  @Test func whatIsEqualIsEqualAlsoBehindTheLogAndNothingIsLeft() throws {
    let fixture = try Self.folded()
    #expect(try Self.comparison(fixture).isEmpty)
    let folded = try Self.comparison(fixture).position
    // Newer events are not in the projections, and not a difference.
    try fixture.append([.upload(reply(row("9")), metadata: shorthand("9.00"), receipt: "z")])
    let behind = try Self.comparison(fixture)
    #expect(behind.isEmpty && behind.position == folded)
    let left = fixture.projectionNames.filter { !$0.hasPrefix("1.sqlite") }
    expectEqual(left, ["lock", "past"])
    let past = fixture.path + "/projections/past"
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: past), ["lock"])
    expectEqual(fixture.notices, [])
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func caughtUpProjectionsEqualARebuild(seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    let fixture = try LedgerFixture()
    for _ in 0..<6 {
      try fixture.append(generator.steps(7))
      _ = try fixture.current()
    }
    let comparison = try Self.comparison(fixture)
    #expect(comparison.isEmpty, "\(Self.summary(comparison.tables)) \(comparison.definitions)")
    #expect(comparison.revenue?.isEmpty == true)
  }

  @Test(arguments: [
    ("DELETE FROM sales WHERE id = 0", ["sales +1 -0 ~0"]),
    ("UPDATE sales SET quantity = quantity + 1 WHERE id < 2", ["sales +0 -0 ~2"]),
    ("UPDATE sales SET country = NULL", ["sales +0 -0 ~3"]),
    ("DELETE FROM exceptions", ["exceptions +1 -0 ~0"]),
    ("INSERT INTO exceptions SELECT * FROM exceptions", ["exceptions +0 -1 ~0"]),
    ("UPDATE exceptions SET position = 0", ["exceptions +1 -1 ~0"]),
    ("UPDATE users SET user_identifier = 'x' || user_identifier", ["users +0 -0 ~2"]),
    (
      "UPDATE uploads SET metadata = CAST(metadata AS BLOB) WHERE position = 0",
      ["uploads +0 -0 ~1"]
    ),
    ("UPDATE verifications SET status = '0' || status WHERE 0", []),
    ("UPDATE price_list SET ordinal = 7", ["price_list +1 -1 ~0"]),
    (
      "DELETE FROM sales; DELETE FROM users",
      ["sales +3 -0 ~0", "users +2 -0 ~0"]
    ),
    ("INSERT INTO sale_transactions VALUES(0, 'x')", ["sale_transactions +0 -1 ~0"]),
    ("ALTER TABLE users ADD COLUMN score INTEGER", ["users +0 -0 ~0"]),
    ("CREATE TABLE mine(id INTEGER PRIMARY KEY); INSERT INTO mine VALUES(1)", ["mine +0 -1 ~0"]),
    ("DROP TABLE rates", ["rates +0 -0 ~0"]),
  ])
  func everyDifferenceIsFoundInItsTable(_ sql: String, _ expected: [String]) throws {
    let fixture = try Self.folded()
    try Self.tamper(fixture, sql)
    let comparison = try #require(try fixture.projector().compare(.tables))
    expectEqual(Self.summary(comparison.tables), expected)
    expectEqual(comparison.isEmpty, expected.isEmpty)
    #expect(comparison.views.isEmpty && comparison.revenue == nil)
  }

  @Test(arguments: [
    ("DROP INDEX sales_key", "sales_key"),
    ("DROP VIEW user_view; CREATE VIEW user_view AS SELECT 1 AS user_identifier", "user_view"),
  ])
  func definitionsAreCompared(_ sql: String, _ name: String) throws {
    let fixture = try Self.folded()
    try Self.tamper(fixture, sql)
    let comparison = try #require(try fixture.projector().compare(.tables))
    expectEqual(comparison.definitions, [name])
    #expect(!comparison.isEmpty)
  }

  @Test func rowsAreNamedByTheirKeysAndNoUserIsNamed() throws {
    let fixture = try Self.folded()
    try Self.tamper(
      fixture,
      """
      UPDATE sales SET quantity = 5, sale_key = 'k' WHERE id = 1;
      UPDATE users SET user_identifier = 'zebulon' WHERE id = 0
      """)
    let comparison = try Self.comparison(fixture)
    let sales = try #require(comparison.tables.first { $0.name == "sales" })
    let row = try #require(sales.rows.first)
    #expect(sales.rows.count == 1 && sales.changedColumns == ["quantity": 1, "sale_key": 1])
    #expect(row.change == .changed && row.key.map(\.column) == ["id"] && row.key[0].value == "1")
    expectEqual(row.columns.map(\.name), ["sale_key", "quantity"])
    #expect(row.columns.map(\.before) == [nil, 5] && row.columns.map(\.after) == [nil, 1])
    let users = try #require(comparison.views.first { $0.name == "user_view" })
    #expect(users.added == 1 && users.removed == 1)
    #expect(users.rows.allSatisfy { $0.key.isEmpty })
    #expect(!"\(comparison)".contains("anna") && !"\(comparison)".contains("zebulon"))
  }

  @Test func revenueIsToldByMonthCountryCurrencyAndSale() throws {
    let fixture = try Self.folded()
    // One sale with a higher price, one moved to another month, one unpriced sale with a price.
    try Self.tamper(
      fixture,
      """
      UPDATE sales SET unit_price_micros = 2500000, amount_micros = 2500000 WHERE id = 0;
      UPDATE sales SET sale_date_ms = \(ms("2026-03-01")) WHERE id = 1;
      UPDATE sales SET unit_price_micros = 1000000, amount_micros = 1000000, price_basis = 4,
        currency = (SELECT currency FROM sales WHERE id = 0) WHERE id = 2
      """)
    let revenue = try #require(try Self.comparison(fixture).revenue)
    let told = revenue.rows.map { row in
      let place = "\(row.place.month) \(row.place.countryCode) \(row.place.currency ?? "none")"
      return "\(place): \(row.before.netUnits) \(row.before.netMicros) to "
        + "\(row.after.netUnits) \(row.after.netMicros) by "
        + row.sales.map(\.saleKey).joined(separator: ",")
    }
    expectEqual(
      told,
      [
        "2026-01 DE none: 0 0 to 1 0 by 3",
        "2026-01 DE EUR: 2 3500000 to 1 2000000 by 1,3",
        "2026-02 FR EUR: 0 0 to 1 3000000 by 2",
        "2026-03 FR EUR: 1 3000000 to 0 0 by 2",
      ])
  }

  @Test func onlySoManyRowsAreKeptAndAllAreCounted() throws {
    let fixture = try Self.folded()
    try Self.tamper(fixture, "DELETE FROM sales")
    for limit in [0, 1, 2] {
      let comparison = try #require(
        try fixture.projector().compare(.everything, rowLimit: limit))
      let sales = try #require(comparison.tables.first { $0.name == "sales" })
      #expect(sales.added == 3 && sales.rows.count == limit)
      #expect(comparison.revenue?.rows.allSatisfy { $0.sales.count <= limit } == true)
      expectEqual(comparison.revenue?.rows.map(\.saleCount), [1, 1, 1])
    }
  }

  @Test func anotherHistoryIsADifference() throws {
    let fixture = try Self.folded()
    let other = try LedgerFixture()
    try other.append(Array(Self.steps.dropLast(2)))
    try FileManager.default.removeItem(atPath: fixture.path + "/log")
    try FileManager.default.copyItem(atPath: other.path + "/log", toPath: fixture.path + "/log")
    let comparison = try Self.comparison(fixture)
    #expect(!comparison.isOfThisLog && !comparison.isEmpty)
    expectEqual(comparison.position, other.eventCount)
  }

  @Test func ofOtherVersionsWhatIsNewIsShown() throws {
    let fixture = try Self.folded()
    fixture.projections = ProjectionSet([MonthlyActivePayers()])
    let comparison = try Self.comparison(fixture)
    #expect(!comparison.isSameVersions && !comparison.isEmpty)
    expectEqual(Self.summary(comparison.tables), ["monthly_active_payers_sales +3 -0 ~0"])
    expectEqual(Self.summary(comparison.views), ["monthly_active_payers_view +2 -0 ~0"])
    #expect(comparison.revenue?.isEmpty == true)
    // Nothing was put in use.
    fixture.projections = .standard
    #expect(try fixture.projector().existing()?.path.hasSuffix("/1.sqlite") == true)
  }

  @Test func interruptedItLeavesNothingBehind() throws {
    let fixture = try Self.folded()
    let projector = Projector(
      try LogReader(fixture.directory), observer: Projector.Observer(isCancelled: { true }))
    #expect {
      try projector.compare(.everything)
    } throws: { error in
      if case ProjectionError.interrupted = error { true } else { false }
    }
    expectEqual(fixture.projectionNames.filter { $0.contains("building") }, [])
  }

  @Test(arguments: [Projector.ComparisonScope.tables, .everything])
  func interruptedAfterTheBuildItProvesNothing(_ scope: Projector.ComparisonScope) throws {
    let fixture = try Self.folded()
    try Self.tamper(fixture, "UPDATE sales SET quantity = quantity + 1")
    var isBuilt = false
    let projector = Projector(
      try LogReader(fixture.directory),
      observer: Projector.Observer(
        progress: { isBuilt = $0.foldedEvents == $0.totalEvents }, isCancelled: { isBuilt }))
    #expect {
      try projector.compare(scope)
    } throws: { error in
      if case ProjectionError.interrupted = error { true } else { false }
    }
    #expect(isBuilt)
  }

  @Test func withoutProjectionsThereIsNothingToCompare() throws {
    let fixture = try LedgerFixture()
    #expect(try fixture.projector().compare(.everything) == nil)
  }
}
