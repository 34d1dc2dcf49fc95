// The reconcile report and the exceptions of Apple's files, worked out by hand (settlement rules S5 to S12).
import Ledger
import Projections
import Revenue
import TestSupport
import Testing

/// The days of fiscal months.
private let days = [
  "FY2026-P01": ("09/28/2025", "11/01/2025"), "FY2026-P02": ("11/02/2025", "11/29/2025"),
  "FY2026-P03": ("11/30/2025", "12/27/2025"),
]

/// A report of Apple's of a month.
private func report(
  _ month: String, region: String = "WW", digit: Character = "a", part: Int = 1,
  of partCount: Int = 1, _ rows: [String]
) -> TestEvent {
  let report = AppleReportText(region: region, days: days[month] ?? ("", ""), rows)
  return .settlement(
    SettlementDeclared.of(report, month, digit: digit, part: part, partCount: partCount))
}

private func overview(
  _ name: String, _ month: String, digit: Character = "f", _ rows: [String]
) -> TestEvent {
  .settlement(.overview(name, month, digit: digit, rows))
}

extension TestEvent {
  fileprivate static func settlement(_ event: SettlementDeclared) -> TestEvent {
    .raw(
      type: EventType.settlementDeclared.rawValue,
      JSONText(raw: String(decoding: event.data, as: UTF8.self)))
  }

  /// A sale of `pro.month`, which gives two events; the second shows it.
  fileprivate static func sale(
    _ number: String, _ day: String, _ country: String, _ price: JSONText? = "9.99",
    currency: JSONText = "EUR", refundedAt: String? = nil, at: String? = nil
  ) -> TestEvent {
    let refund = refundedAt.map { [("cancellation_date_ms", date($0))] } ?? []
    return .upload(
      reply(row(number, product: "pro.month", on: day, merging: refund)), country: country,
      metadata: price.map { shorthand($0, currency) }, at: at ?? day, receipt: number)
  }
}

/// The ledger of the worked example. Sales are at positions 1 to 17.
private let sales: [TestEvent] =
  (1...5).map { .sale("\($0)", "2025-10-0\($0)", "DE") } + [
    .sale("6", "2025-10-06", "FR"), .sale("7", "2025-10-07", "US", nil),
    .sale("1", "2025-10-01", "DE", nil, refundedAt: "2025-11-10", at: "2025-11-11"),
    .sale("8", "2025-12-01", "DE"),
  ]
private let october = report(
  "FY2026-P01", region: "ZZ", digit: "1",
  [
    "pro.month S 3 5.88 EUR DE 9.99 EUR", "pro.month S 1 5.29 EUR FR 8.99 EUR",
    "pro.month S 1 6.99 USD US 9.99 USD", "pro.month S 1 955.00 JPY JP 1500 JPY",
  ])
private let november = report(
  "FY2026-P02", region: "ZZ", digit: "2",
  ["pro.month S 1 5.88 EUR DE 9.99 EUR", "pro.month R -1 5.88 EUR DE 9.99 EUR"])
private let december = report(
  "FY2026-P03", region: "ZZ", digit: "3", ["pro.month S 1 5.88 EUR DE 9.99 EUR"])

private let columns =
  "reconcile fiscal_month,class,line,ledger_country,apple_country,ledger_units,candidates,ledger_amount,"
  + "apple_units,apple_amount,difference,positions,rows"
private let brief = "reconcile fiscal_month,class,line,ledger_units,apple_units"

@Suite struct ReconcileReportTests {
  @Test(
    arguments: [workedExample, filters, classes, counting, parts, proceeds, facts, maps].joined())
  func reconcile(_ rule: RuleCase) throws { try rule.check() }

