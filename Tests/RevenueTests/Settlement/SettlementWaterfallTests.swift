// From the receipts of a fiscal month to the bank: hand-worked steps, and that no step is lost (rules S11 to S13).
import Base
import Revenue
import TestSupport
import Testing

extension SettlementSides {
  func waterfalls(_ month: String = "FY2026-P01") throws -> [SettlementWaterfall] {
    let month = try #require(FiscalMonth(parsing: month))
    var waterfalls = SettlementWaterfalls(
      of: month, overview: overviews.first { $0.month == month }?.report)
    for row in try reconciliation().rows { waterfalls.add(row) }
    for row in rowsOfApple(of: month) { waterfalls.add(row) }
    return try waterfalls.all(symbols)
  }

  /// `EUR: sales 49.95, …`, each step with what it adds; sums in capitals.
  func text(_ waterfall: SettlementWaterfall) -> String {
    let steps = waterfall.bars.map { bar in
      let name = "\(bar.step)"
      return "\(bar.step.isSum ? name.uppercased() : name) "
        + amount(bar.micros, waterfall.currency).split(separator: " ")[0]
    }
    let bank = waterfall.proceeds.map { amount($0.value, $0.key) }.sorted()
    return "\(symbols.string(waterfall.currency)): "
      + (steps + (bank.isEmpty ? [] : ["bank " + bank.joined(separator: " ")]))
      .joined(separator: ", ")
  }
}

@Suite struct SettlementWaterfallTests {
  struct Case: CustomTestStringConvertible {
    let testDescription: String
    var ledger: [String] = []
    var apple: [String] = []
    /// Rows of the overview of FY2026-P01, and what was paid.
    var overview: (rows: [String], paid: String)?
    let waterfalls: [String]
  }

  private static let example = [
    "2025-10-01 S 1 DE EUR 9.99", "2025-10-02 S 1 DE EUR 9.99", "2025-10-03 S 1 DE EUR 9.99",
    "2025-10-04 S 1 DE EUR 9.99", "2025-10-05 S 1 DE EUR 9.99", "2025-10-06 S 1 FR EUR 9.99",
    "2025-10-07 S 1 US - -", "2025-11-10 R 1 DE EUR 9.99", "2025-12-01 S 1 DE EUR 9.99",
  ]

