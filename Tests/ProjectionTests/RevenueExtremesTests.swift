// Extremes: the first and the last day, amounts beyond 64 bits, unusual ids.
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct RevenueExtremesTests {
  @Test(arguments: cases) func edges(_ rule: RuleCase) throws { try rule.check() }

  private static let longID = String(repeating: "9", count: 100_000)

  private static let cases = [
    RuleCase(
      "R9: the first and the last instant have their periods in every zone",
      [
        .upload(
          reply(
            row("1", on: "2008-07-10", ["cancellation_date_ms": -62_135_596_800_000]),
            row("2", on: "9999-12-31T23:59:59.999Z")))
      ],
      [
        "revenue period --by period --period day": ["0001-01-01", "2008-07-10", "9999-12-31"],
        "revenue period --by period --period day --timezone America/New_York": [
          "0000-12-31", "2008-07-09", "9999-12-31",
        ],
        "revenue period --by period --period day --timezone Pacific/Auckland": [
          "'+010000-01-01", "0001-01-01", "2008-07-10",
        ],
        "revenue period --by period --period week": ["0001-W01", "2008-W28", "9999-W52"],
        "revenue units --from 0001-01-01 --to 9999-12-31": ["2"],
        "journal date": [
          "0001-01-01T00:00:00.000Z", "2008-07-10T00:00:00.000Z", "9999-12-31T23:59:59.999Z",
        ],
      ]),
    RuleCase(
      "R2: a sale before the App Store's first day is malformed, as are seconds for milliseconds",
      [
        .upload(
          reply(
            row("1", on: "2008-07-09T23:59:59.999Z"), row("2", on: "2008-07-10"),
            row(
              "3",
              ["purchase_date_ms": "1790000000", "original_purchase_date_ms": "1790000000"]),
            // The sale date of a line item is the date of purchase, that of a transaction the date of the original
            // purchase.
            row("4", line: "w4", ["original_purchase_date_ms": 0]),
            row("5", ["purchase_date_ms": 0]),
            row("6", line: "w6", ["purchase_date_ms": -1])))
      ],
      [
        "journal sale_key": ["2", "5", "w4"],
        "exceptions exception,product_id,transaction_id,detail --without unpriced": [
          "malformed_transaction,coins,1,before_2008", "malformed_transaction,coins,3,before_2008",
          "malformed_transaction,coins,6,before_2008",
        ],
      ]),
    RuleCase(
      "R2: a date that cannot be written is none",
      [
        .upload(
          reply(
            row("1", ["purchase_date_ms": "253402300800000", "original_purchase_date_ms": .null]),
            row("2", ["cancellation_date_ms": "99999999999999999999"])))
      ],
      [
        "journal line,sale_key": ["Sale,2"],
        "exceptions exception,transaction_id,detail --without unpriced": [
          "malformed_transaction,1,purchase_date"
        ],
      ]),
    RuleCase(
      "R3: ids of any bytes and any length tell sales apart",
      [
        .upload(reply(row("a\0b"), row("a\0c"), row("a"), row("a "))),
        .upload(reply(row("a\0c"), row("\(longID)"), row("e\u{301}"), row("\u{e9}")), receipt: "b"),
      ],
      [
        "sales sale_key": [longID, "a", "a\0b", "a\0c", "a ", "e\u{301}", "\u{e9}"],
        "exceptions --without unpriced": [],
      ]),
    RuleCase(
      "R7: what no importer would have let in is passed over",
      [
        .upload(reply(row("1"), row("2")), metadata: prices(entry(transaction: "2", "2.00"))),
        .prices([
          "coins DE EUR free 2026-01-01", "coins DE XXX 1.00 2026-01-01",
          "coins DE EUR 1.00 2026-02-30",
        ]),
        .rates(
          source: "bank",
          [
            "2026-01-01 EUR USD 0", "2026-01-01 XXX USD 2", "2026-13-01 EUR USD 2",
            "2026-01-01 EUR USD -1", "2026-01-01 EUR USD 1e3",
          ]),
      ],
      [
        "sales sale_key,price_basis": ["1,none", "2,client_transaction"],
        "revenue currency,gross --in USD": [",", "EUR,2.00"],
        "exceptions exception,sale_key,detail --in USD": [
          "unconverted,2,Sale EUR", "unpriced,1,no_price",
        ],
      ]),
  ]

  /// A client may name any price: one that cannot be converted must not prevent a report.
  @Test(arguments: [
    ("revenue --in JPY", ",EUR,3,299999999997.00,"),
    ("journal --in JPY", "3,EUR,99999999999.00,299999999997.00,"),
    ("exceptions --in JPY", "unconverted,Production,"),
  ])
  func anAmountBeyond64BitsStaysInItsOwnCurrency(_ report: String, _ expected: String) throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(
        reply(row("1", ["quantity": 3])),
        metadata: prices(entry(transaction: "1", "99999999999"))),
      .rates(source: "bank", ["2026-01-01 EUR JPY 1000000"]),
    ])
    let text = try fixture.csv(ReportWords(report).request, from: fixture.current())
    #expect(text.contains(expected), "\(text)")
  }

  @Test func theJSONReportCountsWhatNoRateConverted() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(
        reply(row("1", ["cancellation_date_ms": date("2026-01-08")]), row("2"), row("3")),
        metadata: prices(entry(transaction: "1", "1.00"), entry(transaction: "2", "2.00")))
    ])
    let request = try ReportWords("revenue --in JPY").request
    let json = try fixture.json(request, from: fixture.current())
    #expect(json.contains(#""exceptions":{"unconverted":3,"unpriced":1}"#))
  }
}
