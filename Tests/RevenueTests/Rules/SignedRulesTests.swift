// Rule R12 sentence by sentence, worked out by hand, without a ledger and a database.
import Revenue
import TestSupport
import Testing

@Suite("Rule R12, by hand") struct SignedRulesTests {
  @Test(arguments: identity + evidence + prices)
  func ruleGivesWhatWasWorkedOutByHand(_ rule: LoneRule) throws {
    let books = Books()
    try rule.steps(books)
    try books.state.derive()
    if let sales = rule.sales { expectEqual(books.sales(), sales) }
    if let lines = rule.lines { expectEqual(books.lines(), lines) }
    expectEqual(books.exceptions, rule.exceptions)
  }

  static let euros: Members = ["price": 1990, "currency": "EUR"]

  private static let identity = [
    LoneRule(
      description: "a row and a signed transaction of one line item are one sale",
      steps: {
        try $0.add(reply(row("1", line: "w1")))
        try $0.add(signed: [signed("1", line: "w1")])
      },
      lines: ["Sale w1 2026-01-05 1 -"]),
    LoneRule(
      description: "without a line item the original transaction is the key",
      steps: { try $0.add(signed: [signed("2", of: "1")]) }, sales: ["1 regular 1 - - none"]),
    LoneRule(
      description: "environment and bundle are the payload's",
      steps: {
        try $0.add(
          signed: [
            signed("1"), signed("1", ["environment": "Sandbox"]), signed("1", ["bundleId": "b"]),
          ])
      },
      sales: [
        "1 regular 1 - - none", "1 regular 1 - - none", "1 regular 1 - - none",
      ]),
    LoneRule(
      description: "a transaction without product or dates is malformed and nothing else",
      steps: {
        try $0.add(
          signed: [
            signed("1", ["productId": .null, "purchaseDate": .absent, "originalPurchaseDate": ""])
          ])
      },
      sales: [], exceptions: ["malformed_transaction product_id+purchase_date"]),
    LoneRule(
      description: "a renewal without its line item is reported",
      steps: {
        try $0.add(signed: [signed("2", of: "1", ["expiresDate": instant("2026-02-05")])])
      },
      exceptions: ["renewal_without_line_item 2"]),
    LoneRule(
      description: "kinds: family sharing before trial before offer before regular",
      steps: {
        try $0.add(
          signed: [
            signed(
              "1", ["inAppOwnershipType": "FAMILY_SHARED", "offerDiscountType": "FREE_TRIAL"]),
            signed("2", ["offerType": 1, "offerDiscountType": "FREE_TRIAL"]),
            signed("3", ["offerType": 4]),
            signed("4", ["offerType": 1, "offerDiscountType": "PAY_UP_FRONT"]), signed("5"),
          ])
      },
      sales: [
        "1 family_shared 1 - - ", "2 trial 1 - - ", "3 offer 1 - - none", "4 offer 1 - - none",
        "5 regular 1 - - none",
      ]),
    LoneRule(
      description:
        "an introductory offer that is left open becomes a trial when a later statement says so",
      steps: {
        try $0.add(
          signed: [signed("1", ["offerType": 1]), signed("2", ["offerType": 1])])
        try $0.add(signed: [signed("1", ["offerType": 1, "offerDiscountType": "FREE_TRIAL"])])
        try $0.add(reply(row("2", ["is_trial_period": "true"])))
      },
      sales: ["1 trial 1 - - ", "2 trial 1 - - "]),
    LoneRule(
      description: "one with a price or another discount stays an offer",
      steps: {
        try $0.add(
          signed: [
            signed("1", ["offerType": 1, "price": 500, "currency": "EUR"]),
            signed("2", ["offerType": 1, "offerDiscountType": "PAY_AS_YOU_GO"]),
            signed("3", ["offerType": 2]),
          ])
        let trial: Members = ["offerDiscountType": "FREE_TRIAL"]
        try $0.add(signed: [signed("1", trial), signed("2", trial), signed("3", trial)])
      },
      sales: [
        "1 offer 1 - - signed_transaction 0.50", "2 offer 1 - - none", "3 offer 1 - - none",
      ]),
    LoneRule(
      description: "quantities go up to 1,000,000; another is 1 and an exception",
      steps: {
        try $0.add(
          signed: [
            signed("1", ["quantity": 1_000_000]), signed("2", ["quantity": 1_000_001]),
            signed("3", ["quantity": 0]),
          ])
      },
      sales: ["1 regular 1000000 - - none", "2 regular 1 - - none", "3 regular 1 - - none"],
      exceptions: ["bad_quantity 1000001", "bad_quantity 0"]),
    LoneRule(
      description: "a good signed quantity replaces one that was made 1, and no other",
      steps: {
        try $0.add(reply(row("1", ["quantity": "40"]), row("2", ["quantity": "2"])))
        try $0.add(signed: [signed("1", ["quantity": 40]), signed("2", ["quantity": 3])])
      },
      sales: ["1 regular 40 - - none", "2 regular 2 - - none"],
      exceptions: ["bad_quantity 40", "conflicting_observation quantity"]),
    LoneRule(
      description: "the second of two in one list is a later statement",
      steps: { try $0.add(signed: [signed("1"), signed("1", product: "gems")]) },
      sales: ["1 regular 1 - - none"], exceptions: ["conflicting_observation product_id"]),
  ]

