// Matching: which units each step takes, and that none is lost, doubled or made up (settlement rules S8 to S12).
import Revenue
import TestSupport
import Testing

@Suite struct SettlementMatchingTests {
  struct Case: CustomTestStringConvertible {
    let testDescription: String
    let ledger: [String]
    let apple: [String]
    let rows: [String]

    init(_ description: String, ledger: [String], apple: [String], _ rows: [String]) {
      testDescription = description
      (self.ledger, self.apple, self.rows) = (ledger, apple, rows)
    }
  }

  // P01 is 2025-09-28 to 11-01, P02 11-02 to 11-29, P03 11-30 to 12-27, P04 12-28 to 2026-01-24.
  private static let cases = [
    Case(
      "without a day: the month itself, the one before, the first two days of the next, two before",
      ledger: [
        "2025-10-01 S 1 DE EUR 9.99", "2025-11-05 S 1 DE EUR 9.99", "2025-12-05 S 1 DE EUR 9.99",
        "2025-12-29 S 2 DE EUR 9.99", "2025-12-30 S 1 DE EUR 9.99",
      ],
      apple: ["FY2026-P03 - S 6 DE EUR 9.99"],
      [
        "matched 1 P03 P03", "settled_later 1 P01 P03", "settled_later 1 P02 P03",
        "settled_earlier 2 P04 P03", "missing_here 1 - P03", "not_reported 1 P04 -",
      ]),
    Case(
      "with a day: its month, the last two days of the one before, the first two of the next",
      ledger: [
        "2025-11-27 S 1 DE EUR 9.99", "2025-11-28 S 1 DE EUR 9.99", "2025-12-05 S 1 DE EUR 9.99",
        "2025-12-29 S 1 DE EUR 9.99", "2025-12-30 S 1 DE EUR 9.99",
      ],
      apple: ["FY2026-P04 2025-12-05 S 9 DE EUR 9.99"],
      [
        "matched 1 P04 P04", "settled_later 1 P02 P04", "settled_later 1 P03 P04",
        "missing_here 6 - P04", "open 1 P04 -", "not_reported 1 P02 -",
      ]),
    Case(
      "an unlimited step leaves as many early units as it can",
      ledger: ["2025-11-30 S 2 DE EUR 9.99", "2025-12-05 S 2 DE EUR 9.99"],
      apple: ["FY2026-P03 - S 3 DE EUR 9.99", "FY2026-P02 - S 2 DE EUR 9.99"],
      ["settled_earlier 1 P03 P02", "missing_here 1 - P02", "matched 3 P03 P03"]),
    Case(
      "early units that one of Apple's cells took are not there for the next",
      ledger: ["2025-11-30 S 2 DE EUR 9.99", "2025-12-05 S 2 DE EUR 9.99"],
      apple: ["FY2026-P02 - S 2 DE EUR 9.99", "FY2026-P03 2025-11-05 S 1 DE EUR 9.99"],
      ["settled_earlier 2 P03 P02", "missing_here 1 - P03", "open 2 P03 -"]),
    Case(
      "what has no price here, then another price, another currency, another country",
      ledger: [
        "2025-10-01 S 1 DE - -", "2025-10-01 S 1 DE EUR 8.99", "2025-10-01 S 1 DE USD 10.99",
        "2025-10-01 S 1 FR EUR 9.99",
      ],
      apple: ["FY2026-P01 - S 5 DE EUR 9.99"],
      [
        "unpriced_here 1 P01 P01", "price_differs 1 P01 P01", "currency_differs 1 P01 P01",
        "country_differs 1 P01 P01", "missing_here 1 - P01",
      ]),
    Case(
      "passes B to E stay within the month; a Return is no Sale",
      ledger: [
        "2025-10-31 S 1 DE EUR 8.99", "2025-11-05 R 1 DE EUR 9.99",
      ],
      apple: ["FY2026-P02 - S 1 DE EUR 9.99"],
      ["missing_here 1 - P02", "open 1 P02 -", "not_reported 1 P01 -"]),
    Case(
      "rows that take each other away leave no row; more returned than sold is missing here",
      ledger: ["2025-10-01 S 1 DE EUR 9.99"],
      apple: [
        "FY2026-P01 - S 2 DE EUR 9.99", "FY2026-P01 - S -2 DE EUR 9.99",
        "FY2026-P01 - S -1 FR EUR 9.99",
      ],
      ["missing_here -1 - P01", "open 1 P01 -"]),
    Case(
      "a refund of no whole unit is a unit at its own amount",
      ledger: ["2025-10-01 R 0 DE EUR 9.99"], apple: [], ["not_reported 1 P01 -"]),
  ]

  @Test(arguments: cases) func steps(_ test: Case) throws {
    var sides = SettlementSides()
    for line in test.ledger { try sides.line(line) }
    for row in test.apple { try sides.row(row) }
    expectEqual(try sides.rows().sorted(), test.rows.sorted())
  }

  @Test("whatever both sides hold, every unit and amount is in the rows once")
  func identity() throws {
    var random = SeededRandom()
    print("seed \(random.seed)")
    for _ in 0..<300 {
      var sides = SettlementSides()
      let days = [
        "2025-09-28", "2025-10-15", "2025-11-01", "2025-11-02", "2025-11-29", "2025-12-10",
      ]
      func words(_ random: inout SeededRandom) -> String {
        "\(random.pick(["S", "R"])) \(random.below(4) + 1) \(random.pick(["DE", "FR"])) "
      }
      for _ in 0..<random.below(12) {
        let price = random.pick(["EUR 9.99", "EUR 0", "USD 9.99", "EUR 8.99", "- -"])
        try sides.line("\(random.pick(days)) \(words(&random))\(price)")
      }
      for _ in 0..<random.below(8) {
        let price = random.pick(["EUR 9.99", "EUR 0", "USD 9.99", "QQQ 5"])
        let day = random.chance(percent: 50) ? "-" : random.pick(days)
        try sides.row(
          "\(random.pick(["FY2026-P01", "FY2026-P02", "FY2026-P03"])) \(day) \(words(&random))\(price)"
        )
      }
      // They throw unless the rows add up to both sides, and the steps to Apple's.
      _ = try sides.rows()
      for month in ["FY2026-P01", "FY2026-P02", "FY2026-P03"] { _ = try sides.waterfalls(month) }
    }
  }
}
