// Rules R9 and R10 by hand: periods, filters, dimensions, cells, and the reporting currency.
import Ledger
import TestSupport
import Testing

@Suite struct RevenueReportTests {
  @Test(arguments: periodCases) func periods(_ rule: RuleCase) throws { try rule.check() }

  private static func bought(_ time: String) -> [TestEvent] {
    [.upload(reply(row("1", on: time)), metadata: prices(entry(transaction: "1", "2.00")))]
  }

  private static let returnedInFebruary: [TestEvent] = [
    .upload(
      reply(row("1", ["cancellation_date_ms": date("2026-02-10")])),
      metadata: prices(entry(transaction: "1", "2.00")))
  ]

  private static let periodCases = [
    RuleCase(
      "R9: the five periods; an hour before midnight of a Saturday",
      bought("2026-03-14T23:00:00Z"),
      [
        "revenue period --by period --period year": ["2026"],
        "revenue period --by period --period quarter": ["2026-Q1"],
        "revenue period --by period": ["2026-03"],
        "revenue period --by period --period week": ["2026-W11"],
        "revenue period --by period --period day": ["2026-03-14"],
        "revenue period --by period --period week --timezone Pacific/Auckland": ["2026-W11"],
        "revenue period --by period --period day --timezone Pacific/Auckland": ["2026-03-15"],
      ]),
    RuleCase(
      "R9: the night in which Berlin's summer time begins",
      bought("2026-03-29T22:30:00Z"),
      [
        "revenue period --by period --period day": ["2026-03-29"],
        "revenue period --by period --period day --timezone Europe/Berlin": ["2026-03-30"],
        "revenue period --by period --period week": ["2026-W13"],
        "revenue period --by period --period week --timezone Europe/Berlin": ["2026-W14"],
        "revenue period --by period --period day --timezone America/New_York": ["2026-03-29"],
      ]),
    RuleCase(
      "R9: the evening before, in winter time, is not yet tomorrow",
      bought("2026-03-28T22:30:00Z"),
      ["revenue period --by period --period day --timezone Europe/Berlin": ["2026-03-28"]]),
    RuleCase(
      "R9: the turn of a quarter and of a year",
      bought("2025-12-31T23:30:00Z"),
      [
        "revenue period --by period --period quarter": ["2025-Q4"],
        "revenue period --by period --period quarter --timezone Europe/Berlin": ["2026-Q1"],
        "revenue period --by period --period year --timezone Europe/Berlin": ["2026"],
        "revenue period --by period --period week": ["2026-W01"],
      ]),
    RuleCase(
      "R9: refunds stand in their own period, or restate the sale's",
      returnedInFebruary,
      [
        "revenue --by period": [
          "2026-01,EUR,1,2.00,0,0.00,0,0.00,2.00,0,0,0",
          "2026-02,EUR,0,0.00,1,2.00,0,0.00,-2.00,0,0,0",
        ],
        "revenue --by period --refunds sale-date": [
          "2026-01,EUR,1,2.00,1,2.00,0,0.00,0.00,0,0,0"
        ],
        "journal line,date --refunds sale-date": [
          "Sale,2026-01-05T00:00:00.000Z", "Return,2026-02-10T00:00:00.000Z",
        ],
      ]),
    RuleCase(
      "R9: from and to are days in the zone, both inclusive, on the date that decides",
      returnedInFebruary,
      [
        "revenue units,returned_units --from 2026-02-01": ["0,1"],
        "revenue units,returned_units --to 2026-02-09": ["1,0"],
        "revenue units,returned_units --from 2026-02-10 --to 2026-02-10": ["0,1"],
        "revenue units,returned_units --from 2026-01-05 --to 2026-02-10": ["1,1"],
        "revenue units,returned_units --from 2026-02-10 --timezone America/New_York": [],
        "revenue units,returned_units --to 2026-01-04 --timezone America/New_York": ["1,0"],
        "revenue units,returned_units --from 2026-02-01 --refunds sale-date": [],
        "revenue units,returned_units --to 2026-01-05 --refunds sale-date": ["1,1"],
        "journal line --from 2026-02-10 --to 2026-02-10": ["Return"],
        "journal line --from 2026-02-10 --refunds sale-date": [],
        "sales sale_key --from 2026-01-05 --to 2026-01-05": ["1"],
        "sales sale_key --from 2026-01-06": [],
      ]),
    RuleCase(
      "R9: a ledger without events has reports without rows",
      [],
      ["revenue": [], "journal": [], "sales": [], "exceptions": [], "users": [], "receipts": []]),
  ]

