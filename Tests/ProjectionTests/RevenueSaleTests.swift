// Rules R1 to R6 by hand: which replies count, what a sale is, and what it keeps.
import Ledger
import TestSupport
import Testing

extension RuleCase {
  /// Compares the reports, rebuilt and caught up alike, with figures worked out by hand.
  func check() throws {
    for (found, expected) in zip(try found(), expected) {
      expectEqual(found.rebuilt, expected.rows, "rebuilt: \(found.report)")
      expectEqual(found.caughtUp, expected.rows, "caught up after each step: \(found.report)")
    }
  }
}

extension RuleCase: CustomTestStringConvertible {
  var testDescription: String { description }
}

@Suite struct RevenueSaleTests {
  @Test(arguments: countedRepliesCases) func countedReplies(_ rule: RuleCase) throws {
    try rule.check()
  }

  private static let countedRepliesCases = [
    RuleCase(
      "R1: statuses 0 and 21006 give sales",
      [
        .upload(reply(row("1"))),
        .upload(reply(row("2"), status: 21006), receipt: "b", status: 21006),
      ],
      ["sales sale_key": ["1", "2"], "exceptions --without unpriced": []]),
    RuleCase(
      "R1: every other recorded reply is an exception and gives no sale",
      [
        .upload(reply(row("1"), status: 21003), outcome: .invalid, status: 21003),
        .upload(["status": 21010], receipt: "b", outcome: .invalid, status: 21010),
        .upload(["status": 21005], receipt: "c", outcome: .unreachable, status: 21005),
      ],
      [
        "sales": [], "journal": [],
        "exceptions": [
          "reply_not_valid,Production,app,,,,1,status 21003 at 1,2026-01-10T00:00:00.000Z,DE,",
          "reply_not_valid,Production,,,,,3,status 21010 at 3,2026-01-10T00:00:00.000Z,DE,",
          "reply_not_valid,Production,,,,,5,status 21005 at 5,2026-01-10T00:00:00.000Z,DE,",
        ],
      ]),
    RuleCase(
      "R1: the reply's environment, else the endpoint's; Production alone is shown by default",
      [
        .upload(reply(row("1"), environment: "Sandbox")),
        .upload(reply(row("2"), environment: .absent), receipt: "b", endpoint: .sandbox),
        .upload(reply(row("3"), environment: .null), receipt: "c"),
      ],
      [
        "sales sale_key": ["3"],
        "sales environment,sale_key --environment all": [
          "Production,3", "Sandbox,1", "Sandbox,2",
        ],
        "sales sale_key --environment Sandbox": ["1", "2"],
        "sales sale_key --environment Sandbox,Production": ["3", "1", "2"],
        "sales --environment Nowhere": [],
        "revenue units --by environment --environment all": ["1", "2"],
      ]),
    RuleCase(
      "R3: one id in two environments is two sales",
      [
        .upload(reply(row("1"))),
        .upload(reply(row("1"), environment: "Sandbox"), receipt: "b", endpoint: .sandbox),
      ],
      ["sales environment,sale_key --environment all": ["Production,1", "Sandbox,1"]]),
  ]

  @Test(arguments: rowsCases) func rows(_ rule: RuleCase) throws { try rule.check() }

