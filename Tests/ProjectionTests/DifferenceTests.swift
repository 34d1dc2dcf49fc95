// Revenue and journal compared between two states of the books: in a time zone, for some days, in a currency.
import Base
import Ledger
import Projections
import Revenue
import TestSupport
import Testing

@Suite struct DifferenceTests {
  /// The options of a comparison, in words as `export` takes them.
  struct Asked: CustomTestStringConvertible, Sendable {
    let words: String
    var testDescription: String { words }

    func request(_ report: String) throws -> ReportRequest {
      try ReportWords("\(report) \(words)").request
    }

    func revenue(_ older: Database, _ newer: Database) throws -> RevenueDifference {
      try RevenueDifference(from: older, to: newer, lines("revenue"))
    }

    func journal(_ older: Database, _ newer: Database) throws -> JournalDifference {
      try JournalDifference(from: older, to: newer, lines("journal"))
    }

    private func lines(_ report: String) throws -> ComparedLines {
      let request = try request(report)
      return ComparedLines(of: request.environments?.first ?? "", request)
    }
  }

  private static let asked = [
    "--environment Production", "--environment Sandbox --in EUR",
    "--environment Production --timezone Asia/Tokyo --in USD",
    "--environment Production --timezone America/New_York --from 2026-01-02 --to 2026-01-31",
    "--environment Production --in EUR --rates-max-age 5 --from 2026-01-03",
    "--environment Production --in JPY --to 2026-01-04",
  ].map(Asked.init)