  @Test(arguments: dimensionCases) func dimensions(_ rule: RuleCase) throws { try rule.check() }

  private static let dimensionCases = [
    RuleCase(
      "R9: by all dimensions, sorted in the order given, then by currency, as bytes",
      [
        .upload(
          reply(row("1"), row("2", product: "Gems", on: "2026-02-01", ["quantity": 2]), row("3")),
          metadata: prices(
            entry(transaction: "1", "2.00"), entry(transaction: "2", "1.50"),
            entry(transaction: "3", "2.20", "USD"))),
        .upload(
          reply(row("4"), receipt: ["bundle_id": "zoo"]), country: "AT",
          metadata: prices(entry(transaction: "4", "3.00")), receipt: "b"),
        .upload(
          reply(row("5"), environment: "Sandbox"), country: nil, receipt: "c", endpoint: .sandbox),
      ],
      [
        "revenue period,bundle_id,product_id,country_code,environment,price_basis,currency,units,gross --by period,app,product,country,environment,basis --environment all":
          [
            "2026-01,app,coins,DE,Production,client_transaction,EUR,1,2.00",
            "2026-01,app,coins,DE,Production,client_transaction,USD,1,2.20",
            "2026-01,app,coins,ZZ,Sandbox,none,,1,",
            "2026-01,zoo,coins,AT,Production,client_transaction,EUR,1,3.00",
            "2026-02,app,Gems,DE,Production,client_transaction,EUR,2,3.00",
          ],
        "revenue product_id,period,currency,units --by product,period": [
          "Gems,2026-02,EUR,2", "coins,2026-01,EUR,2", "coins,2026-01,USD,1",
        ],
        "revenue": [
          "AT,EUR,1,3.00,0,0.00,0,0.00,3.00,0,0,0", "DE,EUR,3,5.00,0,0.00,0,0.00,5.00,0,0,0",
          "DE,USD,1,2.20,0,0.00,0,0.00,2.20,0,0,0",
        ],
        "revenue environment,currency,units,gross,unpriced_units --by environment --environment all":
          ["Production,EUR,4,8.00,0", "Production,USD,1,2.20,0", "Sandbox,,1,,1"],
      ]),
    RuleCase(
      "R9: sums need more than 64 bits of micros",
      [
        .upload(
          reply(rows: (10..<22).map { row("\($0)", ["quantity": 10]) }),
          metadata: prices(entry(product: "coins", "99999999999.999999")))
      ],
      ["revenue units,gross,net": ["120,11999999999999.99988,11999999999999.99988"]]),
    RuleCase(
      "R9: an amount has its currency's digits, more where it needs them",
      [
        .upload(
          reply(
            row("1", ["quantity": 3]), row("2", ["quantity": 3]), row("3", ["quantity": 3]),
            row("4", ["quantity": 3]), row("5", ["quantity": 3])),
          metadata: prices(
            entry(transaction: "1", "100", "JPY"), entry(transaction: "2", "100.5", "JPY"),
            entry(transaction: "3", "0.1", "KWD"), entry(transaction: "4", "0.1", "CLF"),
            entry(transaction: "5", "0.000001", "USD")))
      ],
      [
        "journal sale_key,currency,unit_price,amount": [
          "1,JPY,100,300", "2,JPY,100.5,301.5", "3,KWD,0.100,0.300", "4,CLF,0.1000,0.3000",
          "5,USD,0.000001,0.000003",
        ],
        "revenue currency,gross,returns": [
          "CLF,0.3000,0.0000", "JPY,601.5,0", "KWD,0.300,0.000", "USD,0.000003,0.00",
        ],
      ]),
    RuleCase(
      "R9: cells are quoted where needed, and no spreadsheet runs one",
      [
        .upload(
          reply(
            row("1", product: "a,b"), row("2", product: "quo\"te"),
            row("3", product: "two\nlines"), row("4", product: "=1+2"),
            row("5", product: "+49"), row("6", product: "-7"), row("7", product: "@sum"),
            row("8", product: "\tx"), row("9", product: "\rx"), row("=a", product: "=a,\"b\""),
            row("b", product: " spaced "), row("c", product: "\nx"), row("d", product: "\u{0}x"),
            row("e", product: "\u{FF1D}1+2"), row("f", product: "\u{FF0B}49"),
            row("g", product: "\u{FF0D}7"), row("h", product: "\u{FF20}sum"),
            row("i", product: "\u{FF1E}1"), row("j", product: "\u{FF1D}"), row("k", product: "a;b"),
            row("l", product: "=1;2")))
      ],
      [
        "sales sale_key,product_id": [
          "1,\"a,b\"", "2,\"quo\"\"te\"", "3,\"two\nlines\"", "4,'=1+2", "5,'+49", "6,'-7",
          "7,'@sum", "8,'\tx", "9,\"'\rx\"", "'=a,\"'=a,\"\"b\"\"\"", "b, spaced ",
          "c,\"'\nx\"", "d,'\u{0}x", "e,'\u{FF1D}1+2", "f,'\u{FF0B}49", "g,'\u{FF0D}7",
          "h,'\u{FF20}sum", "i,\u{FF1E}1", "j,'\u{FF1D}", "k,\"a;b\"", "l,\"'=1;2\"",
        ]
      ]),
    RuleCase(
      "R9: exceptions are sorted by position, then by their columns",
      [
        .upload(
          reply(
            row("2", ["quantity": 0]), row("1", ["quantity": "x", "product_id": "b"]),
            row("3", ["product_id": .null])))
      ],
      [
        "exceptions": [
          "bad_quantity,Production,app,1,b,1,1,x,2026-01-05T00:00:00.000Z,DE,",
          "bad_quantity,Production,app,2,coins,2,1,0,2026-01-05T00:00:00.000Z,DE,",
          "malformed_transaction,Production,app,,,3,1,product_id,2026-01-10T00:00:00.000Z,DE,",
          "unpriced,Production,app,1,b,1,1,no_price,2026-01-05T00:00:00.000Z,DE,",
          "unpriced,Production,app,2,coins,2,1,no_price,2026-01-05T00:00:00.000Z,DE,",
        ]
      ]),
    RuleCase(
      "R9: the users",
      [
        .upload(
          reply(
            row("1", ["quantity": 2]), row("2", ["cancellation_date_ms": date("2026-01-06")]),
            row("3", ["is_trial_period": true]), row("4")),
          country: "FR", user: "u2",
          metadata: prices(
            entry(transaction: "1", "9.99"), entry(transaction: "2", "4.00", "USD"))),
        .upload(country: "DE", user: "u2", at: "2026-01-09", receipt: "b"),
        .upload(user: "U3", at: "2026-01-11"),
        .upload(user: nil),
      ],
      [
        "users": [
          "U3,1,1,0,0,0,DE,,2026-01-11T00:00:00.000Z,2026-01-11T00:00:00.000Z",
          "u2,2,2,3,1,1,DE FR,19.98 EUR 0.00 USD,2026-01-09T00:00:00.000Z,2026-01-10T00:00:00.000Z",
        ]
      ]),
    RuleCase(
      "R9: the receipts and their states",
      [
        .upload(reply(row("1"), row("2")), country: nil, user: "u"),
        .upload(reply(row("1")), country: "FR", user: "v"),
        .upload(
          ["status": 21003], receipt: "b", outcome: .invalid, status: 21003),
        .upload(["status": 21010], receipt: "c", outcome: .invalid, status: 21010),
        .upload(["status": 21005], receipt: "d", outcome: .unreachable, status: 21005),
      ],
      [
        "receipts bundle_id,style,environment,state,is_fraud,fraud_reason,country_code,user_identifier,uploads,purchases,first_position,last_position,created_at,updated_at":
          [
            "app,unified,Production,valid,false,,FR,u,2,1,0,3,2026-02-01T00:00:00.000Z,2026-02-01T00:00:01.000Z",
            "app,unified,Production,invalid,true,not_authenticated,DE,,1,0,4,5,2026-02-01T00:00:02.000Z,2026-02-01T00:00:02.000Z",
            "app,unified,Production,unavailable,false,,DE,,1,0,6,7,2026-02-01T00:00:03.000Z,2026-02-01T00:00:03.000Z",
            "app,unified,Production,pending,false,,DE,,1,0,8,9,2026-02-01T00:00:04.000Z,2026-02-01T00:00:04.000Z",
          ]
      ]),
  ]