  private static let rowsCases = [
    RuleCase(
      "R2: the sources are united",
      [
        .upload(
          reply(row("1"), latest: [row("2")], also: ["latest_expired_receipt_info": row("3")]))
      ],
      ["sales sale_key": ["1", "2", "3"]]),
    RuleCase(
      "R2: latest_receipt_info may be one object",
      [.upload(reply(latest: row("2")))], ["sales sale_key": ["2"]]),
    RuleCase(
      "R2: a flat receipt is a row, and its bid the bundle",
      [.upload(["status": 0, "receipt": row("1", ["bid": "old"])])],
      ["sales bundle_id,sale_key": ["old,1"]]),
    RuleCase(
      "R2: a receipt with in_app is no row itself",
      [.upload(["status": 0, "receipt": row("1", ["bid": "old", "in_app": []])])],
      ["sales": [], "exceptions": []]),
    RuleCase(
      "R2: a receipt without in_app and without any id of a flat one is no row",
      [.upload(["status": 0, "receipt": ["bundle_id": "app", "quantity": "1"]])],
      ["sales": [], "exceptions": []]),
    RuleCase(
      "R2: what is no object is no row",
      [.upload(reply(rows: ["text", 5, true, .null, [], row("1")], latest: "none"))],
      ["sales sale_key": ["1"], "exceptions --without unpriced": []]),
    RuleCase(
      "R2: the bundle is bundle_id, else bid, else empty",
      [
        .upload(reply(row("1"), receipt: ["bundle_id": .absent])),
        .upload(reply(row("2"), receipt: ["bundle_id": .null, "bid": "old"]), receipt: "b"),
        .upload(reply(row("3"), receipt: ["bid": "old"]), receipt: "c"),
      ],
      ["sales bundle_id,sale_key": [",1", "app,3", "old,2"]]),
    RuleCase(
      "R2: a malformed row is an exception that says what is missing, and nothing else",
      [
        .upload(
          reply(
            row("1", ["product_id": .absent, "quantity": "0"]),
            row("1", ["transaction_id": "", "original_transaction_id": .null]),
            row("1", ["purchase_date_ms": .absent, "original_purchase_date_ms": "soon"]),
            [:], row("9", line: "7", ["transaction_id": true, "original_transaction_id": ""]))),
        .upload(reply(row("1", ["product_id": ""])), receipt: "b"),
      ],
      [
        "sales": [],
        "exceptions exception,product_id,transaction_id,position,detail": [
          "malformed_transaction,,,1,product_id+transaction_id+purchase_date",
          "malformed_transaction,,1,1,product_id",
          "malformed_transaction,coins,,1,transaction_id",
          "malformed_transaction,coins,1,1,purchase_date",
        ],
      ]),
    RuleCase(
      "R2: a verification that reuses a reply shows its rows with its own upload's metadata",
      [
        .upload(reply(row("1")), country: nil),
        .upload(
          country: "FR", user: "u", metadata: prices(entry(transaction: "1", "2.00")),
          receipt: "b"),
        .reuse(1, for: 2),
      ],
      [
        "sales sale_key,first_position,country_code,country_position,user_position": ["1,1,FR,2,2"],
        "sales unit_price,price_basis,price_position": ["2.00,client_transaction,2"],
      ]),
    RuleCase(
      "R2: one receipt uploaded twice gives one sale",
      [.upload(reply(row("1"))), .upload(reply(row("1")))],
      ["sales sale_key": ["1"], "revenue units": ["1"]]),
  ]

  @Test(arguments: primaryRowsCases) func primaryRows(_ rule: RuleCase) throws { try rule.check() }

  private static let primaryRowsCases = [
    RuleCase(
      "R2: rows of latest_receipt_info come first",
      [
        .upload(
          reply(
            row("1", line: "7", on: "2026-01-02", ["quantity": "2"]),
            latest: [row("2", line: "7", on: "2026-01-09", ["quantity": "3"])]))
      ],
      [
        "sales sale_key,quantity,sale_date,transaction_ids": [
          "7,3,2026-01-09T00:00:00.000Z,1 2"
        ],
        "journal transaction_id": ["2"],
      ]),
    RuleCase(
      "R2: then the smaller purchase date",
      [
        .upload(
          reply(
            row("1", line: "7", on: "2026-01-09"),
            row("2", line: "7", on: "2026-01-02", ["quantity": "2"])))
      ],
      ["journal date,transaction_id,quantity": ["2026-01-02T00:00:00.000Z,2,2"]]),
    RuleCase(
      "R2: then the smaller transaction id as bytes",
      [.upload(reply(row("9", line: "7"), row("10", line: "7", ["quantity": "2"])))],
      ["journal transaction_id,quantity": ["10,2"]]),
    RuleCase(
      "R2: then the order of the sources",
      [
        .upload(
          reply(
            row("1", ["quantity": "2"]),
            also: ["latest_expired_receipt_info": row("1", ["quantity": "3"])]))
      ],
      ["sales quantity": ["2"], "exceptions --without unpriced": []]),
    RuleCase(
      "R2: then the order of the array",
      [.upload(reply(row("1", ["quantity": "4"]), row("1", ["quantity": "5"])))],
      ["sales quantity": ["4"], "exceptions --without unpriced": []]),
    RuleCase(
      "R2: a line item's aliases are its transaction ids, not the original one",
      [
        .upload(reply(row("2", of: "1", line: "7"))),
        .upload(reply(row("3", of: "1", line: "7")), receipt: "b"),
      ],
      ["sales sale_key,original_transaction_id,transaction_ids": ["7,1,2 3"]]),
    RuleCase(
      "R2: a transaction's key is an alias of it",
      [.upload(reply(row("2", of: "1")))],
      ["sales sale_key,transaction_ids": ["1,1 2"], "journal transaction_id": ["2"]]),
    RuleCase(
      "R9: the transaction column falls back on the original transaction",
      [.upload(reply(row("1", ["transaction_id": .absent])))],
      ["journal sale_key,transaction_id": ["1,1"]]),
  ]

