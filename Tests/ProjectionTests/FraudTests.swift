// Fraud that follows from history: which uploads are judged, by what, and what stays as it is.
import Ledger
import TestSupport
import Testing

@Suite struct FraudTests {
  @Test(arguments: productCases + replayCases + ownCases) func verdicts(_ rule: RuleCase) throws {
    try rule.check()
  }

  private static func app(_ products: (String, ProductType)...) -> TestEvent {
    LiveProjectionsTests.app(products)
  }

  private static let fraud = "receipts is_fraud,fraud_reason"
  private static let found =
    "exceptions exception,product_id,transaction_id,position,detail "
    + "--without unpriced"

  private static let productCases = [
    RuleCase(
      "a product that is not declared is unknown, and its sale still counts",
      [
        app(("pro", .autoRenewable)),
        .upload(reply(row("1"), row("2", product: "pro")), metadata: nil),
      ],
      [
        fraud: ["true,product_unknown"], found: ["product_unknown,coins,1,2,"],
        "revenue units": ["2"],
      ]),
    RuleCase(
      "an app that declares nothing takes any product",
      [app(), .upload(reply(row("1")))], [fraud: ["false,"], found: []]),
    RuleCase(
      "what is declared later judges nothing that came before",
      [.upload(reply(row("1"))), app(("pro", .autoRenewable))], [fraud: ["false,"], found: []]),
    RuleCase(
      "the last registration before a verification is the one that judges it",
      [
        app(("pro", .autoRenewable)), .upload(reply(row("1"))), app(("coins", .consumable)),
        .upload(reply(row("2")), receipt: "b"), app(), .upload(reply(row("3")), receipt: "c"),
      ],
      [
        fraud: ["true,product_unknown", "false,", "false,"],
        found: ["product_unknown,coins,1,2,"],
      ]),
    RuleCase(
      "a malformed row shows no product",
      [
        app(("pro", .autoRenewable)),
        .upload(reply(row("1", ["purchase_date_ms": .null, "original_purchase_date_ms": .null]))),
      ],
      [fraud: ["false,"]]),
    RuleCase(
      "a reply that does not count judges nothing",
      [
        app(("pro", .autoRenewable)),
        .upload(reply(row("1"), status: 21010), outcome: .invalid, status: 21010),
      ],
      [fraud: ["false,"]]),
  ]

  private static let replayCases = [
    RuleCase(
      "a consumable that belongs to another user is replayed",
      [
        app(("coins", .consumable)), .upload(reply(row("1")), user: "u1"),
        .upload(reply(row("1")), user: "u2", receipt: "b"),
      ],
      [
        fraud: ["false,", "true,transaction_replayed"],
        found: [
          "claimed_by_other_user,coins,1,4,u2", "transaction_replayed,coins,1,4,upload at 3",
        ],
        "revenue units": ["1"],
      ]),
    RuleCase(
      "the same receipt of another user is a fraud of that upload, and so of the receipt",
      [
        app(("coins", .consumable)), .upload(reply(row("1")), user: "u1"),
        .upload(reply(row("1")), user: "u2"),
      ],
      [fraud: ["true,transaction_replayed"]]),
    RuleCase(
      "a reply used again for another user is judged by that user",
      [
        app(("coins", .consumable)), .upload(reply(row("1")), user: "u1"),
        .upload(user: "u2", receipt: "b"), .reuse(2, for: 3),
      ],
      [fraud: ["false,", "true,transaction_replayed"]]),
    RuleCase(
      "restoring what is no consumable is an exception alone",
      [
        app(("coins", .nonConsumable)), .upload(reply(row("1")), user: "u1"),
        .upload(reply(row("1")), user: "u2", receipt: "b"),
      ],
      [fraud: ["false,", "false,"], found: ["claimed_by_other_user,coins,1,4,u2"]]),
    RuleCase(
      "nobody's upload replays nothing, and the first user named owns the transaction",
      [
        app(("coins", .consumable)), .upload(reply(row("1"))),
        .upload(reply(row("1")), user: "u1", receipt: "b"), .upload(reply(row("1")), receipt: "c"),
        .upload(reply(row("1")), user: "u2", receipt: "d"),
      ],
      [fraud: ["false,", "false,", "false,", "true,transaction_replayed"]]),
    RuleCase(
      "after an erasure the first upload claims the consumable, and the next user's is a replay",
      [
        app(("coins", .consumable)), .upload(reply(row("1")), user: "(redacted 2)"),
        .upload(reply(row("1")), user: "u2", receipt: "b"),
        .upload(reply(row("1")), user: "u3", receipt: "c"),
        .upload(reply(row("1")), user: "u2", receipt: "b"),
        .upload(reply(row("1")), user: "(redacted 2)", receipt: "d"),
      ],
      [
        fraud: ["false,", "false,", "true,transaction_replayed", "false,"],
        found: [
          "claimed_by_other_user,coins,1,6,u3", "transaction_replayed,coins,1,6,upload at 5",
        ],
        "sales user_identifier,user_position": ["(redacted 2),1"],
      ]),
    RuleCase(
      "a claim ends with the erasure of whoever held it, and what was refused before stays so",
      [
        app(("coins", .consumable)), .upload(reply(row("1")), user: "(redacted 2)"),
        .upload(reply(row("1")), user: "(redacted 6)", receipt: "b"),
        .upload(reply(row("1")), user: "u3", receipt: "c"),
        .upload(reply(row("1")), user: "u3", receipt: "d"),
        .upload(reply(row("1")), user: "u4", receipt: "e"),
      ],
      [
        fraud: [
          "false,", "false,", "true,transaction_replayed", "false,", "true,transaction_replayed",
        ]
      ]),
    RuleCase(
      "of both reasons at one verification an unknown product comes first",
      [
        app(("coins", .consumable)), .upload(reply(row("1")), user: "u1"),
        .upload(reply(row("1"), row("2", product: "pro")), user: "u2", receipt: "b"),
      ],
      [fraud: ["false,", "true,product_unknown"]]),
  ]

  private static let ownCases = [
    RuleCase(
      "a later valid answer clears what a verification said, not what an upload did",
      [
        app(("coins", .consumable)), .upload(reply(row("1")), user: "u1"),
        .upload(reply(row("1")), user: "u2", receipt: "b"),
        .upload(
          ["status": 21003], user: "u2", receipt: "b", outcome: .invalid, status: 21003),
        .upload(["status": 21003], receipt: "c", outcome: .invalid, status: 21003),
        .upload(reply(row("3")), receipt: "c"),
      ],
      [fraud: ["false,", "true,transaction_replayed", "false,"]])
  ]
}