  /// Net and units of each month, country and currency, as in the revenue report.
  private func figures(
    _ asked: Asked, _ fixture: LedgerFixture, _ database: Database
  ) throws -> [[String]: [String]] {
    var request = try asked.request("revenue")
    request.dimensions = [.period, .country]
    let rows = CSVText.cells(try fixture.csv(request, from: database)).dropFirst()
    var figures: [[String]: [String]] = [:]
    for row in rows {
      let units = try [3, 5, 7].map { try #require(Int(row[$0])) }
      figures[Array(row[..<3])] = [row[9], "\(units[0] - units[1] + units[2])"]
    }
    return figures
  }

  private func figures(_ side: RevenueDifference.Figures, _ place: RevenueDifference.Place)
    -> [String]
  {
    let currency = place.currency.flatMap { Currency.parse($0) }
    if currency == nil { return ["", "\(side.netUnits)"] }
    return [Amount.text(micros: side.netMicros, currency: currency), "\(side.netUnits)"]
  }

  @Test(arguments: asked, 1...3 as ClosedRange<UInt64>)
  func bothSidesAreTheFiguresOfTheirReports(_ asked: Asked, seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    let fixture = try LedgerFixture()
    try fixture.append(generator.steps(30))
    try fixture.append([
      .rates(source: "bank", ["2026-01-01 EUR USD 1.25", "2026-01-02 EUR JPY 160"])
    ])
    let size = fixture.eventCount
    try fixture.append([.rates(source: "bank", ["2026-01-03 EUR USD 1.5"])])
    try fixture.append(generator.steps(30))
    let projector = try fixture.projector()
    let older = try projector.books(at: size)
    let newer = try projector.books(at: fixture.eventCount)
    let before = try figures(asked, fixture, older)
    let after = try figures(asked, fixture, newer)
    let difference = try asked.revenue(older, newer)
    var shown: Set<[String]> = []
    for row in difference.rows {
      let place = [row.place.month, row.place.countryCode, row.place.currency ?? ""]
      shown.insert(place)
      let none = Self.none(row.place.currency)
      #expect(figures(row.before, row.place) == before[place] ?? none, "\(place)")
      #expect(figures(row.after, row.place) == after[place] ?? none, "\(place)")
    }
    for place in Set(before.keys).union(after.keys).subtracting(shown) {
      // Figures that only one side has may be zero.
      let none = Self.none(place[2])
      #expect(before[place] ?? none == after[place] ?? none, "\(place)")
    }
    // The lines add up to the change of the sums.
    let journal = try asked.journal(older, newer)
    func net(_ line: JournalDifference.Line?) -> Int128 { Int128(line?.amountMicros ?? 0) }
    func isIn(_ line: JournalDifference.Line?, _ currency: Currency) -> Bool {
      line?.currency == currency
    }
    for currency in Set(journal.entries.flatMap { [$0.before?.currency, $0.after?.currency] })
      .compactMap({ $0 })
    {
      var sum: Int128 = 0
      for entry in journal.entries {
        if isIn(entry.after, currency) { sum += net(entry.after) }
        if isIn(entry.before, currency) { sum -= net(entry.before) }
      }
      let rows = difference.rows.filter { $0.place.currency == currency.description }
      expectEqual(rows.reduce(0) { $0 + $1.after.netMicros - $1.before.netMicros }, sum)
    }
  }

  /// The figures of a month, country and currency without lines.
  private static func none(_ currency: String?) -> [String] {
    let currency = currency.flatMap { Currency.parse($0) }
    return [currency == nil ? "" : Amount.text(micros: Int128(0), currency: currency), "0"]
  }

  /// A sale of 2.00 USD on 10 January, with declarations before and after a moment.
  @Test(
    "a rate declared since is a difference, and is named",
    arguments: [
      ("none", ["2026-01-09 EUR USD 2"], [], []),
      (
        "one for a currency that no line has", ["2026-01-09 EUR USD 2"], ["2026-01-09 EUR JPY 2"],
        []
      ),
      (
        "the same once more", ["2026-01-09 EUR USD 2"], ["2026-01-09 EUR USD 2"], []
      ),
      (
        "a nearer day", ["2026-01-09 EUR USD 2"], ["2026-01-10 EUR USD 4"],
        ["2026-01 DE EUR 1.00 0.50 1"]
      ),
      (
        "a correction", ["2026-01-09 EUR USD 2"], ["2026-01-09 EUR USD 1"],
        ["2026-01 DE EUR 1.00 2.00 1"]
      ),
      (
        "the first", ["2026-01-09 EUR JPY 2"], ["2026-01-09 EUR USD 1"],
        ["2026-01 DE EUR 0.00 2.00 1", "2026-01 DE USD 2.00 0.00 1"]
      ),
      ("one that is too late", ["2026-01-09 EUR USD 2"], ["2026-01-11 EUR USD 4"], []),
    ] as [(String, [String], [String], [String])])
  func aRateDeclaredSinceIsADifference(
    _ situation: String, _ before: [String], _ since: [String], _ expected: [String]
  ) throws {
    let fixture = try LedgerFixture()
    let metadata = prices(entry(transaction: "1", "2.00", "USD"))
    try fixture.append([
      .upload(reply(row("1", on: "2026-01-10")), metadata: metadata),
      .rates(source: "bank", before),
    ])
    let size = fixture.eventCount
    if !since.isEmpty { try fixture.append([.rates(source: "bank", since)]) }
    let projector = try fixture.projector()
    let older = try projector.books(at: size)
    let newer = try projector.books(at: fixture.eventCount)
    let asked = Asked(words: "--environment Production --in EUR")
    let revenue = try asked.revenue(older, newer)
    let rows = revenue.rows.map { row in
      let sides = [row.before, row.after].map { figures($0, row.place)[0] }
      return
        ([row.place.month, row.place.countryCode, row.place.currency ?? ""] + sides
        + ["\(row.saleCount)"]).joined(separator: " ")
    }
    expectEqual(rows, expected)
    let journal = try asked.journal(older, newer)
    expectEqual(journal.entries.map(\.change), (expected.isEmpty ? [] : [.changed]))
    expectEqual(journal.entries.map(\.events), (expected.isEmpty ? [] : [[size]]))
    #expect(!journal.entries.contains { !$0.hasOnlyOtherRates })
    let hadRate = before.contains { $0.contains("USD") }
    expectEqual(revenue.ratesBefore.unconvertedCount, (hadRate ? 0 : 1))
    expectEqual(revenue.ratesAfter.unconvertedCount, 0)
    expectEqual(revenue.ratesAfter.used.sources.map(\.name), ["bank"])
    // Nothing is converted unless requested.
    #expect(try RevenueDifference(from: older, to: newer).isEmpty)
    #expect(try JournalDifference(from: older, to: newer).entries.isEmpty)
  }

  /// A sale at 23:30 UTC on 31 January, which in Berlin is February already.
  @Test(
    "days and months are those of the time zone",
    arguments: [
      ("--timezone UTC", ["2026-01"]), ("--timezone Europe/Berlin", ["2026-02"]),
      ("--timezone UTC --to 2026-01-31", ["2026-01"]),
      ("--timezone Europe/Berlin --to 2026-01-31", []),
      ("--timezone Europe/Berlin --from 2026-02-01 --to 2026-02-01", ["2026-02"]),
      ("--timezone UTC --from 2026-02-01", []),
    ])
  func daysAndMonthsAreThoseOfTheZone(_ words: String, _ months: [String]) throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(reply(row("1", on: "2026-01-31T23:30:00Z")), metadata: shorthand("2.00"))
    ])
    let projector = try fixture.projector()
    let older = try projector.books(at: 0)
    let newer = try projector.books(at: fixture.eventCount)
    let asked = Asked(words: "--environment Production \(words)")
    try expectEqual(asked.revenue(older, newer).rows.map(\.place.month), months)
    try expectEqual(asked.journal(older, newer).entries.count, months.count)
  }
}
