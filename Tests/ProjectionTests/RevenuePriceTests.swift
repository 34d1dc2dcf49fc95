// Rule R7, 1–3, by hand: the prices that clients send.
import Ledger
import TestSupport
import Testing

@Suite struct RevenuePriceTests {
  @Test(arguments: transactionCases) func byTransaction(_ rule: RuleCase) throws {
    try rule.check()
  }

  private static let transactionCases = [
    RuleCase(
      "R7.1: an entry for an alias of the sale prices it",
      [
        .upload(
          reply(row("2", of: "1", line: "7")),
          metadata: prices(entry(transaction: "2", "9.99")))
      ],
      [
        "sales unit_price,currency,price_basis,price_position": ["9.99,EUR,client_transaction,0"],
        "exceptions": [],
      ]),
    RuleCase(
      "R7.1: a line item's original transaction is no alias",
      [
        .upload(
          reply(row("2", of: "1", line: "7")),
          metadata: prices(entry(transaction: "1", "9.99")))
      ],
      [
        "sales unit_price,price_basis": [",none"],
        "exceptions exception,detail": ["price_unmatched,1", "unpriced,no_price"],
      ]
    ),
    RuleCase(
      "R7.1: a transaction's key is an alias",
      [.upload(reply(row("2", of: "1")), metadata: prices(entry(transaction: "1", "9.99")))],
      ["sales unit_price,price_basis": ["9.99,client_transaction"]]),
    RuleCase(
      "R7.1: ids may be numbers",
      [.upload(reply(row("12")), metadata: prices(entry(transaction: 12, "9.99")))],
      ["sales unit_price": ["9.99"]]),
    RuleCase(
      "R7.1: at any verification, however late",
      [
        .upload(reply(row("1"))),
        .upload(
          reply(row("1")), metadata: prices(entry(transaction: "1", "9.99")), at: "2027-01-01",
          receipt: "b"),
      ],
      [
        "sales unit_price,price_basis,price_position": ["9.99,client_transaction,2"],
        "exceptions": [],
      ]),
    RuleCase(
      "R7.1: an alias that a later row adds counts at once",
      [
        .upload(reply(row("1", of: "1", line: "7"))),
        .upload(
          reply(row("2", of: "1", line: "7")), metadata: prices(entry(transaction: "2", "5.00")),
          receipt: "b"),
      ],
      ["sales unit_price,price_basis,price_position": ["5.00,client_transaction,2"]]),
    RuleCase(
      "R7.1: only the first fitting entry counts; a bad one leads to the next rule",
      [
        .upload(
          reply(row("1")),
          metadata: prices(
            entry(transaction: "9", "1.00"), entry(transaction: "1", "free"),
            entry(transaction: "1", "2.00"), entry(product: "coins", "3.00")))
      ],
      [
        "sales unit_price,price_basis": ["3.00,client_product"],
        "exceptions exception,sale_key,position,detail": [
          "price_unmatched,,1,9", "price_unreadable,1,1,client_transaction",
        ],
      ]),
    RuleCase(
      "R7.1: a later price that differs is a conflict, and the first stays",
      [
        .upload(reply(row("1")), metadata: prices(entry(transaction: "1", "2.00"))),
        .upload(
          reply(row("1")), metadata: prices(entry(transaction: "1", "3")), receipt: "b"),
        .upload(
          reply(row("1")), metadata: prices(entry(transaction: "1", "2.00", "USD")), receipt: "c"),
        .upload(
          reply(row("1")), metadata: prices(entry(transaction: "1", "2.000")), receipt: "d"),
        .upload(
          reply(row("1")), metadata: prices(entry(transaction: "1", "0")), receipt: "e"),
      ],
      [
        "sales unit_price,currency,price_position": ["2.00,EUR,0"],
        "exceptions exception,sale_key,position,detail": [
          "price_conflict,1,3,3.00 EUR", "price_conflict,1,5,2.00 USD",
          "price_zero,1,9,client_transaction",
        ],
      ]),
    RuleCase(
      "R7.1: a price by product stands against a later one by transaction",
      [
        .upload(reply(row("1")), metadata: prices(entry(product: "coins", "2.00"))),
        .upload(
          reply(row("1")), metadata: prices(entry(transaction: "1", "3.00")), receipt: "b"),
      ],
      [
        "sales unit_price,price_basis": ["2.00,client_product"],
        "exceptions exception,position,detail": ["price_conflict,3,3.00 EUR"],
      ]),
    RuleCase(
      "R7: trials and family-shared sales have no price, whatever the client sends",
      [
        .upload(
          reply(
            row("1", ["is_trial_period": true]),
            row("2", ["in_app_ownership_type": "FAMILY_SHARED"])),
          metadata: prices(entry(transaction: "1", "free"), entry(transaction: "2", "2.00")))
      ],
      ["sales currency,unit_price,price_basis,price_position": [",,,", ",,,"], "exceptions": []]),
  ]

