// Rule R12: Returns and Reversals by signed statements, alone and with replies, worked out by hand.
import Revenue
import TestSupport
import Testing

@Suite("Refunds by rule R12, by hand") struct RefundRulesTests {
  @Test(arguments: signedAlone + besideReplies + advancedCommerce + upgrades)
  func ruleGivesWhatWasWorkedOutByHand(_ rule: LoneRule) throws {
    let books = Books()
    try rule.steps(books)
    try books.state.derive()
    if let lines = rule.lines { expectEqual(books.lines(), lines) }
    expectEqual(books.exceptions, rule.exceptions)
  }

  @Test("a share within 0.0005 % of a number of units is that number, and any other a percentage")
  func sharesOfUnits() {
    let cases: [(percentage: Int32, quantity: Int64, share: String)] = [
      (0, 3, "none 0/1"), (100_000, 3, "all 1/1"), (50_000, 1, "percentage 50000/100000"),
      (33_332, 3, "percentage 33332/100000"), (33_333, 3, "units 1/3"),
      (33_334, 3, "percentage 33334/100000"), (66_667, 3, "units 2/3"),
      // A 64th is 1.5625 %: both neighbours are exactly 0.0005 % away.
      (1_561, 64, "percentage 1561/100000"), (1_562, 64, "units 1/64"), (1_563, 64, "units 1/64"),
      (1_564, 64, "percentage 1564/100000"),
    ]
    for (percentage, quantity, share) in cases {
      let found = RefundShare(percentage: percentage).fraction(ofQuantity: quantity)
      expectEqual("\(found.kind) \(found.numerator)/\(found.denominator)", share)
    }
  }

  /// Three units for 10.00 euros in all, as signed on a day.
  static func three(_ day: String, _ members: Members = [:]) -> JSONText {
    var all: [(String, JSONText)] = [("quantity", 3), ("price", 10000), ("currency", "EUR")]
    all += members.map { ($0.key, $0.value) }
    return signed("1", signed: day, merging: all)
  }

  static func refunded(
    _ day: String, _ percentage: JSONText = .absent, on date: String = "2026-01-08"
  ) -> JSONText {
    three(day, ["revocationDate": instant(date), "revocationPercentage": percentage])
  }

  static func repliedRow(_ cancelled: String?) -> JSONText {
    row("1", ["quantity": "3", "cancellation_date_ms": cancelled.map(date) ?? .absent])
  }

  static func reply(_ cancelled: String?, _ day: String, to books: Books) throws {
    try books.add(TestSupport.reply(repliedRow(cancelled), requested: day), on: day)
  }

  static let sale = "Sale 1 2026-01-05 3 10"

