// Entries: hand-worked postings, the published month, and that whatever happened every entry balances (S15).
import Base
import Revenue
import TestSupport
import Testing

@Suite struct EntriesTests {
  struct Case: CustomTestStringConvertible {
    let testDescription: String
    var ledger: [String] = []
    var apple: [String] = []
    /// Rows of the overview of FY2026-P01, and what is behind them.
    var overview: (rows: [String], behind: String)?
    var isOfApple = false
    let postings: [String]
  }

  private static let cases = [
    Case(
      testDescription:
        "a Reversal gives a refund back; a day whose lines take each other away has no entry",
      ledger: [
        "2025-10-01 S 2 DE EUR 9.99", "2025-10-01 R 1 DE EUR 9.99", "2025-10-01 V 1 FR EUR 4.00",
        "2025-10-02 R 1 DE EUR 9.99", "2025-10-02 V 1 DE EUR 9.99", "2025-10-03 S 1 US - -",
      ],
      postings: [
        "2025-10-01 sales 2025-10-01 EUR: Assets:Apple:Receivable 13.99 EUR",
        "2025-10-01 sales 2025-10-01 EUR: Income:Apple:Refunds 5.99 EUR",
        "2025-10-01 sales 2025-10-01 EUR: Income:Apple:Sales -19.98 EUR",
      ]),
    Case(
      testDescription: "another currency: each currency's entry has its own side",
      ledger: ["2025-10-01 S 1 DE EUR 9.99"],
      apple: ["FY2026-P01 - S 1 DE USD 10.99 7.00 USD"],
      postings: [
        "2025-10-01 sales 2025-10-01 EUR: Assets:Apple:Receivable 9.99 EUR",
        "2025-10-01 sales 2025-10-01 EUR: Income:Apple:Sales -9.99 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Assets:Apple:Receivable -9.99 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Income:Apple:Differences 9.99 EUR",
        "2025-11-01 settlement FY2026-P01 USD: Assets:Apple:Receivable 7.00 USD",
        "2025-11-01 settlement FY2026-P01 USD: Expenses:Apple:Kept 3.99 USD",
        "2025-11-01 settlement FY2026-P01 USD: Income:Apple:Differences -10.99 USD",
      ]),
    Case(
      testDescription: "a share in another currency is converted, not kept",
      apple: ["FY2026-P01 - S 2 BR BRL 20.00 2.50 USD"],
      postings: [
        "2025-11-01 settlement FY2026-P01 BRL: Assets:Apple:Receivable 5.00 USD",
        "2025-11-01 settlement FY2026-P01 BRL: Equity:Conversion 40.00 BRL",
        "2025-11-01 settlement FY2026-P01 BRL: Equity:Conversion -5.00 USD",
        "2025-11-01 settlement FY2026-P01 BRL: Income:Apple:Unseen -40.00 BRL",
      ]),
    Case(
      testDescription:
        "rounding is posted with the unsettled sales, once three months are complete",
      ledger: ["2025-10-01 S 3 DE EUR =10.00", "2025-11-05 S 3 DE EUR =10.00"],
      apple: [
        "FY2026-P01 - S 1 FR EUR 1.00 1.00 EUR", "FY2026-P02 - S 1 FR EUR 1.00 1.00 EUR",
        "FY2026-P03 - S 1 FR EUR 1.00 1.00 EUR",
      ],
      postings: [
        "2025-10-01 sales 2025-10-01 EUR: Assets:Apple:Receivable 10.00 EUR",
        "2025-10-01 sales 2025-10-01 EUR: Income:Apple:Sales -10.00 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Assets:Apple:Receivable 1.00 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Income:Apple:Unseen -1.00 EUR",
        "2025-11-05 sales 2025-11-05 EUR: Assets:Apple:Receivable 10.00 EUR",
        "2025-11-05 sales 2025-11-05 EUR: Income:Apple:Sales -10.00 EUR",
        "2025-11-29 settlement FY2026-P02 EUR: Assets:Apple:Receivable 1.00 EUR",
        "2025-11-29 settlement FY2026-P02 EUR: Income:Apple:Unseen -1.00 EUR",
        "2025-12-27 settlement FY2026-P03 EUR: Assets:Apple:Receivable 1.00 EUR",
        "2025-12-27 settlement FY2026-P03 EUR: Income:Apple:Unseen -1.00 EUR",
        "2025-12-27 unsettled FY2026-P01 EUR: Assets:Apple:Receivable -10.00 EUR",
        "2025-12-27 unsettled FY2026-P01 EUR: Expenses:Apple:Unsettled 9.999999 EUR",
        "2025-12-27 unsettled FY2026-P01 EUR: Income:Apple:Differences 0.000001 EUR",
      ]),
    Case(
      testDescription: "of Apple's reports alone: sales, returns and apps apart, and no day",
      ledger: ["2025-10-01 S 1 DE EUR 9.99"],
      apple: [
        "FY2026-P01 - S 2 DE EUR 9.99 5.88 EUR", "FY2026-P01 - R 1 DE EUR 9.99 5.88 EUR",
        "FY2026-P01 - S 2 DE EUR 1.00 0.70 EUR type=1F",
        "FY2026-P01 - R 1 DE EUR 1.00 0.70 EUR type=1F", "FY2026-P01 - S 1 DE EUR 0 0.00 EUR",
      ],
      isOfApple: true,
      postings: [
        "2025-11-01 settlement FY2026-P01 EUR: Assets:Apple:Receivable 6.58 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Expenses:Apple:Kept 4.41 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Income:Apple:Apps -1.00 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Income:Apple:Refunds 9.99 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Income:Apple:Sales -19.98 EUR",
      ]),
    Case(
      testDescription:
        "what was withheld, adjusted and taxed; in one currency conversion has the difference alone",
      overview: (
        ["EUR 0 100.00 10.00 -2.00 -5.00 103.00 102.50 EUR", "JPY 50 100 0 0 0 150 0.90 EUR"],
        "103.40"
      ),
      postings: [
        "2025-12-04 payment FY2026-P01 1: Assets:Apple:Receivable -100.00 EUR",
        "2025-12-04 payment FY2026-P01 1: Assets:Bank 102.50 EUR",
        "2025-12-04 payment FY2026-P01 1: Equity:Conversion 0.50 EUR",
        "2025-12-04 payment FY2026-P01 1: Expenses:Tax:Withheld 5.00 EUR",
        "2025-12-04 payment FY2026-P01 1: Income:Apple:Adjustments 2.00 EUR",
        "2025-12-04 payment FY2026-P01 1: Liabilities:Tax:Input -10.00 EUR",
        "2025-12-04 payment FY2026-P01 2: Assets:Apple:Receivable -150 JPY",
        "2025-12-04 payment FY2026-P01 2: Assets:Bank 0.90 EUR",
        "2025-12-04 payment FY2026-P01 2: Equity:Conversion -0.90 EUR",
        "2025-12-04 payment FY2026-P01 2: Equity:Conversion 150 JPY",
      ]),
    Case(
      testDescription:
        "a list that is carried forward, and a row without proceeds, are no payments",
      overview: (["EUR 0 100.00 0 0 0 100.00 99.00 EUR", "JPY 0 9 0 0 0 9 - -"], ""),
      postings: []),
    Case(
      testDescription: "a row without proceeds in a list that is paid",
      overview: (["JPY 0 9 0 0 0 9 - -", "EUR 0 1.00 0 0 0 1.00 1.00 EUR"], "1.00"),
      postings: [
        "2025-12-04 payment FY2026-P01 2: Assets:Apple:Receivable -1.00 EUR",
        "2025-12-04 payment FY2026-P01 2: Assets:Bank 1.00 EUR",
      ]),
  ]

