// Refunds by notifications, step by step: full, prorated, declined, reversed (rule R12); and their story.
import Ledger
import TestSupport
import Testing

import Projections

@Suite struct RefundNotificationTests {
  private static let app = LiveProjectionsTests.app([])
  private static let lines = "journal date,line,quantity,amount,reason,position"
  private static let bought = "2026-01-05T00:00:00.000Z,Sale,2,20.00,,1"

  /// Two coins for 20.00 EUR, as signed on a day of January.
  private static func coins(_ day: Int, merging members: [(String, JSONText)] = []) -> JSONText {
    signed(
      "1", signed: time(day),
      merging: [("quantity", 2), ("price", 20000), ("currency", "EUR")] + members)
  }

  private static func refunded(_ day: Int, _ members: Members = [:]) -> JSONText {
    coins(
      day,
      merging: [("revocationDate", instant("2026-01-08")), ("revocationReason", 1)]
        + members.map { ($0.key, $0.value) })
  }

  private static func time(_ day: Int) -> String { day < 10 ? "2026-01-0\(day)" : "2026-01-\(day)" }

  private static func told(
    _ type: String, _ day: Int, _ transaction: JSONText, about: Members = [:]
  ) -> TestEvent {
    .notification(
      type, uuid: "\(type) \(day)", transaction, about: about, signed: time(day))
  }

  private static let asked = told(
    "CONSUMPTION_REQUEST", 7, coins(7), about: ["consumptionRequestReason": "UNINTENDED_PURCHASE"])
  private static let wholly = refunded(
    9, ["revocationType": "REFUND_FULL", "revocationPercentage": 100_000])
  private static let partly = refunded(
    9, ["revocationType": "REFUND_PRORATED", "revocationPercentage": 33_125])

  @Test(arguments: cases) func journal(_ rule: RuleCase) throws { try rule.check() }

  private static let cases = [
    RuleCase(
      "a consumption request makes no line",
      [app, .signedUpload(coins(6)), asked],
      [lines: [bought], "sales cancelled,cancellation_positions": ["false,"]]),
    RuleCase(
      "a refund of all is a Return of all on its date",
      [app, .signedUpload(coins(6)), asked, told("REFUND", 9, wholly)],
      [
        lines: [bought, "2026-01-08T00:00:00.000Z,Return,-2,-20.00,1,3"],
        "sales cancelled,cancellation_positions": ["true,3"],
        "revenue --by product": ["coins,EUR,2,20.00,2,20.00,0,0.00,0.00,0,0,0"],
      ]),
    RuleCase(
      "a prorated refund returns its share, and no unit that is not whole",
      [app, .signedUpload(coins(6)), told("REFUND", 9, partly)],
      [
        lines: [bought, "2026-01-08T00:00:00.000Z,Return,0,-6.62,1,2"],
        "sales cancelled,cancellation_positions": ["true,2"],
        "revenue --by product": ["coins,EUR,2,20.00,0,6.62,0,0.00,13.38,0,0,0"],
      ]),
    RuleCase(
      "a prorated refund of half is one of two units",
      [
        app, .signedUpload(coins(6)),
        told("REFUND", 9, refunded(9, ["revocationPercentage": 50_000])),
      ],
      [lines: [bought, "2026-01-08T00:00:00.000Z,Return,-1,-10.00,1,2"]]),
    RuleCase(
      "a declined refund makes no line",
      [app, .signedUpload(coins(6)), asked, told("REFUND_DECLINED", 9, coins(9))],
      [lines: [bought], "sales cancelled": ["false"], "exceptions exception": []]),
    RuleCase(
      "a refund taken back is a Reversal when it was signed, of what was refunded",
      [
        app, .signedUpload(coins(6)), told("REFUND", 9, partly),
        told("REFUND_REVERSED", 12, coins(12)),
      ],
      [
        lines: [
          bought, "2026-01-08T00:00:00.000Z,Return,0,-6.62,1,2",
          "2026-01-12T00:00:00.000Z,Reversal,0,6.62,,3",
        ],
        "sales cancelled,cancellation_positions,reversal_positions": ["false,2,3"],
        "revenue --by product": ["coins,EUR,2,20.00,0,6.62,0,6.62,20.00,0,0,0"],
      ]),
    RuleCase(
      "taken back in part: the Reversal is the difference",
      [
        app, .signedUpload(coins(6)), told("REFUND", 9, wholly),
        told("REFUND_REVERSED", 12, refunded(12, ["revocationPercentage": 50_000])),
      ],
      [
        lines: [
          bought, "2026-01-08T00:00:00.000Z,Return,-2,-20.00,1,2",
          "2026-01-12T00:00:00.000Z,Reversal,1,10.00,,3",
        ]
      ]),
    RuleCase(
      "a notification that comes late changes nothing",
      [
        app, .signedUpload(coins(6)), told("REFUND_REVERSED", 12, coins(12)),
        told("REFUND", 9, wholly), asked,
      ],
      [lines: [bought], "sales cancelled": ["false"]]),
    RuleCase(
      "what a client or another notification says again makes no second line",
      [
        app, .signedUpload(coins(6)), told("REFUND", 9, wholly), .signedUpload(wholly),
        told("REFUND", 10, refunded(10, ["revocationPercentage": 100_000])),
      ],
      [lines: [bought, "2026-01-08T00:00:00.000Z,Return,-2,-20.00,1,2"]]),
    RuleCase(
      "a refund may be all that is known of a sale",
      [app, told("REFUND", 9, wholly)],
      [lines: [bought, "2026-01-08T00:00:00.000Z,Return,-2,-20.00,1,1"]]),
    RuleCase(
      "a family member's purchase that is revoked gives back nothing",
      [
        app, .signedUpload(signed("1", ["inAppOwnershipType": "FAMILY_SHARED"])),
        told(
          "REVOKE", 9,
          signed(
            "1", signed: time(9),
            [
              "inAppOwnershipType": "FAMILY_SHARED", "revocationDate": instant("2026-01-08"),
              "revocationType": "FAMILY_REVOKE",
            ])),
      ],
      [
        lines: [
          "2026-01-05T00:00:00.000Z,Sale,1,0,,1", "2026-01-08T00:00:00.000Z,Return,-1,0,,2",
        ],
        "revenue --by product": ["coins,,0,,0,,0,,,0,0,1"],
      ]),
  ]

