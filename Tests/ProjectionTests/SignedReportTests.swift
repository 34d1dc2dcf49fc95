// Rule R12 in reports by hand: partial refunds, tokens, and the exceptions that only signed transactions have.
import Ledger
import TestSupport
import Testing

import Projections

@Suite struct SignedReportTests {
  private static let app = LiveProjectionsTests.app([])

  @Test(arguments: refunds + users + exceptions) func reports(_ rule: RuleCase) throws {
    try rule.check()
  }

  /// Three units for 10.00 euros in all, as signed on a day.
  private static func three(_ day: String, _ members: Members = [:]) -> JSONText {
    let price: [(String, JSONText)] = [("price", 10000), ("currency", "EUR")]
    return unpriced(day, merging: price + members.map { ($0.key, $0.value) })
  }

  private static func unpriced(
    _ day: String, merging members: [(String, JSONText)] = []
  ) -> JSONText {
    signed("1", signed: day, merging: [("quantity", 3)] + members)
  }

  /// A notification of a refund of this share, in hundred-thousandths, on 8 January.
  private static func refunded(_ percentage: JSONText, _ day: String) -> TestEvent {
    .notification(
      "REFUND", uuid: day,
      three(
        day, ["revocationDate": instant("2026-01-08"), "revocationPercentage": percentage]))
  }

  private static let lines = "journal date,line,quantity,unit_price,amount,position"
  private static let sale = "2026-01-05T00:00:00.000Z,Sale,3,3.333333,10.00,1"
  private static let positions =
    "sales quantity,unit_price,price_basis,cancelled,cancellation_positions,reversal_positions"

  // MARK: Refunds

  private static let refunds = [
    RuleCase(
      "R12: units are counted where they are whole, amounts always",
      [
        app, .signedUpload(three("2026-01-06")), refunded(33333, "2026-01-09"),
        refunded(50000, "2026-01-10"),
        .notification("REFUND_REVERSED", uuid: "back", three("2026-01-12")),
      ],
      [
        lines: [
          sale, "2026-01-08T00:00:00.000Z,Return,-1,3.333333,-3.33,2",
          "2026-01-08T00:00:00.000Z,Return,0,3.333333,-1.67,3",
          "2026-01-12T00:00:00.000Z,Reversal,1,3.333333,5.00,4",
        ],
        "revenue --by basis": ["signed_transaction,EUR,3,10.00,1,5.00,1,5.00,10.00,0,0,0"],
        positions: ["3,3.333333,signed_transaction,false,2 3,4"],
        "users --environment all": [],
      ]),
    RuleCase(
      "R12: a sale of which a part is refunded is cancelled",
      [app, .signedUpload(three("2026-01-06")), refunded(33333, "2026-01-09")],
      [
        positions: ["3,3.333333,signed_transaction,true,2,"],
        "revenue": ["DE,EUR,3,10.00,1,3.33,0,0.00,6.67,0,0,0"],
      ]),
    RuleCase(
      "R12: a Reversal that ends at more units than were taken takes none",
      [
        app, .signedUpload(three("2026-01-06")), refunded(50000, "2026-01-09"),
        refunded(33333, "2026-01-10"),
      ],
      [
        lines: [
          sale, "2026-01-08T00:00:00.000Z,Return,0,3.333333,-5.00,2",
          "2026-01-10T00:00:00.000Z,Reversal,0,3.333333,1.67,3",
        ],
        "revenue --by basis": ["signed_transaction,EUR,3,10.00,0,5.00,0,1.67,6.67,0,0,0"],
        positions: ["3,3.333333,signed_transaction,true,2,3"],
      ]),
    RuleCase(
      "R12: a price list that comes later gives the refund its amount too",
      [
        app, .signedUpload(unpriced("2026-01-06")),
        .notification(
          "REFUND", uuid: "n",
          unpriced(
            "2026-01-09",
            merging: [
              ("revocationDate", instant("2026-01-08")), ("revocationPercentage", 33333),
            ])),
        .prices(["coins - EUR 2.00 2026-01-01"]),
      ],
      [
        lines: [
          "2026-01-05T00:00:00.000Z,Sale,3,2.00,6.00,1",
          "2026-01-08T00:00:00.000Z,Return,-1,2.00,-2.00,2",
        ],
        "revenue --by basis": ["price_list,EUR,3,6.00,1,2.00,0,0.00,4.00,0,0,0"],
      ]),
    RuleCase(
      "R7: a carried or a listed price whose amount exceeds 64 bits is none, and no other is tried",
      [
        app,
        .upload(
          reply(row("1", line: "w1", product: "pro")),
          metadata: prices(entry(transaction: "1", "99999999999"))),
        .signedUpload(
          signed(
            "2", of: "1", line: "w2", product: "pro", on: "2026-02-05", ["quantity": 1_000_000]),
          signed("3", ["quantity": 1_000_000])),
        .prices(["pro - EUR 1.00 2026-01-01", "coins - EUR 99999999999 2026-01-01"]),
      ],
      [
        "sales sale_key,price_basis": ["3,none", "w1,client_transaction", "w2,none"],
        "exceptions exception,sale_key,detail": [
          "unpriced,3,price_unreadable", "unpriced,w2,price_unreadable",
        ],
      ]),
    RuleCase(
      "R12: quantities go far beyond ten",
      [
        app,
        .signedUpload(
          signed("1", ["quantity": 1_000_000, "price": 5000, "currency": "EUR"])),
      ],
      [
        "sales quantity,unit_price": ["1000000,0.000005"],
        "journal quantity,amount": ["1000000,5.00"],
        "revenue units,gross": ["1000000,5.00"],
      ]),
  ]