  @Test(arguments: productCases) func byProduct(_ rule: RuleCase) throws { try rule.check() }

  private static let productCases = [
    RuleCase(
      "R7.2: only at the verification that first observes the sale",
      [
        .upload(reply(row("1"))),
        .upload(
          reply(row("1")), metadata: prices(entry(product: "coins", "2.00")), receipt: "b"),
      ],
      ["sales price_basis": ["none"], "exceptions exception,detail": ["unpriced,no_price"]]),
    RuleCase(
      "R7.2: one entry prices all new sales of the product",
      [
        .upload(
          reply(row("1"), row("2"), row("3", product: "gems")),
          metadata: prices(entry(product: "coins", "2.00")))
      ],
      ["sales sale_key,unit_price": ["1,2.00", "2,2.00", "3,"]]),
    RuleCase(
      "R7.2: a regular sale takes the first entry without a kind or of kind regular",
      [
        .upload(
          reply(
            row("1", product: "a"), row("2", product: "b"), row("3", product: "c"),
            row("4", product: "d"), row("5", product: "e")),
          metadata: prices(
            entry(product: "a", kind: "intro", "1.00"), entry(product: "a", "2.00"),
            entry(product: "a", "3.00"), entry(product: "b", kind: "regular", "4.00"),
            entry(product: "c", kind: .null, "5.00"), entry(product: "d", kind: "promo", "6.00"),
            entry(product: "e", kind: "", "7.00")))
      ],
      [
        "sales sale_key,unit_price,price_basis": [
          "1,2.00,client_product", "2,4.00,client_product", "3,5.00,client_product", "4,,none",
          "5,7.00,client_product",
        ]
      ]),
    RuleCase(
      "R7.2: an offer takes an entry of its own kind",
      [
        .upload(
          reply(
            row("1", ["is_in_intro_offer_period": true]), row("2", ["promotional_offer_id": "p"]),
            row("3", ["offer_code_ref_name": "c"]),
            row("4", product: "gems", ["promotional_offer_id": "p"])),
          metadata: prices(
            entry(product: "coins", "1.00"), entry(product: "coins", kind: "regular", "1.50"),
            entry(product: "coins", kind: "promo", "2.00"),
            entry(product: "coins", kind: "intro", "3.00"),
            entry(product: "coins", kind: "offer_code", "4.00"),
            entry(product: "gems", kind: "intro", "5.00")))
      ],
      ["sales sale_key,unit_price": ["1,3.00", "2,2.00", "3,4.00", "4,"]]),
    RuleCase(
      "R7.2: only the first fitting entry counts; a bad one leads to the shorthand",
      [
        .upload(
          reply(row("1")),
          metadata: [
            "prices": [entry(product: "coins", "0"), entry(product: "coins", "2.00")],
            "price": "3.00", "currency": "EUR",
          ])
      ],
      [
        "sales unit_price,price_basis": ["3.00,client_single"],
        "exceptions exception,detail": ["price_zero,client_product"],
      ]),
  ]

  @Test(arguments: otherTransactionCases)
  func underAnotherTransaction(_ rule: RuleCase) throws { try rule.check() }

  private static let unmatched = "exceptions exception,sale_key,position,detail --without unpriced"