  private static let workedExample = [
    RuleCase(
      "the worked example of the rules",
      sales + [october, november, december],
      [
        columns: [
          "FY2026-P01,matched,Sale,DE,DE,3,5,29.97,3,29.97,0.00,1 3 5 7 9,11111111:1",
          "FY2026-P01,unpriced_here,Sale,US,US,1,1,,1,9.99,9.99,13,11111111:3",
          "FY2026-P01,price_differs,Sale,FR,FR,1,1,9.99,1,8.99,-1.00,11,11111111:2",
          "FY2026-P01,missing_here,Sale,,JP,,,,1,1500,1500,,11111111:4",
          "FY2026-P01,missing_there,Sale,DE,,1,5,9.99,,,-9.99,1 3 5 7 9,",
          "FY2026-P02,matched,Return,DE,DE,1,1,-9.99,1,-9.99,0.00,15,22222222:2",
          "FY2026-P02,settled_later,Sale,DE,DE,1,5,9.99,1,9.99,0.00,1 3 5 7 9,22222222:1",
          "FY2026-P03,matched,Sale,DE,DE,1,1,9.99,1,9.99,0.00,17,33333333:1",
        ]
      ]),
    RuleCase(
      "without the report two months later the rest is open", sales + [october, november],
      [
        brief + " --class open,not_reported": [
          "FY2026-P01,open,Sale,1,", "FY2026-P03,not_reported,Sale,1,",
        ]
      ]),
    RuleCase(
      "without the next month's report two sales are open, and the return is not reported",
      sales + [october, december],
      [
        brief + " --class open,not_reported": [
          "FY2026-P01,open,Sale,2,", "FY2026-P02,not_reported,Return,1,",
        ]
      ]),
  ]

  private static let filters = [
    RuleCase(
      "filters choose rows after everything is matched", sales + [october, november, december],
      [
        brief + " --month FY2026-P02": [
          "FY2026-P02,matched,Return,1,1", "FY2026-P02,settled_later,Sale,1,1",
        ],
        brief + " --country JP,FR": [
          "FY2026-P01,price_differs,Sale,1,1", "FY2026-P01,missing_here,Sale,,1",
        ],
        brief + " --product pro.* --class price_differs": ["FY2026-P01,price_differs,Sale,1,1"],
        brief + " --product coins": [],
      ])
  ]

  private static let classes = [
    RuleCase(
      "each side's free units, and what is no in-app purchase, are matched with nothing",
      [
        .sale("1", "2025-10-01", "DE", nil), .prices(["pro.month DE EUR 0 2025-01-01"]),
        report(
          "FY2026-P01",
          [
            "pro.month S 2 0.00 EUR DE 0.00 EUR",
            "pro.month S 1 5.88 EUR DE 9.99 EUR type=1F",
          ]),
      ],
      [
        brief: [
          "FY2026-P01,free,Sale,,2", "FY2026-P01,free,Sale,1,", "FY2026-P01,not_in_app,Sale,,1",
        ]
      ]),
    RuleCase(
      "another currency or country in the same month; an unknown currency has two digits",
      [
        .sale("1", "2025-10-01", "DE"), .sale("2", "2025-10-01", "AT", "7.99"),
        report(
          "FY2026-P01", region: "ZZ",
          [
            "pro.month S 1 5.88 USD DE 10.99 USD", "pro.month S 1 4.00 EUR CH 7.99 EUR",
            "pro.month S 1 4.00 EUR FR 5.00 QQQ",
          ]),
      ],
      [
        "reconcile class,ledger_country,apple_country,apple_price,difference": [
          "currency_differs,DE,DE,10.99,", "country_differs,AT,CH,7.99,0.00",
          "missing_here,,FR,5.00,5.00",
        ],
        "exceptions exception,detail --without unpriced": ["currency_unknown,QQQ FY2026-P01"],
      ]),
  ]

  private static let counting = [
    RuleCase(
      "a report of all regions counts; one of a region is compared with it",
      [
        report("FY2026-P01", region: "EU", digit: "1", ["pro.month S 2 5.88 EUR DE 9.99 EUR"]),
        report(
          "FY2026-P01", region: "Z1", digit: "2",
          ["10/02/2025 pro.month S 1 5.88 EUR DE 9.99 EUR"]),
        .sale("1", "2025-10-02", "DE"),
      ],
      [
        "reconcile class,ledger_units,apple_units,transaction_month": ["matched,1,1,FY2026-P01"],
        "exceptions exception,detail,position": [
          "reports_disagree,FY2026-P01 EU DE EUR units 2 1 share 11.76 5.88,0"
        ],
      ]),
    RuleCase(
      "a file supersedes the one before; an overview ties what counts, or says what it misses",
      [
        report("FY2026-P01", digit: "1", ["pro.month S 2 5.88 EUR DE 9.99 EUR"]),
        overview("October, 2025", "FY2026-P01", ["EUR 12 12"]),
        report("FY2026-P01", digit: "2", ["pro.month S 2 6.00 EUR DE 9.99 EUR"]),
        overview("November, 2025", "FY2026-P02", digit: "e", ["EUR 5 5"]),
      ],
      [
        "reconcile class,rows": ["missing_here,22222222:1"],
        "exceptions exception,detail,position": ["earned_disagrees,FY2026-P02 EUR 5.00 0.00,3"],
      ]),
  ]