  @Test(arguments: keysCases) func keys(_ rule: RuleCase) throws { try rule.check() }

  private static let keysCases = [
    RuleCase(
      "R3: a line item of 0, of nothing or of null is none; ids may be numbers",
      [
        .upload(
          reply(
            row("1", line: "0"), row("2", line: ""), row("3", ["web_order_line_item_id": 0]),
            row("4", ["web_order_line_item_id": .null]),
            row("5", ["web_order_line_item_id": 77]), row("6", line: "00")))
      ],
      ["sales sale_key": ["00", "1", "2", "3", "4", "77"]]),
    RuleCase(
      "R3: a line item and a transaction of the same text are two sales",
      [.upload(reply(row("7"), row("9", line: "7")))], ["revenue units": ["2"]]),
    RuleCase(
      "R3: a restored purchase keeps its original date and is one sale",
      [
        .upload(reply(row("1"))),
        .upload(
          reply(row("2", of: "1", ["purchase_date_ms": date("2026-02-01")])), receipt: "b"),
      ],
      [
        "sales sale_key,sale_date,transaction_ids": ["1,2026-01-05T00:00:00.000Z,1 2"],
        "exceptions --without unpriced": [],
      ]),
    RuleCase(
      "R3: a transaction's date is the original one, else that of the purchase",
      [
        .upload(
          reply(
            row("1", ["purchase_date_ms": date("2026-02-01")]),
            row("2", on: "2026-01-06", ["original_purchase_date_ms": .absent])))
      ],
      [
        "sales sale_key,sale_date": [
          "1,2026-01-05T00:00:00.000Z", "2,2026-01-06T00:00:00.000Z",
        ]
      ]),
    RuleCase(
      "R3: a line item's date is that of the purchase, else the original one",
      [
        .upload(
          reply(
            row("1", line: "71", ["purchase_date_ms": date("2026-02-01")]),
            row("2", line: "72", on: "2026-01-06", ["purchase_date_ms": ""])))
      ],
      [
        "sales sale_key,sale_date": [
          "71,2026-02-01T00:00:00.000Z", "72,2026-01-06T00:00:00.000Z",
        ]
      ]),
    RuleCase(
      "R3: a renewal without a line item is an exception",
      [
        .upload(
          reply(
            row("2", of: "1", ["expires_date_ms": date("2026-02-05")]),
            // Not without an expiry, in the first period, or with a line item.
            row("4", of: "3"), row("5", ["expires_date_ms": date("2026-02-05")]),
            row("7", of: "6", line: "77", ["expires_date_ms": date("2026-02-05")]))),
        .upload([
          "status": 0,
          "receipt": row("9", of: "8", ["bid": "app", "expires_date": "1448346881000"]),
        ]),
      ],
      [
        "exceptions exception,sale_key,transaction_id,position,detail --without unpriced": [
          "renewal_without_line_item,1,2,1,2", "renewal_without_line_item,8,9,3,9",
        ]
      ]),
  ]

  @Test(arguments: observationsCases) func observations(_ rule: RuleCase) throws {
    try rule.check()
  }