  private static let evidence = [
    LoneRule(
      description:
        "the storefront counts before every client's country, which is reported where it differs",
      steps: {
        try $0.add(signed: [signed("1", ["storefront": "XKS"])], country: "DE")
        try $0.add(reply(row("2")), country: "FR")
        try $0.add(signed: [signed("2", ["storefront": "DEU"])], country: "DE")
        try $0.add(signed: [signed("3", ["storefront": "USA"])])
        try $0.add(reply(row("3")), country: "CA")
        try $0.add(signed: [signed("4", ["storefront": "USA"])], country: "US")
      },
      sales: [
        "1 regular 1 XK - none", "2 regular 1 DE - none", "3 regular 1 US - none",
        "4 regular 1 US - none",
      ],
      exceptions: ["country_conflict DE", "country_conflict FR", "country_conflict CA"]),
    LoneRule(
      description: "an unknown storefront is none, and the first known one stays",
      steps: {
        try $0.add(signed: [signed("1", ["storefront": "ZZZ"])], country: "DE")
        try $0.add(signed: [signed("1", ["storefront": "DEU"]), signed("1", ["storefront": "FRA"])])
      },
      sales: ["1 regular 1 DE - none"]),
    LoneRule(
      description: "a token is the user until an upload names one",
      steps: {
        try $0.add(
          signed: [
            signed("1", ["appAccountToken": "a"]), signed("1", token(1)), signed("1", token(2)),
          ])
        try $0.add(signed: [signed("2", token(1))])
        try $0.add(reply(row("2")), user: "u1")
        try $0.add(reply(row("2")), user: "u2")
      },
      sales: ["1 regular 1 - token:\(accountToken(1)) none", "2 regular 1 - u1 none"],
      exceptions: ["claimed_by_other_user u2"]),
    LoneRule(
      description: "a row's token counts as a signed one, in lower case, also after an erasure",
      steps: {
        try $0.add(reply(row("1", rowToken("no UUID")), row("2", rowToken("(redacted 7.2)"))))
        try $0.add(reply(row("1", rowToken(accountToken(1).uppercased()))))
        try $0.add(signed: [signed("1", token(2))])
        try $0.add(reply(row("3", rowToken(accountToken(1)))), user: "u1")
      },
      sales: [
        "1 regular 1 - token:\(accountToken(1)) none", "2 regular 1 - token:(redacted 7.2) none",
        "3 regular 1 - u1 none",
      ]),
  ]

  private static func token(_ number: Int) -> Members {
    ["appAccountToken": "\(accountToken(number))"]
  }

  private static func rowToken(_ text: String) -> Members {
    ["app_account_token": JSONText(stringLiteral: text)]
  }