  private static let parts = [
    RuleCase(
      "a file counts from its last part on; parts out of order and unfinished sets count for nothing",
      [
        report(
          "FY2026-P01", digit: "1", part: 1, of: 2,
          ["a S 1 1.00 EUR DE 2.00 EUR", "b S 1 1.00 EUR DE 2.00 EUR"]),
        report("FY2026-P02", digit: "2", part: 2, of: 2, ["c S 1 1.00 EUR DE 2.00 EUR"]),
        report(
          "FY2026-P01", digit: "1", part: 2, of: 2,
          ["a S 1 1.00 EUR DE 2.00 EUR", "b S 1 1.00 EUR DE 2.00 EUR"]),
        report("FY2026-P03", digit: "3", part: 1, of: 2, ["d S 1 1.00 EUR DE 2.00 EUR"]),
      ],
      ["reconcile product_id,rows": ["a,11111111:1", "b,11111111:2"]]),
    RuleCase(
      "a file that is not what its event says counts for nothing",
      [
        report("FY2026-P01", digit: "1", ["a S 1 1.00 EUR DE 2.00 EUR"]),
        .settlement(
          SettlementDeclared.of(
            AppleReportText(
              region: "WW", days: ("11/02/2025", "11/29/2025"), ["a S 1 1.00 EUR DE 2.00 EUR"]),
            "FY2026-P01", digit: "2")),
      ],
      [
        "reconcile": [],
        "exceptions exception,detail,position": ["malformed_event,settlement.declared rows,1"],
      ]),
  ]

  private static let payment = overview(
    "October, 2025", "FY2026-P01", ["EUR 22.93 10", "USD 6.99 5", "JPY 955 3"])

  private static let proceeds = [
    RuleCase(
      "what Apple's rows state, by seller, product, country and line",
      [october, november],
      [
        "proceeds": [
          "FY2026-P01,Apple Distribution International Ltd.,pro.month,DE,Sale,EUR,EUR,3,29.97,17.64,12.33",
          "FY2026-P01,Apple Distribution International Ltd.,pro.month,FR,Sale,EUR,EUR,1,8.99,5.29,3.70",
          "FY2026-P01,Apple Inc.,pro.month,US,Sale,USD,USD,1,9.99,6.99,3.00",
          "FY2026-P01,iTunes K.K.,pro.month,JP,Sale,JPY,JPY,1,1500,955,545",
          "FY2026-P02,Apple Distribution International Ltd.,pro.month,DE,Sale,EUR,EUR,1,9.99,5.88,4.11",
          "FY2026-P02,Apple Distribution International Ltd.,pro.month,DE,Return,EUR,EUR,-1,-9.99,-5.88,-4.11",
        ],
        "proceeds country_code --month FY2026-P02 --product other": [],
        "proceeds line --month FY2026-P02 --country DE": ["Sale", "Return"],
      ]),
    RuleCase(
      "a payment as it stands, and its allocation by country, with the cent that is left",
      [october, payment],
      [
        "payout": [
          "FY2026-P01,Region (EUR),EUR,1,0.00,22.93,0.00,0.00,0.00,22.93,1,0.436109900,10.00,EUR,true,"
            + "2025-12-04,2025-12-16",
          "FY2026-P01,Region (USD),USD,1,0.00,6.99,0.00,0.00,0.00,6.99,1,0.715307582,5.00,EUR,true,"
            + "2025-12-04,2025-12-16",
          "FY2026-P01,Region (JPY),JPY,1,0,955,0,0,0,955,1,0.003141361,3.00,EUR,true,"
            + "2025-12-04,2025-12-16",
        ],
        "payout --by country": [
          "FY2026-P01,DE,EUR,17.64,7.69,EUR", "FY2026-P01,FR,EUR,5.29,2.31,EUR",
          "FY2026-P01,JP,JPY,955,3.00,EUR", "FY2026-P01,US,USD,6.99,5.00,EUR",
        ],
      ]),
    RuleCase(
      "a currency in which overview and reports disagree is not split",
      [october, overview("October, 2025", "FY2026-P01", ["EUR 22.92 10", "USD 6.99 5"])],
      ["payout --by seller": ["FY2026-P01,Apple Inc.,USD,6.99,5.00,EUR"]]),
  ]