  private static let observationsCases = [
    RuleCase(
      "R4: the lowest position wins; a later row that disagrees is an exception",
      [
        .upload(reply(row("1", ["quantity": "2"])), at: "2026-01-20"),
        .upload(
          reply(row("1", product: "gems", on: "2026-01-04", ["quantity": "3"])),
          at: "2026-01-06", receipt: "b"),
      ],
      [
        "sales product_id,quantity,sale_date,first_position": [
          "coins,2,2026-01-05T00:00:00.000Z,1"
        ],
        "exceptions exception,sale_key,product_id,position,detail --without unpriced": [
          "conflicting_observation,1,coins,3,product_id",
          "conflicting_observation,1,coins,3,quantity",
        ],
      ]),
    RuleCase(
      "R4: corrected quantities are compared, and a bad one is said each time it differs",
      [
        .upload(reply(row("1", ["quantity": "0"]))),
        .upload(reply(row("1")), receipt: "b"),
        .upload(reply(row("1", ["quantity": 99])), receipt: "c"),
        .upload(reply(row("1", ["quantity": 0])), receipt: "d"),
      ],
      [
        "sales quantity": ["1"],
        "exceptions exception,position,detail --without unpriced": [
          "bad_quantity,1,0", "bad_quantity,5,99",
        ],
      ]),
    RuleCase(
      "R4: a quantity is an integer from 1 to 10, else 1 and an exception with its text",
      [
        .upload(
          reply(
            row("a", ["quantity": 10]), row("b", ["quantity": "010"]),
            row("c", ["quantity": "11"]), row("d", ["quantity": "-1"]),
            row("e", ["quantity": JSONText(raw: "1.0")]), row("f", ["quantity": .absent]),
            row("g", ["quantity": .null]), row("h", ["quantity": true]),
            row("i", ["quantity": [2]]), row("j", ["quantity": ""])))
      ],
      [
        "sales sale_key,quantity": [
          "a,10", "b,10", "c,1", "d,1", "e,1", "f,1", "g,1", "h,1", "i,1", "j,1",
        ],
        "exceptions sale_key,detail --without unpriced": [
          "c,11", "d,'-1", "e,1.0", "f,", "g,", "h,true", "i,[2]", "j,",
        ],
      ]),
    RuleCase(
      "R5: the first kind that matches",
      [
        .upload(
          reply(
            row("a", ["in_app_ownership_type": "FAMILY_SHARED", "is_trial_period": "true"]),
            row("b", ["is_trial_period": 1, "is_in_intro_offer_period": "true"]),
            row("c", ["is_in_intro_offer_period": "1"]), row("d", ["promotional_offer_id": "p"]),
            row("e", ["offer_code_ref_name": "c"]),
            row(
              "f",
              [
                "in_app_ownership_type": "PURCHASED", "is_trial_period": "TRUE",
                "is_in_intro_offer_period": 2, "promotional_offer_id": "",
                "offer_code_ref_name": .null,
              ])))
      ],
      [
        "sales sale_key,kind,price_basis": [
          "a,family_shared,", "b,trial,", "c,offer,none", "d,offer,none", "e,offer,none",
          "f,regular,none",
        ],
        "revenue --by app": ["app,,4,,0,,0,,,4,1,1"],
        "revenue --by basis": [",,0,,0,,0,,,0,1,1", "none,,4,,0,,0,,,4,0,0"],
        "journal sale_key,kind,quantity,currency,unit_price,amount": [
          "a,family_shared,1,,,0", "b,trial,1,,,0", "c,offer,1,,,", "d,offer,1,,,",
          "e,offer,1,,,", "f,regular,1,,,",
        ],
      ]),
    RuleCase(
      "R5: the first observation fixes the kind",
      [
        .upload(reply(row("1", ["is_trial_period": "true"]))),
        .upload(reply(row("1")), receipt: "b"),
      ],
      ["sales kind": ["trial"], "exceptions": []]),
    RuleCase(
      "R6: the first country and the first user hold, each with its position",
      [
        .upload(reply(row("1")), country: nil),
        .upload(reply(row("1")), country: "FR", receipt: "b"),
        .upload(reply(row("1")), country: "US", user: "u1", receipt: "c"),
        .upload(reply(row("1")), user: "u2", receipt: "d"),
        .upload(reply(row("1")), user: "u2", receipt: "e"),
        .upload(reply(row("1")), user: "u1", receipt: "f"),
      ],
      [
        "sales country_code,country_position,user_identifier,user_position": ["FR,2,u1,4"],
        "exceptions exception,sale_key,position,detail --without unpriced": [
          "claimed_by_other_user,1,7,u2"
        ],
      ]),
    RuleCase(
      "R6: no country is ZZ, whatever the currency",
      [.upload(reply(row("1")), country: nil, metadata: shorthand("2.00", "JPY"))],
      [
        "sales country_code,country_position,user_identifier,user_position": ["ZZ,,,"],
        "revenue country_code,currency,gross": ["ZZ,JPY,2"],
      ]),
  ]
}