  /// An overview of `currency balance earned input-tax adjustments withheld owed proceeds bank-currency` a row.
  static func overview(_ rows: [String], paid: String) -> [UInt8] {
    let header = ReportText.overviewHeader.replacing("Units Sold,", with: "Units Sold,Balance,")
    let lines = rows.map { row in
      let cells = row.split(separator: " ").map { $0 == "-" ? "" : String($0) }
      return "Region (\(cells[0])),1,\(cells[1]),\(cells[2]),0,\(cells[3]),\(cells[4]),\(cells[5]),"
        + "\(cells[6]),1,\(cells[7]),\(cells[8])\n"
    }
    return Array(
      ReportText.overview(
        header: header, lines.joined(), behind: paid.isEmpty ? "" : ",,\n,,\"\(paid)\" EUR\n"
      ).utf8)
  }

  @Test(arguments: cases) func entries(_ test: Case) throws {
    var sides = SettlementSides()
    for line in test.ledger { try sides.line(line) }
    for row in test.apple { try sides.row(row) }
    if let (rows, paid) = test.overview {
      try sides.overview("FY2026-P01", Self.overview(rows, paid: paid))
    }
    let postings = try sides.postings(isOfApple: test.isOfApple)
    expectEqual(postings.map { sides.text($0) }, test.postings)
  }

