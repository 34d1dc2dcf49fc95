// The entries report: the worked example of the rules, its options, and text for other programs (rule S15).
import Base
import Ledger
import Projections
import Revenue
import TestSupport
import Testing

extension TestEvent {
  fileprivate static func settlement(_ event: SettlementDeclared) -> TestEvent {
    .raw(
      type: EventType.settlementDeclared.rawValue,
      JSONText(raw: String(decoding: event.data, as: UTF8.self)))
  }

  /// A report of all regions.
  fileprivate static func report(
    _ month: String, _ first: String, _ last: String, digit: Character, _ rows: [String]
  ) -> TestEvent {
    .settlement(
      .of(AppleReportText(region: "ZZ", days: (first, last), rows), month, digit: digit))
  }

  /// A sale of `pro.month`.
  fileprivate static func sale(
    _ number: String, _ day: String, _ country: String, _ price: JSONText? = "9.99",
    refundedAt: String? = nil, at: String? = nil
  ) -> TestEvent {
    let refund = refundedAt.map { [("cancellation_date_ms", date($0))] } ?? []
    return .upload(
      reply(row(number, product: "pro.month", on: day, merging: refund)), country: country,
      metadata: price.map { shorthand($0, "EUR") }, at: at ?? day, receipt: number)
  }
}

/// The worked example: six sales in Germany, one in France, one in the United States without a price, a refund.
private let example: [TestEvent] =
  (1...5).map { .sale("\($0)", "2025-10-0\($0)", "DE") } + [
    .sale("6", "2025-10-06", "FR"), .sale("7", "2025-10-07", "US", nil),
    .sale("1", "2025-10-01", "DE", nil, refundedAt: "2025-11-10", at: "2025-11-11"),
    .sale("8", "2025-12-01", "DE"),
    .report(
      "FY2026-P01", "09/28/2025", "11/01/2025", digit: "1",
      [
        "pro.month S 3 5.88 EUR DE 9.99 EUR", "pro.month S 1 5.29 EUR FR 8.99 EUR",
        "pro.month S 1 6.99 USD US 9.99 USD", "pro.month S 1 955.00 JPY JP 1500 JPY",
      ]),
    .report(
      "FY2026-P02", "11/02/2025", "11/29/2025", digit: "2",
      ["pro.month S 1 5.88 EUR DE 9.99 EUR", "pro.month R -1 5.88 EUR DE 9.99 EUR"]),
    .report(
      "FY2026-P03", "11/30/2025", "12/27/2025", digit: "3",
      ["pro.month S 1 5.88 EUR DE 9.99 EUR"]),
    .settlement(.overview("October, 2025", "FY2026-P01", digit: "f", ["EUR 23 23"])),
  ]

private let columns = "entries date,entry,account,amount,currency"

private func day(_ date: String, _ amount: String) -> [String] {
  let name = "\(date),sales \(date) EUR"
  return [
    "\(name),Assets:Apple:Receivable,\(amount),EUR", "\(name),Income:Apple:Sales,-\(amount),EUR",
  ]
}