  // MARK: R10

  @Test(arguments: conversionCases) func conversion(_ rule: RuleCase) throws { try rule.check() }

  /// A sale of 5 January 2026 at a price, returned on 10 February.
  private static func sold(_ price: JSONText, _ currency: JSONText) -> TestEvent {
    .upload(
      reply(row("1", ["quantity": 3, "cancellation_date_ms": date("2026-02-10")])),
      metadata: prices(entry(transaction: "1", price, currency)))
  }

  private static let conversionCases = [
    RuleCase(
      "R10: the direct pair, each line at its own day's rate or the latest before",
      [
        sold("2.00", "EUR"),
        .rates(
          source: "bank",
          ["2026-01-04 EUR USD 1.25", "2026-01-06 EUR USD 9", "2026-02-10 EUR USD 2"]),
      ],
      [
        "revenue currency,gross,returns,net --in USD": ["USD,7.50,12.00,-4.50"],
        "journal line,currency,unit_price,amount --in USD": [
          "Sale,USD,2.50,7.50", "Return,USD,4.00,-12.00",
        ],
        "revenue currency,gross --in EUR": ["EUR,6.00"],
        "exceptions --in USD": [],
      ]),
    RuleCase(
      "R10: else the inverse of the opposite pair",
      [sold("2.00", "USD"), .rates(source: "bank", ["2026-01-05 EUR USD 1.25"])],
      ["revenue currency,gross,net --in EUR --rates-max-age 36": ["EUR,4.80,0.00"]]),
    RuleCase(
      "R10: the direct pair comes before a newer opposite one",
      [
        sold("2.00", "USD"),
        .rates(source: "bank", ["2025-12-31 USD EUR 0.5", "2026-01-05 EUR USD 1.25"]),
      ],
      ["revenue currency,gross --in EUR --rates-max-age 60": ["EUR,3.00"]]),
    RuleCase(
      "R10: a rate that is too old is not used, and the lines that it would have converted are told",
      [
        sold("2.00", "USD"), .rates(source: "bank", ["2010-01-04 EUR USD 2"]),
      ],
      [
        "revenue currency,gross,returns --in EUR": ["USD,6.00,6.00"],
        "journal line,currency,amount --in EUR --rates-max-age 10000": [
          "Sale,EUR,3.00", "Return,EUR,-3.00",
        ],
        "exceptions --in EUR": [
          "stale_rate,Production,app,1,coins,1,1,USD 2010-01-04,2026-01-05T00:00:00.000Z,DE,",
          "unconverted,Production,app,1,coins,1,1,Return USD,2026-02-10T00:00:00.000Z,DE,",
          "unconverted,Production,app,1,coins,1,1,Sale USD,2026-01-05T00:00:00.000Z,DE,",
        ],
        "exceptions --in EUR --rates-max-age 10000": [],
        "exceptions": [],
      ]),
    RuleCase(
      "R10: 35 days are young enough, for each line by its own day; a younger way is taken",
      [
        sold("2.00", "USD"),
        .rates(
          source: "bank",
          ["2025-12-01 USD EUR 0.5", "2026-01-06 CHF USD 4", "2026-01-06 CHF EUR 3"]
        ),
      ],
      [
        "journal line,currency,amount --in EUR": ["Sale,EUR,3.00", "Return,EUR,-4.50"],
        "journal line,currency,amount --in EUR --rates-max-age 34": [
          "Sale,USD,6.00", "Return,USD,-6.00",
        ],
        "exceptions detail --in EUR --rates-max-age 34": [
          "USD 2025-12-01", "Return USD", "Sale USD",
        ],
      ]),
    RuleCase(
      "R10: else through the alphabetically first base with rates to both",
      [
        sold("2.00", "GBP"),
        .rates(
          source: "bank",
          [
            "2026-01-05 EUR GBP 0.8", "2026-01-05 EUR USD 1.2", "2026-01-01 AUD GBP 0.5",
            "2026-01-01 AUD USD 0.6", "2026-01-05 AED USD 0.3",
          ]),
      ],
      ["revenue currency,gross --in USD --rates-max-age 60": ["USD,7.20"]]),
    RuleCase(
      "R10: the latest position of one day holds",
      [
        sold("1.00", "EUR"), .rates(source: "one", ["2026-01-05 EUR USD 1"]),
        .rates(source: "two", ["2026-01-05 EUR USD 3", "2026-01-04 EUR USD 5"]),
      ],
      ["revenue currency,gross --in USD --rates-max-age 60": ["USD,9.00"]]),
    RuleCase(
      "R10: without a rate the line stays in its currency and is an exception",
      [sold("2.00", "EUR"), .rates(source: "bank", ["2026-01-06 EUR USD 1.25"])],
      [
        "revenue currency,units,gross,returned_units,returns,net --in USD": [
          "EUR,3,6.00,0,0.00,6.00", "USD,0,0.00,3,7.50,-7.50",
        ],
        "journal line,currency,unit_price,amount --in USD": [
          "Sale,EUR,2.00,6.00", "Return,USD,2.50,-7.50",
        ],
        "exceptions --in USD": [
          "unconverted,Production,app,1,coins,1,1,Sale EUR,2026-01-05T00:00:00.000Z,DE,"
        ],
        "exceptions --in GBP": [
          "unconverted,Production,app,1,coins,1,1,Return EUR,2026-02-10T00:00:00.000Z,DE,",
          "unconverted,Production,app,1,coins,1,1,Sale EUR,2026-01-05T00:00:00.000Z,DE,",
        ],
        "exceptions": [],
      ]),
    RuleCase(
      "R10: a line is rounded once, half to even, to the micro",
      [
        .upload(
          reply(row("1"), row("2"), row("3", ["quantity": 3])),
          metadata: prices(
            entry(transaction: "1", "0.000001"), entry(transaction: "2", "0.000003"),
            entry(transaction: "3", "0.000001"))),
        .rates(source: "bank", ["2026-01-01 EUR USD 0.5"]),
      ],
      [
        "journal sale_key,unit_price,amount --in USD": [
          "1,0.00,0.00", "2,0.000002,0.000002", "3,0.00,0.000002",
        ],
        "revenue gross --in USD": ["0.000004"],
      ]),
    RuleCase(
      "R10: an inverse that has no end is an exact fraction until it is rounded",
      [sold("1.00", "USD"), .rates(source: "bank", ["2026-01-01 EUR USD 3"])],
      [
        "journal line,unit_price,amount --in EUR --rates-max-age 60": [
          "Sale,0.333333,1.00", "Return,0.333333,-1.00",
        ]
      ]),
  ]
}