  // MARK: The story of a sale

  private static func story(
    _ key: String, _ events: [TestEvent]
  ) throws -> [SaleNotification] {
    let fixture = try LedgerFixture()
    try fixture.append(events)
    let reader = try LogReader(fixture.directory)
    let queries = try LedgerQueries(try fixture.current()) { try reader.event(at: $0) }
    let sale = try #require(try queries.sales(key: key).first)
    let (notifications, isCut) = try queries.notifications(about: sale)
    #expect(!isCut)
    return notifications
  }

  @Test func notificationsAreToldInTheOrderOfTheirSignatures() throws {
    let story = try Self.story(
      "1",
      [
        Self.app, Self.told("REFUND_REVERSED", 12, Self.coins(12)),
        Self.told("REFUND", 9, Self.partly), Self.asked, .signedUpload(Self.coins(6)),
      ])
    expectEqual(
      story.map(\.notification.type), ["CONSUMPTION_REQUEST", "REFUND", "REFUND_REVERSED"])
    expectEqual(story.map(\.notification.position), [3, 2, 1])
    expectEqual(story.map(\.consumptionRequestReason), ["UNINTENDED_PURCHASE", nil, nil])
    expectEqual(story.map(\.revokedAtMs), [nil, ms("2026-01-08"), nil])
    expectEqual(story.map(\.revocationPercentage), [nil, 33_125, nil])
    expectEqual(story.map(\.revocationType), [nil, "REFUND_PRORATED", nil])
    expectEqual(story.map(\.revocationReason), [nil, "1", nil])
  }

  @Test(
    arguments: [
      ("of another sale", told("REFUND", 9, signed("2", signed: time(9)))),
      ("of another environment", told("REFUND", 9, signed("1", ["environment": "Sandbox"]))),
      ("of a bundle that is not registered", told("REFUND", 9, signed("1", ["bundleId": "b"]))),
      ("without a transaction", .notification("TEST", uuid: "n", nil)),
      (
        "about another sale that came with this one's id",
        told("REFUND", 9, signed("1", line: "7", signed: time(9)))
      ),
    ] as [(String, TestEvent)])
  func aNotificationIsNotOfTheSale(_ situation: String, _ event: TestEvent) throws {
    #expect(
      try Self.story("1", [Self.app, .signedUpload(Self.coins(6)), event]).isEmpty, "\(situation)")
  }

  @Test(
    arguments: [
      (#"{"consumptionRequestReason":""}"#, nil), (#"{"consumptionRequestReason":null}"#, nil),
      (#"{"consumptionRequestReason":["x"]}"#, nil), (#"{"consumptionRequestReason":7}"#, "7"),
      (#"{"consumptionRequestReason":"NEW WORD"}"#, "NEW WORD"),
    ] as [(String, String?)])
  func whatIsNotKnownIsKept(_ about: String, _ reason: String?) throws {
    let value = about.dropFirst(#"{"consumptionRequestReason":"#.count).dropLast()
    let event = Self.told(
      "SOMETHING_NEW", 7, Self.coins(7),
      about: ["consumptionRequestReason": JSONText(raw: String(value))])
    let story = try Self.story("1", [Self.app, event])
    expectEqual(story.map(\.consumptionRequestReason), [reason])
    expectEqual(story.map(\.notification.type), ["SOMETHING_NEW"])
  }
}