@Suite struct EntriesReportTests {
  @Test func theWorkedExampleOfTheRules() throws {
    try RuleCase(
      "the worked example of the rules", example,
      [
        columns: (1...6).flatMap { day("2025-10-0\($0)", "9.99") } + [
          "2025-11-01,settlement FY2026-P01 EUR,Assets:Apple:Receivable,-17.03,EUR",
          "2025-11-01,settlement FY2026-P01 EUR,Expenses:Apple:Kept,16.03,EUR",
          "2025-11-01,settlement FY2026-P01 EUR,Income:Apple:Differences,1.00,EUR",
          "2025-11-01,settlement FY2026-P01 JPY,Assets:Apple:Receivable,955,JPY",
          "2025-11-01,settlement FY2026-P01 JPY,Expenses:Apple:Kept,545,JPY",
          "2025-11-01,settlement FY2026-P01 JPY,Income:Apple:Unseen,-1500,JPY",
          "2025-11-01,settlement FY2026-P01 USD,Assets:Apple:Receivable,6.99,USD",
          "2025-11-01,settlement FY2026-P01 USD,Expenses:Apple:Kept,3.00,USD",
          "2025-11-01,settlement FY2026-P01 USD,Income:Apple:Differences,-9.99,USD",
          "2025-11-10,sales 2025-11-10 EUR,Assets:Apple:Receivable,-9.99,EUR",
          "2025-11-10,sales 2025-11-10 EUR,Income:Apple:Refunds,9.99,EUR",
        ] + day("2025-12-01", "9.99") + [
          "2025-12-04,payment FY2026-P01 1,Assets:Apple:Receivable,-23.00,EUR",
          "2025-12-04,payment FY2026-P01 1,Assets:Bank,23.00,EUR",
          "2025-12-27,settlement FY2026-P03 EUR,Assets:Apple:Receivable,-4.11,EUR",
          "2025-12-27,settlement FY2026-P03 EUR,Expenses:Apple:Kept,4.11,EUR",
          "2025-12-27,unsettled FY2026-P01 EUR,Assets:Apple:Receivable,-9.99,EUR",
          "2025-12-27,unsettled FY2026-P01 EUR,Expenses:Apple:Unsettled,9.99,EUR",
        ]
      ]
    ).check()
  }

  @Test func theReceivableHoldsWhatAppleOwesLessWhatItPaid() throws {
    let rows = try Self.rows("entries account,amount,currency")
    var cents: [Substring: Int] = [:]
    for row in rows {
      let cells = row.split(separator: ",")
      guard cells[0] == "Assets:Apple:Receivable" else { continue }
      let digits = cells[1].replacing(".", with: "")
      cents[cells[2], default: 0] += try #require(Int(digits))
    }
    // 28.81 less 23.00 paid.
    expectEqual(cents, ["EUR": 581, "USD": 699, "JPY": 955])
  }

  @Test(
    arguments: [
      (
        "entries currency,posted,open,not_reported,rounding,share,paid,balance --check", example,
        [
          "EUR,5.81,0.00,0.00,0.00,28.81,-23.00,5.81", "JPY,955,0,0,0,955,0,955",
          "USD,6.99,0.00,0.00,0.00,6.99,0.00,6.99",
        ]
      ),
      (
        "entries currency,posted,share,paid,balance --check --basis apple", example,
        ["EUR,5.81,28.81,-23.00,5.81", "JPY,955,955,0,955", "USD,6.99,6.99,0.00,6.99"]
      ),
      (
        // P03's report is not there yet.
        "entries currency,posted,open,not_reported,share,paid,balance --check",
        Array(example.prefix(11) + example.suffix(1)),
        [
          "EUR,19.91,9.99,9.99,22.93,-23.00,19.91", "JPY,955,0,0,955,0,955",
          "USD,6.99,0.00,0.00,6.99,0.00,6.99",
        ]
      ),
      (
        "entries currency,posted,not_reported,balance --check", Array(example.prefix(6)),
        ["EUR,59.94,59.94,59.94"]
      ),
      ("entries currency --check", [], []),
    ] as [(String, [TestEvent], [String])])
  func theReceivableIsWhatIsOpenAndWhatAppleOwes(
    _ words: String, _ events: [TestEvent], _ expected: [String]
  ) throws {
    expectEqual(try Self.rows(words, events), expected)
  }

