// R13 in reports by hand: subscriptions at a moment and by month, from events of every kind.
import Base
import Ledger
import Revenue
import TestSupport
import Testing

import Projections

@Suite struct SubscriptionReportTests {
  private static let app = LiveProjectionsTests.app([])

  @Test(arguments: listed + months) func reports(_ rule: RuleCase) throws { try rule.check() }

  /// A period of the subscription `1`, signed on a day.
  private static func month(
    _ number: String, from start: String, to end: String, signed day: String,
    _ members: Members = [:]
  ) -> JSONText {
    signed(
      number, of: "1", line: "w\(number)", product: "pass", on: start, signed: day,
      merging: [
        ("expiresDate", instant(end)), ("originalPurchaseDate", instant("2026-01-01")),
        ("price", 9990), ("currency", "EUR"), ("type", "Auto-Renewable Subscription"),
      ] + members.map { ($0.key, $0.value) })
  }

  private static let january = month(
    "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-01",
    ["offerType": 1, "offerDiscountType": "FREE_TRIAL", "storefront": "DEU"])
  private static let february = month(
    "2", from: "2026-02-01", to: "2026-03-01", signed: "2026-02-01")

  private static func renewal(_ day: String, _ members: Members) -> JSONText {
    .object(
      [("originalTransactionId", "1"), ("signedDate", instant(day)), ("environment", "Production")]
        + members.map { ($0.key, $0.value) })
  }

  private static let row =
    "subscriptions original_transaction_id,product_id,user_identifier,country_code,status,expires_at,"
    + "grace_period_expires_at,auto_renew,auto_renew_product_id,expiration_intent,in_billing_retry,"
    + "price,currency,offer,revoked_at,position --at"

  // MARK: At a moment

  private static let listed = [
    RuleCase(
      "R13: an upgrade counts by any statement of the sale, also one that is older than the revocation",
      [
        app,
        .signedUpload(
          month(
            "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-10",
            ["revocationDate": instant("2026-01-09")]), user: "u1"),
        .notification(
          "DID_CHANGE_RENEWAL_PREF", uuid: "n1",
          month(
            "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-08", ["isUpgraded": true])),
      ],
      ["subscriptions status --at 2026-01-20": ["active"]]),
    RuleCase(
      "R13: a trial, its renewal by a notification, and what is said of the next one",
      [
        app, .signedUpload(january, user: "u1"),
        .notification(
          "DID_RENEW", uuid: "n1", february, renewal: renewal("2026-02-01", ["autoRenewStatus": 1])),
        .notification(
          "DID_FAIL_TO_RENEW", subtype: "GRACE_PERIOD", uuid: "n2", nil,
          renewal: renewal(
            "2026-03-01",
            [
              "autoRenewStatus": 1, "autoRenewProductId": "gold", "expirationIntent": 2,
              "isInBillingRetryPeriod": true, "gracePeriodExpiresDate": instant("2026-03-07"),
            ])),
      ],
      [
        "\(row) 2026-02-28": [
          "1,pass,u1,DE,active,2026-03-01T00:00:00.000Z,2026-03-07T00:00:00.000Z,true,gold,2,true,"
            + "9.99,EUR,,,3"
        ],
        "subscriptions status,started_at,current_period_start_at --at 2026-03-01": [
          "grace_period,2026-01-01T00:00:00.000Z,2026-02-01T00:00:00.000Z"
        ],
        "subscriptions status --at 2026-03-07": ["billing_retry"],
        "subscriptions status --at 2026-05-01": ["expired"],
        // Events are recorded from 1 February 2026 on, at 00:00:00.
        "subscriptions status": ["active"],
        "subscriptions status --environment Sandbox": [],
      ]),
    RuleCase(
      "R13: a trial has no price",
      [app, .signedUpload(january, user: "u1")],
      [
        "\(row) 2026-01-02": [
          "1,pass,u1,DE,active,2026-02-01T00:00:00.000Z,,,,,,,,trial,,1"
        ]
      ]),
    RuleCase(
      "R13: a fetched page tells of statements and renewals, without an upload",
      [
        app,
        .fetched(
          [SignedObjectPlan(january)],
          renewals: [SignedObjectPlan(renewal("2026-01-02", ["autoRenewStatus": 0]))]),
      ],
      [
        "subscriptions user_identifier,country_code,auto_renew,position --at 2026-01-02": [
          ",DE,false,1"
        ]
      ]),
    RuleCase(
      "R13: what comes before the bundle is registered counts for nothing",
      [
        .fetched(
          [SignedObjectPlan(january)],
          renewals: [SignedObjectPlan(renewal("2026-01-02", ["autoRenewStatus": 0]))]),
        app, .signedUpload(january, user: "u1"),
      ],
      ["subscriptions user_identifier,auto_renew,position --at 2026-01-02": ["u1,,2"]]),
    RuleCase(
      "R13: renewal information may name another environment than what it came in",
      [
        app, .signedUpload(january, user: "u1"),
        .notification(
          "DID_CHANGE_RENEWAL_STATUS", uuid: "n1", nil,
          renewal: [
            "originalTransactionId": "1", "environment": "Sandbox", "autoRenewStatus": 0,
            "signedDate": instant("2026-01-02"),
          ]),
      ],
      ["subscriptions environment,auto_renew --environment all": ["Production,"]]),
    RuleCase(
      "R13: a refund revokes the current period, and no earlier one does",
      [
        app, .signedUpload(january, february, user: "u1"),
        .notification(
          "REFUND", uuid: "n1",
          month(
            "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-02-05",
            ["revocationDate": instant("2026-02-04")])),
      ],
      ["subscriptions status,revoked_at,position --at 2026-02-10": ["active,,1"]]),
    RuleCase(
      "R13: a refund of the current period, and its reversal",
      [
        app, .signedUpload(february, user: "u1"),
        .notification(
          "REFUND", uuid: "n1",
          month(
            "2", from: "2026-02-01", to: "2026-03-01", signed: "2026-02-05",
            ["revocationDate": instant("2026-02-04")])),
        .notification(
          "REFUND_REVERSED", uuid: "n2",
          month("2", from: "2026-02-01", to: "2026-03-01", signed: "2026-02-09")),
      ],
      ["subscriptions status,revoked_at,position --at 2026-02-10": ["active,,3"]]),
    RuleCase(
      "R13: receipts and signed transactions tell of one subscription",
      [
        app, .signedUpload(january, user: "u1"),
        .upload(
          reply(
            TestSupport.row(
              "2", of: "1", line: "w2", product: "pass", on: "2026-02-01",
              ["expires_date_ms": date("2026-03-01")]), requested: "2026-02-02",
            also: [
              "pending_renewal_info": [["original_transaction_id": "1", "auto_renew_status": "1"]]
            ]), country: "US", user: "u2"),
      ],
      [
        "subscriptions user_identifier,country_code,expires_at,auto_renew,price,position --at 2026-02-02":
          ["u1,DE,2026-03-01T00:00:00.000Z,true,,3"]
      ]),
  ]