  private static let cases = [
    Case(
      testDescription: "the worked example of the rules: late, missing, and another price",
      ledger: example,
      apple: [
        "FY2026-P01 - S 3 DE EUR 9.99 5.88 EUR", "FY2026-P01 - S 1 FR EUR 8.99 5.29 EUR",
        "FY2026-P01 - S 1 US USD 9.99 6.99 USD", "FY2026-P01 - S 1 JP JPY 1500 955 JPY",
        "FY2026-P02 - S 1 DE EUR 9.99 5.88 EUR", "FY2026-P02 - R 1 DE EUR 9.99 5.88 EUR",
        "FY2026-P03 - S 1 DE EUR 9.99 5.88 EUR",
      ],
      waterfalls: [
        "EUR: sales 59.94, settledInOtherMonths -9.99, missingThere -9.99, differences -1.00, "
          + "GROSS 38.96, kept -16.03, SHARE 22.93",
        "JPY: missingHere 1500, GROSS 1500, kept -545, SHARE 955",
        "USD: differences 9.99, GROSS 9.99, kept -3.00, SHARE 6.99",
      ]),
    Case(
      testDescription: "what is open, rounded and returned; and what was sold the month before",
      ledger: [
        "2025-09-27 S 1 DE EUR 2.00", "2025-10-01 S 2 DE EUR 9.99", "2025-10-02 R 1 DE EUR 9.99",
        "2025-10-03 S 3 FR EUR =10.00",
      ],
      apple: [
        "FY2026-P01 - S 1 DE EUR 2.00 1.40 EUR", "FY2026-P01 - S 1 DE EUR 9.99 6.99 EUR",
        "FY2026-P01 - S 1 DE EUR 1.00 0.70 EUR type=1F",
      ],
      waterfalls: [
        "EUR: sales 29.98, returns -9.99, open -9.999999, rounding -0.000001, "
          + "soldInOtherMonths 2.00, apps 1.00, GROSS 12.99, kept -3.90, SHARE 9.09"
      ]),
    Case(
      testDescription: "another currency of the price, and of the share",
      ledger: ["2025-10-01 S 1 DE EUR 9.99"],
      apple: [
        "FY2026-P01 - S 1 DE USD 10.99 7.00 USD", "FY2026-P01 - S 2 BR BRL 20.00 2.50 USD",
      ],
      waterfalls: [
        "BRL: missingHere 40.00, GROSS 40.00, converted -40.00, SHARE 0.00",
        "EUR: sales 9.99, differences -9.99, GROSS 0.00, SHARE 0.00",
        "USD: differences 10.99, GROSS 10.99, kept -3.99, converted 5.00, SHARE 12.00",
      ]),
    Case(
      testDescription: "taxes and adjustments, a sum that is not explained, and a row that waits",
      apple: ["FY2026-P01 - S 1 DE EUR 120.00 100.00 EUR"],
      overview: (
        [
          "EUR 1.00 100.00 10.00 -2.00 -5.00 104.50 102.50 EUR", "JPY 0 9 0 0 0 9 - -",
          "CHF 0 7.00 0 0 0 7.00 6.00 EUR",
        ], "108.50"
      ),
      waterfalls: [
        "CHF: GROSS 0.00, SHARE 0.00, notInReports 7.00, OWED 7.00, PAID 7.00, bank 6.00 EUR",
        "EUR: missingHere 120.00, GROSS 120.00, kept -20.00, SHARE 100.00, balance 1.00, "
          + "inputTax 10.00, adjustments -2.00, withheld -5.00, otherwise 0.50, OWED 104.50, "
          + "PAID 104.50, bank 102.50 EUR",
        "JPY: GROSS 0, SHARE 0, notInReports 9, OWED 9, notPaid -9, PAID 0",
      ]),
    Case(testDescription: "a month without anything has none", waterfalls: []),
  ]

  @Test(arguments: cases) func waterfalls(_ test: Case) throws {
    var sides = SettlementSides()
    for line in test.ledger { try sides.line(line) }
    for row in test.apple { try sides.row(row) }
    if let (rows, paid) = test.overview {
      try sides.overview("FY2026-P01", EntriesTests.overview(rows, paid: paid))
    }
    expectEqual(try sides.waterfalls().map { sides.text($0) }, test.waterfalls)
  }

  @Test func eachStepBeginsWhereTheOneBeforeEnds() throws {
    var sides = SettlementSides()
    for line in Self.example { try sides.line(line) }
    try sides.row("FY2026-P01 - S 3 DE EUR 9.99 5.88 EUR")
    for waterfall in try sides.waterfalls() {
      var total: Int128 = 0
      for bar in waterfall.bars {
        expectEqual(bar.fromMicros, bar.step.isSum ? 0 : total)
        total = bar.fromMicros + bar.micros
      }
    }
  }

  @Test func whatIsOpenOrMissingIsCountedByMonth() throws {
    var sides = SettlementSides()
    for line in Self.example { try sides.line(line) }
    for row in [
      "FY2026-P01 - S 3 DE EUR 9.99 5.88 EUR", "FY2026-P01 - S 1 JP JPY 1500 955 JPY",
      "FY2026-P02 - R 1 DE EUR 9.99 5.88 EUR",
    ] {
      try sides.row(row)
    }
    let rests = SettlementRests(try sides.reconciliation().rows).all(sides.symbols)
    let found = rests.map { rest in
      let sums = SettlementRests.classes.compactMap { kind in
        rest.sums[kind].map { "\(kind.word) \($0.units) \(sides.amount($0.micros, rest.currency))" }
      }
      return "\(Period(.fiscalMonth, ordinal: Int(rest.month))): \(sums.joined(separator: ", "))"
    }
    expectEqual(
      found,
      [
        "FY2026-P03: not_reported 1 9.99 EUR", "FY2026-P01: open 3 29.97 EUR",
        "FY2026-P01: missing_here 1 1500 JPY", "FY2026-P01: open 1 0 ",
      ])
  }
}