  private static let facts = [
    RuleCase(
      "a line has a month and proceeds only if they hold for every unit that is like it",
      sales + [october, november, december],
      [
        "journal position,settlement_month,proceeds,proceeds_currency --with-settlement yes": [
          "1,,,", "3,,,", "5,,,", "7,,,", "9,,,", "11,,,", "13,,,", "15,FY2026-P02,-5.88,EUR",
          "17,FY2026-P03,5.88,EUR",
        ],
        "sales sale_key,settlement_month,proceeds --with-settlement yes --country DE": [
          "1,,", "2,,", "3,,", "4,,", "5,,", "8,FY2026-P03,5.88",
        ],
      ]),
    RuleCase(
      "two shares of a unit are no fact, and two months are no month",
      [
        .sale("1", "2025-10-01", "DE"), .sale("2", "2025-10-02", "DE"),
        .sale("3", "2025-10-01", "FR"), .sale("4", "2025-10-02", "FR"),
        report(
          "FY2026-P01", digit: "1",
          [
            "pro.month S 1 5.88 EUR DE 9.99 EUR", "pro.month S 1 6.99 EUR DE 9.99 EUR",
            "pro.month S 1 5.88 EUR FR 9.99 EUR",
          ]),
        report("FY2026-P02", digit: "2", ["pro.month S 1 5.88 EUR FR 9.99 EUR"]),
      ],
      [
        "journal country_code,settlement_month,proceeds --with-settlement yes": [
          "DE,,", "FR,,5.88", "DE,,", "FR,,5.88",
        ]
      ]),
  ]

  private static let maps = [
    RuleCase(
      "a vendor identifier is of the product that it was mapped to last",
      [
        .sale("1", "2025-10-01", "DE"),
        report(
          "FY2026-P01",
          ["sku.1 S 1 5.88 EUR DE 9.99 EUR", "sku.2 S 1 5.88 EUR DE 9.99 EUR"]),
        mapped("sku.1", "pro.year"), mapped("sku.1", "pro.month"), mapped("sku.2", "x"),
        mapped("sku.2", nil),
      ],
      [
        "reconcile class,product_id": ["matched,pro.month", "missing_here,sku.2"],
        "proceeds product_id": ["pro.month", "sku.2"],
      ])
  ]

  private static func mapped(_ sku: String, _ product: String?) -> TestEvent {
    let data = SettlementMapped(sku: sku, productID: product).draft.data
    return .raw(
      type: EventType.settlementMapped.rawValue,
      JSONText(raw: String(decoding: data, as: UTF8.self)))
  }

  @Test("the report as of a position knows the file that counted then")
  func earlierPosition() throws {
    let ledger = try LedgerFixture()
    try ledger.append([
      report("FY2026-P01", digit: "1", ["a S 1 1.00 EUR DE 2.00 EUR"]),
      report("FY2026-P01", digit: "2", ["b S 1 1.00 EUR DE 2.00 EUR"]),
    ])
    let words = try ReportWords("reconcile product_id")
    let now = words.rows(of: try ledger.csv(words.request, from: ledger.current()))
    expectEqual(now, ["b"])
    let before = try ledger.projector().booksFromNothing(at: 1)
    expectEqual(words.rows(of: try ledger.csv(words.request, from: before)), ["a"])
  }
}
