// Rule R7, 4–6, by hand: prices that follow from other sales and from price lists.
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct RevenueDerivedPriceTests {
  @Test(arguments: carriedCases) func carriedForward(_ rule: RuleCase) throws { try rule.check() }

  /// A withdrawal of the declaration at a position.
  private static func withdrawn(_ what: String, _ position: Int) -> TestEvent {
    .raw(type: "\(what).withdrawn", .object([("position", JSONText(raw: "\(position)"))]))
  }

  @Test("the first withdrawal of a declaration is the one that its row names")
  func firstWithdrawal() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .prices(["coins DE EUR 1.00 2026-01-01"]), Self.withdrawn("prices", 0),
      Self.withdrawn("prices", 0),
    ])
    let rows = try fixture.current().prepare("SELECT withdrawn_by FROM declarations")
    #expect(try rows.step())
    expectEqual(rows.optionalText(0), "1")
  }

  /// A period of the subscription that began with transaction 1.
  private static func period(
    _ transaction: String, line: String, on day: String, _ members: Members = [:]
  ) -> JSONText {
    row(transaction, of: "1", line: line, product: "pro", on: day, members)
  }

  private static let carriedCases = [
    RuleCase(
      "R7.4: a renewal takes the price of the latest earlier period that a client priced",
      [
        .upload(
          reply(
            period("1", line: "71", on: "2026-01-01"), period("2", line: "72", on: "2026-02-01"),
            period("3", line: "73", on: "2026-03-01"), period("4", line: "74", on: "2026-04-01"),
            period("5", line: "75", on: "2026-05-01")),
          metadata: prices(entry(transaction: "1", "9.99"), entry(transaction: "4", "7.00")))
      ],
      [
        "sales sale_key,unit_price,price_basis,price_position": [
          "71,9.99,client_transaction,0", "72,9.99,carried_forward,0",
          "73,9.99,carried_forward,0", "74,7.00,client_transaction,0",
          "75,7.00,carried_forward,0",
        ],
        "exceptions": [],
      ]),
    RuleCase(
      "R7.4: a period before the first that was priced stays unpriced",
      [
        .upload(
          reply(
            period("1", line: "71", on: "2026-01-01"), period("2", line: "72", on: "2026-02-01")),
          metadata: prices(entry(transaction: "2", "9.99")))
      ],
      ["sales sale_key,price_basis": ["71,none", "72,client_transaction"]]),
    RuleCase(
      "R7.4: only within environment, bundle, original transaction, product and kind",
      [
        .upload(
          reply(
            period("1", line: "71", on: "2026-01-01"),
            row("2", of: "1", line: "72", product: "max", on: "2026-02-01"),
            row("3", of: "9", line: "73", product: "pro", on: "2026-02-01"),
            period("4", line: "74", on: "2026-02-01", ["promotional_offer_id": "p"]),
            row("1", of: "1", product: "pro", on: "2026-02-01")),
          metadata: prices(entry(transaction: "1", "9.99"))),
        .upload(
          reply(
            period("5", line: "75", on: "2026-02-01"), receipt: ["bundle_id": "other"]),
          receipt: "b"),
        .upload(
          reply(period("6", line: "76", on: "2026-02-01"), environment: "Sandbox"), receipt: "c",
          endpoint: .sandbox),
      ],
      [
        "sales sale_key,price_basis --environment all": [
          "1,client_transaction", "71,client_transaction", "72,none", "73,none", "74,none",
          "75,none", "76,none",
        ]
      ]),
    RuleCase(
      "R7.4: an offer's price is not carried",
      [
        .upload(
          reply(
            period("1", line: "71", on: "2026-01-01", ["is_in_intro_offer_period": true]),
            period("2", line: "72", on: "2026-02-01")),
          metadata: prices(entry(transaction: "1", "0.99")))
      ],
      ["sales sale_key,price_basis": ["71,client_transaction", "72,none"]]),
    RuleCase(
      "R7.4: to a line item only, and from a transaction too",
      [
        .upload(
          reply(
            row("1", product: "pro", on: "2026-01-01"),
            period("2", line: "72", on: "2026-02-01")),
          metadata: prices(entry(transaction: "1", "9.99"))),
        .upload(
          reply(
            row("8", of: "5", line: "85", product: "pro", on: "2026-01-01"),
            row("6", of: "5", product: "pro", on: "2026-02-01")),
          metadata: prices(entry(transaction: "8", "8.00")), receipt: "b"),
      ],
      [
        "sales sale_key,unit_price,price_basis": [
          "1,9.99,client_transaction", "5,,none", "72,9.99,carried_forward",
          "85,8.00,client_transaction",
        ]
      ]),
    RuleCase(
      "R7.4: earlier is by date, then by key as bytes",
      [
        .upload(
          reply(
            period("1", line: "10", on: "2026-01-01"), period("2", line: "9", on: "2026-01-01"),
            period("3", line: "11", on: "2026-02-01")),
          metadata: prices(entry(transaction: "1", "1.00"), entry(transaction: "2", "2.00"))),
        .upload(
          reply(
            period("4", line: "100", on: "2026-01-01"), period("5", line: "1", on: "2026-01-01")),
          receipt: "b"),
      ],
      [
        "sales sale_key,unit_price": ["1,", "10,1.00", "100,1.00", "11,2.00", "9,2.00"]
      ]),
    RuleCase(
      "R7.4: of two sales of one date and key neither is earlier",
      [
        .upload(
          reply(
            row("7", product: "pro", on: "2026-01-01"),
            row("8", of: "7", line: "7", product: "pro", on: "2026-01-01")),
          metadata: prices(entry(transaction: "7", "9.99")))
      ],
      ["revenue price_basis,units,gross --by basis": ["client_transaction,1,9.99", "none,1,"]]
    ),
    RuleCase(
      "R7.4: a later import that brings an earlier period changes what is carried",
      [
        .upload(
          reply(
            period("1", line: "71", on: "2026-01-01"), period("3", line: "73", on: "2026-03-01")),
          metadata: prices(entry(transaction: "1", "9.99"))),
        .upload(
          reply(period("2", line: "72", on: "2026-02-01")),
          metadata: prices(entry(transaction: "2", "7.00")), receipt: "b"),
      ],
      [
        "sales sale_key,unit_price,price_basis,price_position": [
          "71,9.99,client_transaction,0", "72,7.00,client_transaction,2",
          "73,7.00,carried_forward,2",
        ]
      ]),
    RuleCase(
      "R7.1: a client's later price replaces a carried one without a conflict",
      [
        .upload(
          reply(
            period("1", line: "71", on: "2026-01-01"), period("2", line: "72", on: "2026-02-01")),
          metadata: prices(entry(transaction: "1", "9.99"))),
        .upload(
          reply(period("2", line: "72", on: "2026-02-01")),
          metadata: prices(entry(transaction: "2", "8.00")), receipt: "b"),
      ],
      [
        "sales sale_key,unit_price,price_basis,price_position": [
          "71,9.99,client_transaction,0", "72,8.00,client_transaction,2",
        ],
        "exceptions": [],
      ]),
  ]

  @Test(arguments: listCases) func priceList(_ rule: RuleCase) throws { try rule.check() }

  private static let listCases = [
    RuleCase(
      "R7.5: the country's own entry, else the one without a country",
      [
        .prices(["coins DE EUR 2.99 2026-01-01", "coins - USD 1.99 2026-01-01"]),
        .upload(reply(row("1"))), .upload(reply(row("2")), country: "FR", receipt: "b"),
        .upload(reply(row("3")), country: nil, receipt: "c"),
        .upload(reply(row("4", product: "gems")), receipt: "d"),
      ],
      [
        "sales sale_key,unit_price,currency,price_basis,price_position": [
          "1,2.99,EUR,price_list,0", "2,1.99,USD,price_list,0", "3,1.99,USD,price_list,0",
          "4,,,none,",
        ],
        "exceptions exception,sale_key,detail": ["unpriced,4,no_price"],
      ]),
    RuleCase(
      "R7.5: an entry is in effect from 00:00 UTC of its day",
      [
        .upload(
          reply(row("1", on: "2026-01-04T23:59:59.999Z"), row("2", on: "2026-01-05T00:00:00.000Z"))),
        .prices(["coins DE EUR 1.00 2026-01-01", "coins DE EUR 2.00 2026-01-05"]),
      ],
      ["sales sale_key,unit_price,price_position": ["1,1.00,2", "2,2.00,2"]]),
    RuleCase(
      "R7.5: where none of the country's own is in effect yet, the one without a country holds",
      [
        .upload(reply(row("1"))),
        .prices(["coins DE EUR 2.00 2026-01-06", "coins - USD 1.00 2026-01-01"]),
      ],
      ["sales unit_price,currency": ["1.00,USD"]]),
    RuleCase(
      "R7.5: an old entry of the country's own holds against a newer one without a country",
      [
        .upload(reply(row("1"))),
        .prices(["coins DE EUR 2.00 2020-01-01", "coins - USD 1.00 2026-01-01"]),
      ],
      ["sales unit_price,currency": ["2.00,EUR"]]),
    RuleCase(
      "R7.5: the latest effective_from, then the latest position",
      [
        .prices(["coins DE EUR 1.00 2026-01-02"]), .prices(["coins DE EUR 2.00 2026-01-01"]),
        .upload(reply(row("1"))), .prices(["gems DE EUR 5.00 2026-01-01"]),
        .upload(reply(row("2", product: "gems")), receipt: "b"),
        .prices(["gems DE EUR 6.00 2026-01-01"]),
      ],
      ["sales sale_key,unit_price,price_position": ["1,1.00,0", "2,6.00,7"]]),
    RuleCase(
      "R7.5: a later declaration prices an earlier sale",
      [.upload(reply(row("1"))), .prices(["coins DE JPY 120 2025-01-01"])],
      ["sales unit_price,price_basis,price_position": ["120,price_list,2"], "exceptions": []]),
    RuleCase(
      "R7.5: a list that is withdrawn prices nothing, and an earlier one counts again",
      [
        .prices(["coins DE EUR 1.00 2026-01-01", "gems DE EUR 5.00 2026-01-01"]),
        .prices(["coins DE EUR 2.00 2026-01-01"]), .upload(reply(row("1"))),
        .upload(reply(row("2", product: "gems")), receipt: "b"),
        withdrawn("prices", 1), withdrawn("prices", 1),
      ],
      [
        "sales sale_key,unit_price,price_position": ["1,1.00,0", "2,5.00,0"], "exceptions": [],
      ]),
    RuleCase(
      "R7.5: the sales of a withdrawn list are unpriced, and the same prices can be declared again",
      [
        .prices(["coins DE EUR 1.00 2026-01-01", "gems DE EUR 5.00 2026-01-01"]),
        .upload(reply(row("1"))), .upload(reply(row("2", product: "gems")), receipt: "b"),
        withdrawn("prices", 0), .prices(["coins DE EUR 1.00 2026-01-01"]),
      ],
      [
        "sales sale_key,unit_price,price_basis,price_position": [
          "1,1.00,price_list,6", "2,,none,",
        ],
        "exceptions exception,sale_key": ["unpriced,2"],
      ]),
    RuleCase(
      "R7.5: only an earlier list is withdrawn",
      [
        .prices(["coins DE EUR 1.00 2026-01-01"]), .upload(reply(row("1"))),
        .rates(source: "r", ["2026-01-01 EUR USD 1.1"]), withdrawn("prices", 3),
        withdrawn("prices", 2), withdrawn("prices", 99), withdrawn("rates", 0),
      ],
      [
        "sales unit_price": ["1.00"],
        "exceptions exception,detail,position": [
          "malformed_event,prices.withdrawn position,4",
          "malformed_event,rates.withdrawn position,7",
        ],
      ]),
    RuleCase(
      "R10: rates that are withdrawn convert nothing, and earlier ones count again",
      [
        .upload(reply(row("1")), metadata: prices(entry(transaction: "1", "10.00"))),
        .rates(source: "a", ["2026-01-01 EUR USD 1.1"]),
        .rates(source: "b", ["2026-01-01 EUR USD 1.2", "2026-01-01 EUR GBP 0.9"]),
        withdrawn("rates", 3),
      ],
      [
        "journal amount,currency --in USD": ["11.00,USD"],
        "journal amount,currency --in GBP": ["10.00,EUR"],
      ]),
    RuleCase(
      "R7.5: regular sales only, and 0 is a price",
      [
        .upload(reply(row("1"), row("2", ["is_in_intro_offer_period": true]))),
        .prices(["coins DE EUR 0 2026-01-01"]),
      ],
      ["sales sale_key,unit_price,price_basis": ["1,0.00,price_list", "2,,none"]]),
    RuleCase(
      "R7: the client's price comes before a carried one, that before the list's",
      [
        .prices(["pro DE EUR 1.00 2025-01-01"]),
        .upload(
          reply(
            period("0", line: "70", on: "2025-12-01"), period("1", line: "71", on: "2026-01-01"),
            period("2", line: "72", on: "2026-02-01")),
          metadata: prices(entry(transaction: "1", "9.99"))),
      ],
      [
        "sales sale_key,unit_price,price_basis": [
          "70,1.00,price_list", "71,9.99,client_transaction", "72,9.99,carried_forward",
        ]
      ]),
    RuleCase(
      "R7.4: a price from a list is not carried",
      [
        .upload(
          reply(
            period("1", line: "71", on: "2026-01-01"), period("2", line: "72", on: "2026-02-01"))),
        .prices(["pro DE EUR 1.00 2026-01-01", "pro DE EUR 2.00 2026-02-01"]),
      ],
      ["sales sale_key,unit_price,price_basis": ["71,1.00,price_list", "72,2.00,price_list"]]),
    RuleCase(
      "R7.5: a country that becomes known later decides the price",
      [
        .prices(["coins FR EUR 2.00 2026-01-01", "coins - USD 1.00 2026-01-01"]),
        .upload(reply(row("1")), country: nil),
        .upload(reply(row("1")), country: "FR", receipt: "b"),
      ],
      ["sales unit_price,currency,country_position": ["2.00,EUR,3"]]),
    RuleCase(
      "R7.5: a list prices what a bad client price left unpriced; the exception stays",
      [
        .upload(reply(row("1")), metadata: shorthand("free")),
        .prices(["coins DE EUR 2.00 2026-01-01"]),
      ],
      [
        "sales unit_price,price_basis": ["2.00,price_list"],
        "exceptions exception,detail": ["price_unreadable,client_single"],
      ]),
    RuleCase(
      "R7.6: the first problem is the reason, though others follow",
      [
        .upload(
          reply(row("1")),
          metadata: [
            "prices": [entry(transaction: "1", "0"), entry(product: "coins", "x")],
            "price": "1.00",
          ])
      ],
      [
        "exceptions exception,detail": [
          "currency_missing,client_single", "price_unreadable,client_product",
          "price_zero,client_transaction", "unpriced,price_zero",
        ]
      ]),
  ]
}