  private static let signedAlone = [
    LoneRule(
      description: "a date without a percentage is a Return of all",
      steps: { try $0.add(signed: [refunded("2026-01-09")]) },
      lines: [sale, "Return 1 2026-01-08 -3 -10"]),
    LoneRule(
      description: "a third is one unit, and the amounts are rounded to the cent",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 33333)])
        try $0.add(signed: [refunded("2026-01-10", 66667, on: "2026-01-09")])
        try $0.add(signed: [refunded("2026-01-11", 100_000, on: "2026-01-10")])
      },
      lines: [
        sale, "Return 1 2026-01-08 -1 -3.33", "Return 1 2026-01-09 -1 -3.34",
        "Return 1 2026-01-10 -1 -3.33",
      ]),
    LoneRule(
      description: "another share takes no unit, and a Reversal gives back all that were taken",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 33333)])
        try $0.add(signed: [refunded("2026-01-10", 50000)])
        try $0.add(signed: [refunded("2026-01-11", 20000)])
        try $0.add(signed: [three("2026-01-12")])
      },
      lines: [
        sale, "Return 1 2026-01-08 -1 -3.33", "Return 1 2026-01-08 0 -1.67",
        "Reversal 1 2026-01-11 1 3", "Reversal 1 2026-01-12 0 2",
      ]),
    LoneRule(
      description: "a newer statement without the refund outranks it, not one of its time",
      steps: {
        try $0.add(signed: [three("2026-01-10")])
        try $0.add(signed: [refunded("2026-01-09")])
        try $0.add(signed: [refunded("2026-01-10", 33333)])
      },
      lines: [sale, "Return 1 2026-01-08 -1 -3.33"]),
    LoneRule(
      description: "a percentage outside 0 to 100,000 is as if absent; one without a date is none",
      steps: {
        try $0.add(signed: [three("2026-01-09", ["revocationPercentage": 50000])])
        try $0.add(signed: [refunded("2026-01-10", 100_001)])
      },
      lines: [sale, "Return 1 2026-01-08 -3 -10"]),
    LoneRule(
      description: "a trial's Return has no amount",
      steps: {
        try $0.add(
          signed: [
            signed(
              "1", ["offerDiscountType": "FREE_TRIAL", "revocationDate": instant("2026-01-08")])
          ])
      },
      lines: ["Sale 1 2026-01-05 1 0", "Return 1 2026-01-08 -1 0"]),
    LoneRule(
      description: "units follow from the quantity known at the end, where it was a bad one",
      steps: {
        try $0.add(signed: [
          signed(
            "1", signed: "2026-01-09",
            [
              "quantity": 0, "price": 10000, "currency": "EUR",
              "revocationDate": instant("2026-01-08"), "revocationPercentage": 33333,
            ])
        ])
        try $0.add(signed: [refunded("2026-01-10", 33333)])
      },
      lines: [sale, "Return 1 2026-01-08 -1 -3.33"],
      exceptions: ["bad_quantity 0"]),
    LoneRule(
      description: "a line has no units of the other sign",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 40000)])
        try $0.add(signed: [refunded("2026-01-10", 33333)])
        try $0.add(signed: [refunded("2026-01-11", 66667)])
      },
      lines: [
        sale, "Return 1 2026-01-08 0 -4", "Reversal 1 2026-01-10 0 0.67",
        "Return 1 2026-01-08 -2 -3.34",
      ]),
  ]

  private static let besideReplies = [
    LoneRule(
      description: "a signed share that comes later replaces the assumed one in its Return",
      steps: {
        try reply("2026-01-08T00:00:00.4Z", "2026-01-09", to: $0)
        try $0.add(signed: [refunded("2026-01-10", 33333)])
      },
      lines: [sale, "Return 1 2026-01-08 -1 -3.33"]),
    LoneRule(
      description: "a reply that still shows the cancellation changes nothing",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 33333)])
        try reply("2026-01-08", "2026-01-10", to: $0)
      },
      lines: [sale, "Return 1 2026-01-08 -1 -3.33"]),
    LoneRule(
      description: "a newer one with another date is a share of all on top, up to the amount",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 33333)])
        try reply("2026-01-09", "2026-01-10", to: $0)
      },
      lines: [sale, "Return 1 2026-01-08 -1 -3.33", "Return 1 2026-01-09 -2 -6.67"]),
    LoneRule(
      description: "a corrected Return gives nothing back: a Reversal takes the rest",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 50000)])
        try reply("2026-01-09", "2026-01-10", to: $0)
        try $0.add(signed: [refunded("2026-01-11", 20000, on: "2026-01-09")])
      },
      lines: [
        sale, "Return 1 2026-01-08 0 -5", "Return 1 2026-01-09 0 0", "Reversal 1 2026-01-11 0 3",
      ]),
    LoneRule(
      description: "a Return is corrected once",
      steps: {
        try reply("2026-01-08", "2026-01-09", to: $0)
        try $0.add(signed: [refunded("2026-01-10")])
        try $0.add(signed: [refunded("2026-01-11", 33333)])
      },
      lines: [sale, "Return 1 2026-01-08 -3 -10", "Reversal 1 2026-01-11 2 6.67"]),
    LoneRule(
      description: "a newer reply without the cancellation reverses all",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 33333)])
        try reply(nil, "2026-01-09", to: $0)
        try reply(nil, "2026-01-10", to: $0)
      },
      lines: [sale, "Return 1 2026-01-08 -1 -3.33", "Reversal 1 2026-01-10 1 3.33"]),
    LoneRule(
      description: "a new Return by a reply takes the signed share of its date",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 33333)])
        try reply(nil, "2026-01-10", to: $0)
        try reply("2026-01-08", "2026-01-10", to: $0)
        try reply("2026-01-08", "2026-01-11", to: $0)
      },
      lines: [
        sale, "Return 1 2026-01-08 -1 -3.33", "Reversal 1 2026-01-10 1 3.33",
        "Return 1 2026-01-08 -1 -3.33",
      ]),
    LoneRule(
      description: "a newer signed statement without the refund outranks an older reply",
      steps: {
        try $0.add(signed: [three("2026-01-10")])
        try reply("2026-01-08", "2026-01-09", to: $0)
      },
      lines: [sale]),
    LoneRule(
      description:
        "an older signed statement does not bring back what a newer reply no longer shows",
      steps: {
        try reply(nil, "2026-01-10", to: $0)
        try $0.add(signed: [refunded("2026-01-09")])
      },
      lines: [sale]),
  ]

  static func advanced(_ day: String, _ refunds: [JSONText]) -> JSONText {
    three(day, ["advancedCommerceInfo": ["items": [["refunds": .array(refunds)]]]])
  }

  static func part(_ amount: JSONText, _ day: String) -> JSONText {
    ["refundAmount": amount, "refundDate": instant(day)]
  }

  private static let advancedCommerce = [
    LoneRule(
      description: "what is more is one Return a date, what is less one Reversal",
      steps: {
        try $0.add(signed: [
          advanced("2026-01-09", [part(1000, "2026-01-07"), part(500, "2026-01-07")])
        ])
        try $0.add(signed: [
          advanced("2026-01-10", [part(2000, "2026-01-07"), part(1000, "2026-01-08")])
        ])
        try $0.add(signed: [advanced("2026-01-11", [part(1000, "2026-01-08")])])
      },
      lines: [
        sale, "Return 1 2026-01-07 0 -1.5", "Return 1 2026-01-07 0 -0.5",
        "Return 1 2026-01-08 0 -1", "Reversal 1 2026-01-11 0 2",
      ]),
    LoneRule(
      description: "a share that was booked before the first sum is reversed with it",
      steps: {
        try $0.add(signed: [refunded("2026-01-09", 33333)])
        try $0.add(signed: [advanced("2026-01-10", [part(5000, "2026-01-08")])])
      },
      lines: [
        sale, "Return 1 2026-01-08 -1 -3.33", "Reversal 1 2026-01-10 1 3.33",
        "Return 1 2026-01-08 0 -5",
      ]),
    LoneRule(
      description: "what is less comes before what is more",
      steps: {
        try $0.add(signed: [advanced("2026-01-09", [part(6000, "2026-01-07")])])
        try $0.add(signed: [
          advanced("2026-01-10", [part(2000, "2026-01-07"), part(8000, "2026-01-08")])
        ])
      },
      lines: [
        sale, "Return 1 2026-01-07 0 -6", "Reversal 1 2026-01-10 0 4",
        "Return 1 2026-01-08 -3 -8",
      ]),
    LoneRule(
      description: "an assumed Return becomes the amount of its date",
      steps: {
        try reply("2026-01-08", "2026-01-09", to: $0)
        try $0.add(signed: [
          advanced("2026-01-10", [part(4000, "2026-01-08"), part(1000, "2026-01-09")])
        ])
        // The example of docs/revenue.md.
        try $0.add(signed: [
          advanced("2026-01-11", [part(3000, "2026-01-08"), part(7000, "2026-01-12")])
        ])
      },
      lines: [
        sale, "Return 1 2026-01-08 0 -4", "Return 1 2026-01-09 0 -1", "Reversal 1 2026-01-11 0 2",
        "Return 1 2026-01-12 -3 -7",
      ]),
    LoneRule(
      description: "a reply with another date is a share of all on top, one with its date is not",
      steps: {
        try $0.add(signed: [advanced("2026-01-09", [part(4000, "2026-01-08")])])
        try reply("2026-01-08", "2026-01-10", to: $0)
        try reply("2026-01-10", "2026-01-11", to: $0)
        try $0.add(signed: [advanced("2026-01-12", [part(4000, "2026-01-08")])])
      },
      lines: [
        sale, "Return 1 2026-01-08 0 -4", "Return 1 2026-01-10 -3 -6",
        "Reversal 1 2026-01-12 3 6",
      ]),
    LoneRule(
      description: "after sums a plain statement changes nothing, and a reply reverses all",
      steps: {
        try $0.add(signed: [advanced("2026-01-09", [part(4000, "2026-01-08")])])
        try $0.add(signed: [refunded("2026-01-10")])
        try $0.add(signed: [three("2026-01-11")])
        try reply(nil, "2026-01-12", to: $0)
        try reply("2026-01-08", "2026-01-13", to: $0)
      },
      lines: [sale, "Return 1 2026-01-08 0 -4", "Reversal 1 2026-01-12 0 4"]),
    LoneRule(
      description: "a sum of an amount that is not known takes no unit",
      steps: {
        try $0.add(signed: [
          signed(
            "1", signed: "2026-01-09",
            [
              "advancedCommerceInfo": [
                "items": [["refunds": [part(12000, "2026-01-08")]]]
              ]
            ])
        ])
      },
      lines: ["Sale 1 2026-01-05 1 -", "Return 1 2026-01-08 0 -"]),
    LoneRule(
      description:
        "shares are not read, a refund without its amount is reported, and the amount is a cap",
      steps: {
        try $0.add(
          signed: [
            three(
              "2026-01-09",
              [
                "revocationDate": instant("2026-01-08"), "revocationPercentage": 50000,
                "advancedCommerceInfo": [
                  "items": [["refunds": [part(.absent, "2026-01-07"), part(12000, "2026-01-08")]]]
                ],
              ])
          ])
      },
      lines: [sale, "Return 1 2026-01-08 -3 -10"], exceptions: ["refund_amount_unknown "]),
  ]

  private static let upgrades = [
    LoneRule(
      description: "an upgrade with a percentage gives a Return by it",
      steps: {
        try $0.add(
          signed: [
            three(
              "2026-01-09",
              [
                "isUpgraded": true, "revocationDate": instant("2026-01-08"),
                "revocationPercentage": 33333,
              ])
          ])
      },
      lines: [sale, "Return 1 2026-01-08 -1 -3.33"]),
    LoneRule(
      description: "without one its credit is unknown, with or without a date",
      steps: {
        try $0.add(signed: [three("2026-01-09", ["isUpgraded": true])])
        try $0.add(signed: [refunded("2026-01-10")])
      },
      lines: [sale], exceptions: ["upgrade_credit_unknown "]),
    LoneRule(
      description: "an older statement still says that the sale was upgraded",
      steps: {
        try $0.add(signed: [three("2026-01-10")])
        try $0.add(signed: [three("2026-01-09", ["isUpgraded": true])])
        try $0.add(signed: [refunded("2026-01-11")])
      },
      lines: [sale], exceptions: ["upgrade_credit_unknown "]),
  ]
}