  // MARK: By month

  private static let months = [
    RuleCase(
      "R13: by month, a trial converts, and is refunded",
      [
        app, .signedUpload(january, february, user: "u1"),
        .signedUpload(
          signed(
            "9", line: "w9", product: "gold", on: "2026-02-10", signed: "2026-02-10",
            [
              "expiresDate": instant("2027-02-10"), "price": 60000, "currency": "USD",
              "bundleId": "app",
            ]), user: "u2"),
        .notification(
          "REFUND", uuid: "n1",
          month(
            "2", from: "2026-02-01", to: "2026-03-01", signed: "2026-03-05",
            ["revocationDate": instant("2026-02-20")])),
      ],
      [
        "subscriptions --by month --at 2026-03-15": [
          "2026-01,app,,1,1,0,0,0,0,,", "2026-02,app,EUR,1,1,0,1,0,1,9.99,0.00",
          "2026-02,app,USD,,,,,,,60.00,5.00", "2026-03,app,USD,1,0,0,0,0,0,0.00,5.00",
        ],
        "subscriptions --by month --at 2026-02-15": [
          "2026-01,app,,1,1,0,0,0,0,,", "2026-02,app,EUR,2,1,0,1,0,0,9.99,9.99",
          "2026-02,app,USD,,,,,,,60.00,5.00",
        ],
        // In Berlin, February begins an hour earlier, and so does the report's day.
        "subscriptions month,active,new,converted --by month --at 2026-02-01 --timezone Europe/Berlin":
          [
            "2026-01,1,1,0", "2026-02,1,0,0",
          ],
        "subscriptions --by month --environment Sandbox": [],
      ])
  ]

  @Test func ofNoEventThereIsNoMomentAndNoSubscription() throws {
    let fixture = try LedgerFixture()
    for isByMonth in [false, true] {
      var request = ReportRequest(.subscriptions)
      request.isByMonth = isByMonth
      let csv = try fixture.csv(request, from: try fixture.current())
      expectEqual(csv.split(separator: "\n").count, 1)
    }
  }

  @Test func theMomentAndTheFiltersComeBackFromAManifest() throws {
    var request = ReportRequest(.subscriptions)
    request.momentMs = ms("2026-03-01")
    request.isByMonth = true
    let fixture = try LedgerFixture()
    try fixture.append([Self.app])
    let json = try fixture.json(request, from: try fixture.current())
    #expect(
      json.contains(
        #""filters":{"by":"month","at":"2026-03-01T00:00:00.000Z","timezone":"UTC","environment":["Production"],"include_pending":false}"#
      ))
  }

  // MARK: Queries

  @Test func aUserAndATransactionLeadToTheSubscription() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .signedUpload(Self.january, user: "u1"),
      .notification(
        "DID_RENEW", uuid: "n1", Self.february,
        renewal: Self.renewal(
          "2026-02-01",
          ["autoRenewStatus": 1, "gracePeriodExpiresDate": instant("2026-03-07")])),
    ])
    let queries = SubscriptionQueries(try fixture.current())
    let found = try #require(try queries.subscriptions(ofUser: "u1").first)
    try expectEqual(queries.subscriptions(originalTransactionID: "1"), [found])
    try expectEqual(
      queries.subscription(
        environment: "Production", bundleID: "app", originalTransactionID: "1"), found)
    #expect(
      try queries.subscription(
        environment: "Sandbox", bundleID: "app", originalTransactionID: "1") == nil)
    #expect(try queries.subscriptions(ofUser: "u2").isEmpty)
    expectEqual(found.status(atMs: ms("2026-03-01")), .gracePeriod)
    #expect(found.productID == "pass" && found.countryCode == "DE" && found.isAutoRenewing == true)
    #expect(found.unitPriceMicros == 9_990_000 && found.currency?.description == "EUR")
    #expect((found.statementPosition, found.renewalPosition) == (2, 2))
    #expect(found.isInGracePeriod == false)
  }
}