  private static let otherTransactionCases = [
    RuleCase(
      "R7: an entry whose transaction no sale has counts for the one new sale of its product",
      [
        .upload(
          reply(row("1"), row("2", product: "gems")),
          metadata: prices(
            entry(transaction: "9", product: "coins", "2.00"),
            entry(transaction: "8", product: "gems", "3.00")))
      ],
      [
        "sales sale_key,unit_price,price_basis": [
          "1,2.00,client_product", "2,3.00,client_product",
        ],
        unmatched: [],
      ]),
    RuleCase(
      "R7: of two new sales of the product neither is meant, and the price is an exception",
      [
        .upload(
          reply(row("1"), row("2")),
          metadata: prices(entry(transaction: "9", product: "coins", "2.00")))
      ],
      ["sales price_basis": ["none", "none"], unmatched: ["price_unmatched,,1,9"]]),
    RuleCase(
      "R7: without a product, with one that is not shown, or with one seen before it is an exception",
      [
        .upload(reply(row("1")), metadata: prices(entry(transaction: "9", "2.00"))),
        .upload(
          reply(row("1"), row("2", product: "gems")),
          metadata: prices(
            entry(transaction: "9", product: "coins", "2.00"),
            entry(transaction: "8", product: "bars", "2.00")),
          receipt: "b"),
      ],
      [
        "sales price_basis": ["none", "none"],
        unmatched: ["price_unmatched,,1,9", "price_unmatched,,3,8", "price_unmatched,,3,9"],
      ]),
    RuleCase(
      "R7: a transaction of any sale, of whatever environment, is not read and no exception",
      [
        .upload(reply(row("5", of: "4", line: "w5"), environment: "Sandbox")),
        .upload(
          reply(row("1")),
          metadata: prices(
            entry(transaction: "5", product: "coins", "2.00"),
            // A line item's original transaction is not among its own ids.
            entry(transaction: "4", "3.00")),
          receipt: "b"),
      ],
      [
        "sales sale_key,price_basis": ["1,none"],
        unmatched: ["price_unmatched,,3,4"],
      ]),
    RuleCase(
      "R7: it counts as an entry of the product: for no other sale, after the shorthand's turn, in time",
      [
        .upload(
          reply(row("1"), row("2", ["is_in_intro_offer_period": true])),
          metadata: prices(entry(transaction: "9", product: "coins", kind: "intro", "2.00"))),
        .upload(
          reply(row("3", product: "gems")),
          metadata: [
            "prices": [entry(product: "gems", "2.00")], "price": "3.00", "currency": "EUR",
            "transaction_id": "7", "product_id": "gems",
          ], receipt: "b"),
        .upload(
          reply(row("4", product: "bars")),
          metadata: prices(entry(transaction: "9", product: "bars", "2.00")), at: "2026-02-20",
          receipt: "c"),
      ],
      [
        "sales sale_key,unit_price,price_basis": [
          "1,,none", "2,,none", "3,2.00,client_product", "4,,none",
        ],
        unmatched: ["price_observed_late,4,5,client_product"],
      ]),
    RuleCase(
      "R7: it is an exception once for each upload, however often that is verified",
      [
        .upload(
          reply(row("1")),
          metadata: prices(entry(transaction: "9", "2.00"), entry(transaction: "9", "2.00"))),
        .verify(0, reply(row("1"))),
        .upload(reply(), metadata: prices(entry(transaction: "9", "2.00")), receipt: "b"),
      ],
      [unmatched: ["price_unmatched,,1,9", "price_unmatched,,4,9"]]),
  ]

  @Test(arguments: shorthandCases) func byShorthand(_ rule: RuleCase) throws { try rule.check() }