  @Test func aPaymentIsPostedOnTheDayThatIsGiven() throws {
    var sides = SettlementSides()
    try sides.overview(
      "FY2026-P01", Self.overview(["EUR 0 1.00 0 0 0 1.00 1.00 EUR"], paid: "1.00"))
    let day = try CivilDate(parsing: "2025-12-05").dayNumber
    let postings = try sides.postings(paidDay: day)
    expectEqual(
      postings.map { sides.text($0) },
      [
        "2025-12-05 payment FY2026-P01 1: Assets:Apple:Receivable -1.00 EUR",
        "2025-12-05 payment FY2026-P01 1: Assets:Bank 1.00 EUR",
      ])
  }

  @Test func accountsOfOneNameAreOnePosting() throws {
    var sides = SettlementSides()
    try sides.row("FY2026-P01 - S 1 DE EUR 9.99 5.88 EUR")
    let postings = try sides.postings(
      EntryAccounts(parsing: "kept = Income:Apple\nunseen = Income:Apple\n"))
    expectEqual(
      postings.map { sides.text($0) },
      [
        "2025-11-01 settlement FY2026-P01 EUR: Assets:Apple:Receivable 5.88 EUR",
        "2025-11-01 settlement FY2026-P01 EUR: Income:Apple -5.88 EUR",
      ])
  }

  @Test func anEntryThatDoesNotBalanceIsAFault() throws {
    let symbols = StringInterner(TextArena())
    let (euro, dollar) = (symbols.symbol("EUR"), symbols.symbol("USD"))
    var book = EntryBook(EntryAccounts())
    let entry = Entry(.sales, day: 0, currency: euro)
    book.post(1, to: .receivable, euro, in: entry)
    book.post(-1, to: .sales, dollar, in: entry)
    let error = #expect(throws: EntriesFault.self) { try book.postings(symbols) }
    #expect(error?.cause.hasPrefix("'sales 1970-01-01 EUR' does not add up to 0 in ") == true)
    book.post(-1, to: .sales, euro, in: entry)
    book.post(1, to: .receivable, dollar, in: entry)
    expectEqual(try book.postings(symbols).count, 4)
  }

  /// The receivable holds what is open and what Apple owes.
  @Test func whateverHappenedEveryEntryBalances() throws {
    var random = SeededRandom()
    print("seed \(random.seed)")
    let days = ["2025-09-28", "2025-10-15", "2025-11-01", "2025-11-02", "2025-12-10", "2026-01-20"]
    for _ in 0..<200 {
      var sides = SettlementSides()
      func words(_ random: inout SeededRandom, _ lines: [String]) -> String {
        "\(random.pick(lines)) \(random.below(4) + 1) \(random.pick(["DE", "FR"])) "
      }
      for _ in 0..<random.below(12) {
        let price = random.pick(["EUR 9.99", "EUR =10.01", "EUR 0", "USD 9.99", "- -"])
        try sides.line("\(random.pick(days)) \(words(&random, ["S", "S", "R", "V"]))\(price)")
      }
      for _ in 0..<random.below(8) {
        let price = random.pick(["EUR 9.99", "EUR 3.33", "EUR 0", "USD 9.99", "QQQ 5.00"])
        let share = random.pick(["5.88 EUR", "0.00 EUR", "3.21 USD"])
        let month = "FY2026-P0\(random.below(4) + 1)"
        let type = random.pick(["", " type=1F"])
        try sides.row("\(month) - \(words(&random, ["S", "R"]))\(price) \(share)\(type)")
      }
      for month in 1...random.below(3) + 1 {
        let rows = (0...random.below(3)).map { _ in
          let amounts = (0..<6).map { _ in "\(random.below(400) - 200)" }.joined(separator: " ")
          return "\(random.pick(["EUR", "USD", "JPY"])) \(amounts) \(random.below(100)) EUR"
        }
        let paid = rows.compactMap { Int($0.split(separator: " ")[7]) }.reduce(0, +)
        try sides.overview("FY2026-P0\(month)", Self.overview(rows, paid: "\(paid)"))
      }
      // It throws unless every entry balances.
      _ = try sides.postings(isOfApple: true)
      let found = sides.balance(of: .receivable, try sides.postings())
      expectEqual(found, try Self.receivable(sides), "seed \(random.seed)")
    }
  }