  @Test(
    arguments: [
      (
        "entries date,entry,account,amount --basis apple",
        [
          "2025-11-01,settlement FY2026-P01 EUR,Assets:Apple:Receivable,22.93",
          "2025-11-01,settlement FY2026-P01 EUR,Expenses:Apple:Kept,16.03",
          "2025-11-01,settlement FY2026-P01 EUR,Income:Apple:Sales,-38.96",
          "2025-11-01,settlement FY2026-P01 JPY,Assets:Apple:Receivable,955",
          "2025-11-01,settlement FY2026-P01 JPY,Expenses:Apple:Kept,545",
          "2025-11-01,settlement FY2026-P01 JPY,Income:Apple:Sales,-1500",
          "2025-11-01,settlement FY2026-P01 USD,Assets:Apple:Receivable,6.99",
          "2025-11-01,settlement FY2026-P01 USD,Expenses:Apple:Kept,3.00",
          "2025-11-01,settlement FY2026-P01 USD,Income:Apple:Sales,-9.99",
          "2025-11-29,settlement FY2026-P02 EUR,Income:Apple:Refunds,9.99",
          "2025-11-29,settlement FY2026-P02 EUR,Income:Apple:Sales,-9.99",
          "2025-12-04,payment FY2026-P01 1,Assets:Apple:Receivable,-23.00",
          "2025-12-04,payment FY2026-P01 1,Assets:Bank,23.00",
          "2025-12-27,settlement FY2026-P03 EUR,Assets:Apple:Receivable,5.88",
          "2025-12-27,settlement FY2026-P03 EUR,Expenses:Apple:Kept,4.11",
          "2025-12-27,settlement FY2026-P03 EUR,Income:Apple:Sales,-9.99",
        ]
      ),
      (
        "entries date,entry,kind,fiscal_month,description,account --paid-on FY2026-P01=2025-11-30 "
          + "--accounts bank=Assets:Giro",
        [
          "2025-12-01,sales 2025-12-01 EUR,sales,,App Store | sales 2025-12-01 EUR,"
            + "Assets:Apple:Receivable",
          "2025-11-30,payment FY2026-P01 1,payment,FY2026-P01,App Store | payment FY2026-P01 1,"
            + "Assets:Giro",
        ]
      ),
    ] as [(String, [String])])
  func optionsChangeWhatIsPosted(_ words: String, _ expected: [String]) throws {
    let rows = try Self.rows(words)
    if words.contains("--basis") { return expectEqual(rows, expected) }
    for row in expected { #expect(rows.contains(row), "\(row) is not in \(rows)") }
  }

  @Test func aZoneDecidesTheDayOfSales() throws {
    let late = [TestEvent.sale("1", "2025-10-01T20:00:00Z", "DE")]
    expectEqual(
      try Self.rows("entries date --timezone Asia/Tokyo", late), ["2025-10-02", "2025-10-02"])
    expectEqual(try Self.rows("entries date", late), ["2025-10-01", "2025-10-01"])
  }

  @Test func aDayForAMonthWithoutPaymentIsNamed() throws {
    let ledger = try LedgerFixture()
    try ledger.append(example)
    let words = try ReportWords(
      "entries --paid-on FY2026-P02=2026-01-02,FY2026-P01=2025-12-05")
    let summary = try Report.write(
      words.request, from: ledger.current(), to: CSVReportWriter { _ in })
    expectEqual(summary.unknownNames, [.payment("FY2026-P02")])
  }

  private static func rows(_ line: String, _ events: [TestEvent] = example) throws -> [String] {
    let ledger = try LedgerFixture()
    try ledger.append(events)
    let words = try ReportWords(line)
    return words.rows(of: try ledger.csv(words.request, from: ledger.current()))
  }

  // MARK: Options as JSON

  @Test func theOptionsOfAManifestMakeTheSameReport() throws {
    var request = try ReportWords(
      "entries --basis apple --paid-on FY2026-P02=2026-01-02,FY2026-P01=2025-12-05"
    ).request
    request.accounts = try EntryAccounts(parsing: "sales = Income:A, B\nbank = Assets:Giro")
    let text = Self.json(request)
    expectEqual(
      text,
      #"{"basis":"apple","paid_on":["FY2026-P01=2025-12-05","FY2026-P02=2026-01-02"],"#
        + #""accounts":["bank=Assets:Giro","sales=Income:A, B"]}"#)
    let read = try ReportRequest(.entries, filters: JSONValue(Array(text.utf8)))
    expectEqual(Self.json(read), text)
    expectEqual(Self.json(ReportRequest(.entries)), #"{"basis":"ledger"}"#)
  }

  private static func json(_ request: ReportRequest) -> String {
    var writer = JSONWriter()
    request.write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  @Test(
    arguments: [
      #"{}"#, #"{"basis":"bank"}"#, #"{"basis":"apple","paid_on":[]}"#,
      #"{"basis":"apple","paid_on":["FY2026-P13=2025-12-05"]}"#,
      #"{"basis":"apple","paid_on":["FY2026-P01=2025-12-32"]}"#,
      #"{"basis":"apple","paid_on":["FY2026-P01=2025-12-05","FY2026-P01=2025-12-06"]}"#,
      #"{"basis":"apple","accounts":["bank"]}"#, #"{"basis":"apple","accounts":["cash=A:B"]}"#,
      #"{"basis":"apple","accounts":["bank=A:B","bank=A:C"]}"#,
    ])
  func optionsThatSayNothingAreRefused(_ text: String) {
    #expect(throws: ProjectionError.self) {
      try ReportRequest(.entries, filters: JSONValue(Array(text.utf8)))
    }
  }

  // MARK: Text

  private static let payments: [TestEvent] = [
    .settlement(.overview("October, 2025", "FY2026-P01", digit: "f", ["EUR 5 5", "JPY 900 6"]))
  ]

  private static func text(_ format: EntryFormat, _ events: [TestEvent]) throws -> String {
    let ledger = try LedgerFixture()
    try ledger.append(events)
    var bytes: [UInt8] = []
    try Report.write(
      ReportRequest(.entries), from: ledger.current(),
      to: EntryTextWriter(format) { bytes.append(contentsOf: $0) })
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test func hledgerAndLedgerReadDirectivesAndEntries() throws {
    expectEqual(
      try Self.text(.hledger, Self.payments),
      """
      account Assets:Apple:Receivable
      account Assets:Bank
      account Equity:Conversion
      commodity EUR
        format 1000.000000 EUR
      commodity JPY
        format 1000.000000 JPY

      2025-12-04 * App Store | payment FY2026-P01 1
        Assets:Apple:Receivable  -5.00 EUR
        Assets:Bank  5.00 EUR

      2025-12-04 * App Store | payment FY2026-P01 2
        Assets:Apple:Receivable  -900 JPY
        Assets:Bank  6.00 EUR
        Equity:Conversion  -6.00 EUR
        Equity:Conversion  900 JPY


      """)
  }

  @Test func beancountReadsAccountsAndEntries() throws {
    expectEqual(
      try Self.text(.beancount, Self.payments),
      """
      2025-12-04 open Assets:Apple:Receivable
      2025-12-04 open Assets:Bank
      2025-12-04 open Equity:Conversion

      2025-12-04 * "App Store" "payment FY2026-P01 1"
        Assets:Apple:Receivable  -5.00 EUR
        Assets:Bank  5.00 EUR

      2025-12-04 * "App Store" "payment FY2026-P01 2"
        Assets:Apple:Receivable  -900 JPY
        Assets:Bank  6.00 EUR
        Equity:Conversion  -6.00 EUR
        Equity:Conversion  900 JPY


      """)
  }

  @Test(arguments: [EntryFormat.hledger, .beancount])
  func withoutEntriesTheTextIsEmpty(_ format: EntryFormat) throws {
    expectEqual(try Self.text(format, []), "")
  }

  @Test func otherReportsHaveNoSuchText() throws {
    let ledger = try LedgerFixture()
    let database = try ledger.current()
    #expect(throws: ProjectionError.self) {
      try Report.write(
        ReportRequest(.revenue), from: database, to: EntryTextWriter(.hledger) { _ in })
    }
  }
}