  // MARK: Users

  private static let tokens = signed(
    "1", ["appAccountToken": "\(accountToken(1))", "price": 1000, "currency": "EUR"])
  private static let seen =
    "users user_identifier,receipts,uploads,sales,net,first_seen_at,last_seen_at"

  private static let users = [
    RuleCase(
      "R12: a token is a user who was seen in no upload",
      [app, .notification("ONE_TIME_CHARGE", uuid: "n", tokens)],
      [seen: ["token:\(accountToken(1)),0,0,1,1.00 EUR,,"], "sales user_position": ["1"]]),
    RuleCase(
      "R12: an upload's user takes the place of a token",
      [
        app, .notification("ONE_TIME_CHARGE", uuid: "n", tokens), .signedUpload(tokens, user: "u"),
      ],
      [
        seen: ["u,0,1,1,1.00 EUR,2026-01-10T00:00:00.000Z,2026-01-10T00:00:00.000Z"],
        "sales user_position": ["2"], "exceptions": [],
      ]),
    RuleCase(
      "R12: a token without a sale of the environment shown is no row",
      [
        app,
        .notification(
          "ONE_TIME_CHARGE", uuid: "n",
          signed("1", ["appAccountToken": "\(accountToken(1))", "environment": "Sandbox"])),
      ],
      [seen: [], seen + " --environment all": ["token:\(accountToken(1)),0,0,1,,,"]]),
  ]

  // MARK: Exceptions

  private static let excess = three(
    "2026-01-09",
    [
      "advancedCommerceInfo": [
        "items": [["refunds": [["refundDate": instant("2026-01-08"), "refundAmount": 20000]]]]
      ]
    ])

  /// A reply that shows the three units, canceled on a day.
  private static func bought(requested: String, canceled day: String) -> JSONText {
    reply(row("1", ["quantity": "3", "cancellation_date_ms": date(day)]), requested: requested)
  }

  private static let exceptions = [
    RuleCase(
      "R12: refunds of more than the amount end at it, with all units, and are an exception of the line's days",
      [app, .signedUpload(three("2026-01-06")), .notification("REFUND", uuid: "n", excess)],
      [
        lines: [sale, "2026-01-08T00:00:00.000Z,Return,-3,3.333333,-10.00,2"],
        "exceptions exception,sale_key,position,detail": ["refund_exceeds_amount,1,2,"],
        "exceptions exception --from 2026-01-08": ["refund_exceeds_amount"],
        "exceptions exception --from 2026-01-06 --to 2026-01-07": [],
        "exceptions exception --environment Sandbox": [],
      ]),
    RuleCase(
      "R12: sums beside a full share may exceed the amount",
      [
        app, .upload(bought(requested: "2026-01-08", canceled: "2026-01-08")),
        .upload(bought(requested: "2026-01-10", canceled: "2026-01-09")),
        .notification("REFUND", uuid: "n", excess),
      ],
      [
        lines: [
          "2026-01-05T00:00:00.000Z,Sale,3,3.333333,10.00,2",
          "2026-01-08T00:00:00.000Z,Return,-3,3.333333,-10.00,2",
        ],
        "exceptions exception,sale_key,position,detail": ["refund_exceeds_amount,1,2,"],
      ]),
    RuleCase(
      "R12: what is malformed is an exception of the day on which the event occurred",
      [
        app, .signedUpload(signed("1", ["productId": .null]), at: "2026-01-11"),
        .notification("REFUND", uuid: "n", signed("2", ["productId": .null]), at: "2026-01-12"),
      ],
      [
        "exceptions exception,position,detail": [
          "malformed_transaction,1,product_id", "malformed_transaction,2,product_id",
        ],
        "exceptions position --to 2026-01-11": ["1"],
        "exceptions position --from 2026-01-12": ["2"],
      ]),
    RuleCase(
      "R12: a storefront and a client's country that differ",
      [app, .signedUpload(signed("1", ["storefront": "FRA"]), country: "DE")],
      [
        "exceptions exception,detail --without unpriced": ["country_conflict,DE"],
        "sales country_code,country_position": ["FR,1"],
      ]),
  ]

  @Test func aReportCountsTheExceptionsThatItsOwnListShows() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .signedUpload(Self.three("2026-01-06")),
      .notification("REFUND", uuid: "n", Self.excess),
      .notification("REFUND", uuid: "m", signed("2", ["productId": .null]), at: "2026-02-01"),
    ])
    for (days, counts) in [
      ("", ["malformed_transaction", "refund_exceeds_amount"]),
      ("--to 2026-01-31", ["refund_exceeds_amount"]),
      ("--from 2026-02-01", ["malformed_transaction"]),
    ] {
      let json = try fixture.json(
        try ReportWords("revenue \(days)").request, from: try fixture.current())
      for type in ["malformed_transaction", "refund_exceeds_amount"] {
        expectEqual(json.contains("\"\(type)\":1"), counts.contains(type), "\(days) \(type)")
      }
    }
  }
}