  private static let shorthandCases = [
    RuleCase(
      "R7.3: the shorthand prices the one new regular sale; other kinds are not counted",
      [
        .upload(
          reply(
            row("1"), row("2", ["is_trial_period": true]),
            row("3", ["in_app_ownership_type": "FAMILY_SHARED"]),
            row("4", ["is_in_intro_offer_period": true])),
          metadata: shorthand("2.00"))
      ],
      [
        "sales sale_key,unit_price,price_basis": [
          "1,2.00,client_single", "2,,", "3,,", "4,,none",
        ],
        "exceptions exception,sale_key,detail": ["unpriced,4,no_price"],
      ]),
    RuleCase(
      "R7.3: sales seen before are not counted",
      [
        .upload(reply(row("1"))),
        .upload(reply(row("1"), row("2")), metadata: shorthand("2.00"), receipt: "b"),
      ],
      [
        "sales sale_key,unit_price": ["1,", "2,2.00"],
        "exceptions exception,sale_key": ["unpriced,1"],
      ]
    ),
    RuleCase(
      "R7.3: several new regular sales make the shorthand ambiguous, even where one has a price",
      [
        .upload(
          reply(row("1"), row("2", product: "gems")),
          metadata: [
            "price": "2.00", "currency": "EUR", "prices": [entry(product: "gems", "3.00")],
          ])
      ],
      [
        "sales sale_key,unit_price": ["1,", "2,3.00"],
        "exceptions": [
          "price_ambiguous,Production,app,,,,1,2 new sales at 1,2026-01-10T00:00:00.000Z,DE,",
          "unpriced,Production,app,1,coins,1,1,no_price,2026-01-05T00:00:00.000Z,DE,",
        ],
      ]),
    RuleCase(
      "R7.3: without a new regular sale the shorthand is ignored",
      [
        .upload(reply(row("1", ["is_in_intro_offer_period": true])), metadata: shorthand("free")),
        .upload(reply(row("1")), metadata: shorthand("2.00"), receipt: "b"),
      ],
      ["sales unit_price": [""], "exceptions exception,detail": ["unpriced,no_price"]]),
    RuleCase(
      "R7.3: where 1 or 2 gave a price the shorthand is not read",
      [
        .upload(
          reply(row("1")),
          metadata: ["price": "free", "prices": [entry(transaction: "1", "2.00")]])
      ],
      ["sales unit_price,price_basis": ["2.00,client_transaction"], "exceptions": []]),
    RuleCase(
      "R7.3: a bad shorthand leaves the sale unpriced for its reason",
      [.upload(reply(row("1")), metadata: ["price": "2.00"])],
      [
        "exceptions exception,sale_key,detail": [
          "currency_missing,1,client_single", "unpriced,1,currency_missing",
        ]
      ]),
    RuleCase(
      "R7.3: a shorthand beside a product is an entry, after those of prices[]",
      [
        .upload(
          reply(row("1"), row("2", product: "gems"), row("3", product: "hats")),
          metadata: [
            "prices": [entry(product: "gems", "3.00")], "product_id": "coins", "price": "2.00",
            "currency": "EUR",
          ]),
        .upload(
          reply(row("4")),
          metadata: [
            "product_id": "coins", "price": "5.00", "currency": "EUR",
            "prices": [entry(product: "coins", "6.00")],
          ], receipt: "b"),
        .upload(
          reply(row("5")), metadata: shorthand("2.00", "EUR", ["product_id": "gems"]), receipt: "c"),
        .upload(
          reply(row("6")), metadata: shorthand("2.00", "EUR", ["transaction_id": "6"]),
          receipt: "d"),
      ],
      [
        "sales sale_key,unit_price,price_basis": [
          "1,2.00,client_product", "2,3.00,client_product", "3,,none", "4,6.00,client_product",
          "5,,none", "6,2.00,client_transaction",
        ],
        "exceptions exception,sale_key": ["unpriced,3", "unpriced,5"],
      ]),
    RuleCase(
      "R7.3: another form than price is a shorthand too; a currency alone is none",
      [
        .upload(
          reply(row("1")), metadata: ["price_micros": 2_500_000, "currency": "EUR"]),
        .upload(
          reply(row("2")), metadata: ["price_milliunits": 2500, "currency": "EUR"], receipt: "b"),
        .upload(reply(row("3")), metadata: ["currency": "EUR", "price": .null], receipt: "c"),
      ],
      [
        "sales sale_key,unit_price": ["1,2.50", "2,2.50", "3,"],
        "exceptions exception,sale_key,detail": ["unpriced,3,no_price"],
      ]),
    RuleCase(
      "R7: metadata of any other shape gives nothing",
      [
        .upload(reply(row("1")), metadata: ["prices": ["product_id": "coins", "price": "1"]]),
        .upload(reply(row("2")), metadata: ["prices": ["x", 5, .null, [], true]], receipt: "b"),
        .upload(reply(row("3")), metadata: [:], receipt: "c"),
      ],
      [
        "exceptions exception,sale_key,detail": [
          "unpriced,1,no_price", "unpriced,2,no_price", "unpriced,3,no_price",
        ]
      ]),
  ]

  @Test(arguments: lateCases) func late(_ rule: RuleCase) throws { try rule.check() }

  private static let lateCases = [
    RuleCase(
      "R7: thirty days after the sale a price is still evidence",
      [
        .upload(
          reply(row("1")), metadata: prices(entry(product: "coins", "2.00")),
          at: "2026-02-04T00:00:00.000Z"),
        .upload(
          reply(row("2")), metadata: shorthand("2.00"), at: "2026-02-04T00:00:00.000Z",
          receipt: "b"),
      ],
      [
        "sales price_basis": ["client_product", "client_single"], "exceptions": [],
      ]),
    RuleCase(
      "R7: a millisecond later it is none, by product and by shorthand",
      [
        .upload(
          reply(row("1")), metadata: prices(entry(product: "coins", "2.00")),
          at: "2026-02-04T00:00:00.001Z"),
        .upload(
          reply(row("2")), metadata: shorthand("2.00"), at: "2026-02-04T00:00:00.001Z",
          receipt: "b"),
      ],
      [
        "sales price_basis": ["none", "none"],
        "exceptions exception,sale_key,position,detail": [
          "price_observed_late,1,1,client_product", "unpriced,1,1,no_price",
          "price_observed_late,2,3,client_single", "unpriced,2,3,no_price",
        ],
      ]),
    RuleCase(
      "R7: the upload's time counts, not the verification's; before the sale is not late",
      [
        .upload(
          reply(row("1")), metadata: shorthand("2.00"), at: "2026-02-04",
          verifiedAt: "2026-05-01"),
        .upload(reply(row("2")), metadata: shorthand("3.00"), at: "2025-01-01", receipt: "b"),
      ],
      ["sales unit_price": ["2.00", "3.00"], "exceptions": []]),
  ]
}