  private static let prices = [
    LoneRule(
      description: "the price is the total for the quantity, the unit price a part of it",
      steps: {
        try $0.add(
          signed: [signed("1", ["quantity": 3, "price": 10000, "currency": " eur "])])
      },
      sales: ["1 regular 3 - - signed_transaction 3.333333"], lines: ["Sale 1 2026-01-05 3 10"]),
    LoneRule(
      description:
        "it outranks a client's price that came before, which is reported where it differs",
      steps: {
        try $0.add(reply(row("1")), metadata: shorthand("1.99"))
        try $0.add(reply(row("2")), metadata: shorthand("2.99"))
        try $0.add(signed: [signed("1", euros), signed("2", euros)])
      },
      sales: [
        "1 regular 1 - - signed_transaction 1.99", "2 regular 1 - - signed_transaction 1.99",
      ],
      exceptions: ["price_conflict 2.99 EUR"]),
    LoneRule(
      description: "a client's later entry is compared with it by amount",
      steps: {
        let two: Members = ["quantity": 2, "price": 3980, "currency": "EUR"]
        try $0.add(
          signed: [signed("1", two)], metadata: TestSupport.prices(entry(transaction: "1", "1.99")))
        try $0.add(
          signed: [signed("1", two)], metadata: TestSupport.prices(entry(transaction: "1", "3.98")))
      },
      sales: ["1 regular 2 - - signed_transaction 1.99"], exceptions: ["price_conflict 3.98 EUR"]),
    LoneRule(
      description: "the first signed price stays, and another is reported undivided",
      steps: {
        try $0.add(signed: [signed("1", euros)])
        try $0.add(signed: [signed("1", ["quantity": 1, "price": 2990, "currency": "USD"])])
      },
      sales: ["1 regular 1 - - signed_transaction 1.99"], exceptions: ["price_conflict 2.99 USD"]),
    LoneRule(
      description:
        "a signed 0 is a price; what is no integer, or without a known currency, is none",
      steps: {
        try $0.add(
          signed: [
            signed("1", ["price": 0, "currency": "EUR"]),
            signed("2", ["price": -1, "currency": "EUR"]),
            signed("3", ["price": JSONText(raw: "1.5"), "currency": "EUR"]),
            signed("4", ["price": 1, "currency": "XTS"]), signed("5", ["price": 1]),
            signed("6", ["price": 100_000_000_000_000, "currency": "EUR"]),
          ])
      },
      sales: [
        "1 regular 1 - - signed_transaction 0.00", "2 regular 1 - - none", "3 regular 1 - - none",
        "4 regular 1 - - none", "5 regular 1 - - none", "6 regular 1 - - none",
      ]),
    LoneRule(
      description: "a signed price is carried forward, a signed 0 is passed over",
      steps: {
        try $0.add(
          signed: [
            signed("1", line: "w1", euros),
            signed("2", of: "1", line: "w2", on: "2026-02-05", ["price": 0, "currency": "EUR"]),
            signed("3", of: "1", line: "w3", on: "2026-03-05"),
          ])
      },
      sales: [
        "w1 regular 1 - - signed_transaction 1.99", "w2 regular 1 - - signed_transaction 0.00",
        "w3 regular 1 - - carried_forward 1.99",
      ]),
    LoneRule(
      description: "a multi-seat price is an average and not used",
      steps: {
        try $0.add(
          signed: [signed("1", ["price": 1990, "currency": "EUR", "multiSeatInfo": ["seats": 12]])])
      },
      sales: ["1 regular 1 - - none"], exceptions: ["multi_seat_price "]),
    LoneRule(
      description: "trials and family-shared sales have no price",
      steps: {
        try $0.add(
          signed: [
            signed("1", ["offerDiscountType": "FREE_TRIAL", "price": 990, "currency": "EUR"]),
            signed("2", ["inAppOwnershipType": "FAMILY_SHARED", "price": 990, "currency": "EUR"]),
          ])
      },
      sales: ["1 trial 1 - - ", "2 family_shared 1 - - "]),
    LoneRule(
      description: "a notification takes nothing away from the first upload's prices",
      steps: {
        try $0.add(signed: [signed("1")], isUpload: false)
        try $0.add(signed: [signed("1")], metadata: shorthand("4.99"))
        try $0.add(signed: [signed("1")], metadata: shorthand("5.99"))
      },
      sales: ["1 regular 1 - - client_single 4.99"]),
    LoneRule(
      description: "the shorthand prices the one regular sale that an upload's list shows first",
      steps: {
        try $0.add(
          signed: [signed("1"), signed("1"), signed("2", ["offerType": 2])],
          metadata: shorthand("4.99"))
        try $0.add(signed: [signed("3"), signed("4")], metadata: shorthand("4.99"))
      },
      sales: [
        "1 regular 1 - - client_single 4.99", "2 offer 1 - - none", "3 regular 1 - - none",
        "4 regular 1 - - none",
      ],
      exceptions: ["price_ambiguous 2 new sales at 1"]),
    LoneRule(
      description: "intro fits offer type 1, promo 2 and offer_code 3",
      steps: {
        let entries: [JSONText] = ["intro", "promo", "offer_code"].enumerated().map { index, kind in
          [
            "product_id": "coins", "kind": JSONText(stringLiteral: kind), "price": "\(index + 1)",
            "currency": "EUR",
          ]
        }
        try $0.add(
          signed: [
            signed("1", ["offerType": 1]), signed("2", ["offerType": 2]),
            signed("3", ["offerType": 3]), signed("4", ["offerType": 4]),
          ], metadata: ["prices": .array(entries)])
      },
      sales: [
        "1 offer 1 - - client_product 1.00", "2 offer 1 - - client_product 2.00",
        "3 offer 1 - - client_product 3.00", "4 offer 1 - - none",
      ]),
    LoneRule(
      description: "what offer it is, the first observation says, also that of a notification",
      steps: {
        try $0.add(signed: [signed("1", ["offerType": 2])], isUpload: false)
        let promo: JSONText = [
          "product_id": "coins", "kind": "promo", "price": "2", "currency": "EUR",
        ]
        try $0.add(reply(row("1")), metadata: TestSupport.prices(promo))
      },
      sales: ["1 offer 1 - - client_product 2.00"]),
    LoneRule(
      description: "a client's price whose amount exceeds 64 bits is unreadable",
      steps: {
        try $0.add(
          signed: [signed("1", ["quantity": 1_000_000])], metadata: shorthand("99999999999"))
      },
      sales: ["1 regular 1000000 - - none"], exceptions: ["price_unreadable client_single"]),
  ]
}