  /// What the rules say of the receivable's balance.
  private static func receivable(_ sides: SettlementSides) throws -> [String] {
    var sums: [Symbol: Int128] = [:]
    for row in try sides.reconciliation().rows {
      guard let ledger = row.ledger else { continue }
      let isClosed = (ledger.month...ledger.month + 2).allSatisfy(sides.months.complete.contains)
      switch row.kind {
      case .open, .notReported: sums[ledger.currency, default: 0] += row.ledgerMicros ?? 0
      case .rounding where !isClosed: sums[ledger.currency, default: 0] += row.ledgerMicros ?? 0
      default: break
      }
    }
    for row in sides.rowsOfApple { sums[row.shareCurrency, default: 0] += Int128(row.shareMicros) }
    for row in sides.overviews.flatMap({ $0.report.lists.flatMap(\.rows) }) {
      let disagreement =
        row.owed - row.balance - row.earned - row.inputTax - row.adjustments - row.withholdingTax
      sums[row.currency, default: 0] -= Int128(row.balance + row.earned + disagreement)
    }
    return sums.filter { $0.value != 0 }.map { sides.amount($0.value, $0.key) }.sorted()
  }
}

@Suite(.enabled(if: ReportText.folder != nil, "no ../shared/fixtures here"))
struct PublishedEntriesTests {
  @Test(arguments: [false, true])
  func aPublishedMonthIsPaidToTheLastCent(isOfApple: Bool) throws {
    var sides = SettlementSides()
    let month = try #require(FiscalMonth(parsing: "FY2014-P12"))
    for region in ["CH", "EU", "JP"] {
      let text = try ReportText.published("45545510_0914_\(region).txt")
      let report = try withText(text) { try AppleReport(parsing: $0, symbols: sides.symbols) }
      for row in report.rows { sides.add(row, month) }
    }
    try sides.overview("FY2014-P12", ReportText.published("financial_report.csv"))
    let postings = try sides.postings(isOfApple: isOfApple)
    expectEqual(postings.map { sides.text($0) }, Self.expected)
    expectEqual(sides.balance(of: .bank, postings), ["234.58 EUR"])
    expectEqual(sides.balance(of: .receivable, postings), [])
  }

  private static let expected = [
    "2014-09-27 settlement FY2014-P12 CHF: Assets:Apple:Receivable 33.15 CHF",
    "2014-09-27 settlement FY2014-P12 CHF: Expenses:Apple:Kept 17.85 CHF",
    "2014-09-27 settlement FY2014-P12 CHF: Income:Apple:Apps -51.00 CHF",
    "2014-09-27 settlement FY2014-P12 EUR: Assets:Apple:Receivable 206.89 EUR",
    "2014-09-27 settlement FY2014-P12 EUR: Expenses:Apple:Kept 132.94 EUR",
    "2014-09-27 settlement FY2014-P12 EUR: Income:Apple:Apps -339.83 EUR",
    "2014-09-27 settlement FY2014-P12 JPY: Assets:Apple:Receivable 179 JPY",
    "2014-09-27 settlement FY2014-P12 JPY: Expenses:Apple:Kept 76 JPY",
    "2014-09-27 settlement FY2014-P12 JPY: Income:Apple:Apps -255 JPY",
    "2014-10-30 payment FY2014-P12 1: Assets:Apple:Receivable -33.15 CHF",
    "2014-10-30 payment FY2014-P12 1: Assets:Bank 26.53 EUR",
    "2014-10-30 payment FY2014-P12 1: Equity:Conversion 33.15 CHF",
    "2014-10-30 payment FY2014-P12 1: Equity:Conversion -26.53 EUR",
    "2014-10-30 payment FY2014-P12 2: Assets:Apple:Receivable -206.89 EUR",
    "2014-10-30 payment FY2014-P12 2: Assets:Bank 206.89 EUR",
    "2014-10-30 payment FY2014-P12 3: Assets:Apple:Receivable -179 JPY",
    "2014-10-30 payment FY2014-P12 3: Assets:Bank 1.16 EUR",
    "2014-10-30 payment FY2014-P12 3: Equity:Conversion -1.16 EUR",
    "2014-10-30 payment FY2014-P12 3: Equity:Conversion 142 JPY",
    "2014-10-30 payment FY2014-P12 3: Expenses:Tax:Withheld 37 JPY",
  ]
}
