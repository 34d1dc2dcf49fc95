// R13: what statements and renewal information tell about a subscription, sentence by sentence.
import Revenue
import TestSupport
import Testing

@Suite struct SubscriptionRulesTests {
  /// A month of `pass`: transaction `number`, of the subscription `1`, from a day on.
  private static func month(
    _ number: String, from start: String, to end: String, _ members: Members = [:]
  ) -> JSONText {
    row(
      number, of: "1", line: "w\(number)", product: "pass", on: start,
      merging: [("expires_date_ms", date(end)), ("original_purchase_date_ms", date("2026-01-01"))]
        + members.map { ($0.key, $0.value) })
  }

  private static func signedMonth(
    _ number: String, from start: String, to end: String, signed day: String,
    _ members: Members = [:]
  ) -> JSONText {
    signed(
      number, of: "1", line: "w\(number)", product: "pass", on: start, signed: day,
      merging: [("expiresDate", instant(end))] + members.map { ($0.key, $0.value) })
  }

  private static let january = month("1", from: "2026-01-01", to: "2026-02-01")
  private static let february = month("2", from: "2026-02-01", to: "2026-03-01")

  // MARK: Statements

  @Test func onlyRowsWithAnExpiryShowASubscription() throws {
    let books = Books()
    try books.add(reply(row("5"), Self.january))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 at 1"])
    expectEqual(books.periodEnds(), ["5 -", "w1 2026-02-01"])
  }

  @Test func aSignedTransactionOfAnotherTypeIsNone() throws {
    let books = Books()
    for type in ["Non-Renewing Subscription", "Consumable"] as [JSONText] {
      try books.add(signed: [
        Self.signedMonth(
          "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-02", ["type": type])
      ])
    }
    #expect(books.subscriptions().isEmpty)
    expectEqual(books.periodEnds(), ["w1 -"])
    try books.add(signed: [
      Self.signedMonth(
        "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-02",
        ["type": "Auto-Renewable Subscription"])
    ])
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 at 2"])
  }

  @Test func withoutAnOriginalTheTransactionNamesIt() throws {
    let books = Books()
    try books.add(
      reply(
        row(
          "7", line: "w7",
          [
            "original_transaction_id": .absent, "expires_date_ms": date("2026-02-01"),
          ])))
    expectEqual(books.subscriptions(), ["7 coins 2026-01-05…2026-02-01 at 1"])
  }

  @Test func theExpiryMayBeReadable() throws {
    let books = Books()
    try books.add(
      reply(
        row("1", line: "a", ["expires_date": "2026-02-01 00:00:00 Etc/GMT"]),
        row("2", line: "b", ["expires_date": date("2026-02-02")]),
        row("3", line: "c", ["expires_date_formatted": "2026-02-03 00:00:00 Etc/GMT"]),
        row("4", line: "d", ["expires_date": "soon"])))
    expectEqual(
      books.subscriptions(),
      [
        "1 coins 2026-01-05…2026-02-01 at 1", "2 coins 2026-01-05…2026-02-02 at 1",
        "3 coins 2026-01-05…2026-02-03 at 1",
      ])
  }

  // MARK: The current statement

  @Test func theLatestPeriodCountsWhateverCameFirst() throws {
    let books = Books()
    try books.add(reply(Self.january, Self.february, requested: "2026-02-05"))
    try books.add(reply(Self.january, requested: "2026-02-20"))
    expectEqual(books.subscriptions(), ["1 pass 2026-02-01…2026-03-01 since 2026-01-01 at 1"])
  }

  @Test func ofOnePeriodTheNewestStatementCounts() throws {
    let books = Books()
    let longer = Self.month("1", from: "2026-01-01", to: "2026-02-10")
    let shorter = Self.month("1", from: "2026-01-01", to: "2026-01-20")
    try books.add(reply(longer, requested: "2026-01-10"))
    try books.add(reply(shorter, requested: "2026-01-09"))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-10 at 1"])
    expectEqual(books.periodEnds(), ["w1 2026-02-10"])
    try books.add(reply(shorter))
    expectEqual(
      books.subscriptions(), ["1 pass 2026-01-01…2026-02-10 at 1"], "a reply without a time")
    try books.add(reply(shorter, requested: "2026-01-10"))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-01-20 at 7"], "an equal time")
    expectEqual(books.periodEnds(), ["w1 2026-01-20"])
  }

  @Test func inOneReplyTheFirstRowInOrderCounts() throws {
    let books = Books()
    let other = Self.month("1", from: "2026-01-01", to: "2026-02-10")
    try books.add(
      reply(rows: [other], latest: [Self.january], requested: "2026-01-10"))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 at 1"])
    expectEqual(books.periodEnds(), ["w1 2026-02-01"])
  }

  @Test func inOneListTheLastOfEqualTimesCounts() throws {
    let books = Books()
    try books.add(signed: [
      Self.signedMonth("1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-05"),
      Self.signedMonth("1", from: "2026-01-01", to: "2026-02-10", signed: "2026-01-05"),
      Self.signedMonth("1", from: "2026-01-01", to: "2026-02-20", signed: "2026-01-04"),
    ])
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-10 at 0"])
    expectEqual(books.periodEnds(), ["w1 2026-02-10"])
  }

  @Test func aRevocationGoesWhenANewerStatementHasNone() throws {
    let books = Books()
    func statement(_ day: String, _ members: Members = [:]) throws {
      try books.add(signed: [
        Self.signedMonth("1", from: "2026-01-01", to: "2026-02-01", signed: day, members)
      ])
    }
    try statement("2026-01-10", ["revocationDate": instant("2026-01-08")])
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 revoked 2026-01-08 at 0"])
    try statement("2026-01-12")
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 at 1"])
  }

  @Test func anUpgradeStaysWithItsPeriod() throws {
    let books = Books()
    func statement(_ day: String, _ members: Members = [:]) throws {
      try books.add(signed: [
        Self.signedMonth("1", from: "2026-01-01", to: "2026-02-01", signed: day, members)
      ])
    }
    try statement("2026-01-10", ["isUpgraded": true])
    try statement("2026-01-12", ["revocationDate": instant("2026-01-08")])
    expectEqual(
      books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 revoked 2026-01-08 upgraded at 1"])
    try books.add(reply(Self.february))
    expectEqual(books.subscriptions(), ["1 pass 2026-02-01…2026-03-01 since 2026-01-01 at 3"])
  }

  @Test("An upgrade counts by any statement, whatever the order", arguments: 0..<24)
  func upgradesInEveryOrder(_ number: Int) throws {
    var left: [(Books) throws -> Void] = [
      {
        try $0.add(signed: [
          Self.signedMonth("1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-06")
        ])
      },
      {
        try $0.add(signed: [
          Self.signedMonth(
            "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-08", ["isUpgraded": true])
        ])
      },
      {
        try $0.add(signed: [
          Self.signedMonth(
            "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-10",
            ["revocationDate": instant("2026-01-08")])
        ])
      },
      {
        try $0.add(
          reply(
            row(
              "1", line: "w1", product: "pass", on: "2026-01-01",
              ["expires_date_ms": date("2026-02-01"), "cancellation_date_ms": date("2026-01-08")]),
            requested: "2026-01-12"))
      },
    ]
    let books = Books()
    var rest = number
    while !left.isEmpty {
      try left.remove(at: rest % left.count)(books)
      rest /= left.count + 1
    }
    let subscription = try #require(books.subscriptions().first)
    #expect(subscription.hasPrefix("1 pass 2026-01-01…2026-02-01 revoked 2026-01-08 upgraded"))
  }

  @Test(
    arguments: [
      (["is_trial_period": "true", "promotional_offer_id": "p"], "trial"),
      (["is_in_intro_offer_period": "true", "promotional_offer_id": "p"], "introductory"),
      (["promotional_offer_id": "p", "offer_code_ref_name": "c"], "promotional"),
      (["offer_code_ref_name": "c"], "offer_code"),
    ] as [(Members, String)])
  func aRowNamesItsOffer(members: Members, offer: String) throws {
    let books = Books()
    try books.add(reply(Self.month("1", from: "2026-01-01", to: "2026-02-01", members)))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 \(offer) at 1"])
  }

  @Test(
    arguments: [
      (["offerType": 1, "offerDiscountType": "FREE_TRIAL"], "trial"),
      (["offerType": 1], "introductory"), (["offerType": 2], "promotional"),
      (["offerType": 3], "offer_code"), (["offerType": 4], "win_back"), (["offerType": 9], "other"),
    ] as [(Members, String)])
  func aSignedTransactionNamesItsOffer(members: Members, offer: String) throws {
    let books = Books()
    try books.add(signed: [
      Self.signedMonth("1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-05", members)
    ])
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 \(offer) at 0"])
  }

  // MARK: Country and user

  @Test func countryAndUserAreThoseOfTheFirstUploadOfAnyPeriod() throws {
    let books = Books()
    try books.add(reply(row("9")), user: "nobody", country: "US")
    try books.add(reply(Self.january))
    try books.add(reply(Self.february), user: "u1", country: "DE")
    try books.add(reply(Self.january), user: "u2", country: "FR")
    expectEqual(books.subscriptions(), ["1 pass 2026-02-01…2026-03-01 since 2026-01-01 DE u1 at 5"])
  }

  @Test func aRenewalThatOnlyANotificationShowsStaysWithItsUser() throws {
    let books = Books()
    try books.add(reply(Self.january), user: "u1", country: "DE")
    try books.add(
      signed: [
        Self.signedMonth(
          "2", from: "2026-02-01", to: "2026-03-01", signed: "2026-02-01",
          ["appAccountToken": "\(accountToken(1))", "storefront": "FRA"])
      ], isUpload: false)
    try books.add(reply(Self.january), user: "u1", country: "US")
    expectEqual(books.subscriptions(), ["1 pass 2026-02-01…2026-03-01 FR u1 at 2"])
  }

  @Test func aTokenIsTheUserUntilAnUploadNamesOne() throws {
    let books = Books()
    func statement(_ token: String) throws {
      try books.add(
        signed: [
          Self.signedMonth(
            "1", from: "2026-01-01", to: "2026-02-01", signed: "2026-01-05",
            ["appAccountToken": JSONText(stringLiteral: token), "storefront": "???"])
        ], isUpload: false)
    }
    try statement("no UUID")
    try statement(accountToken(1).uppercased())
    try statement(accountToken(2))
    expectEqual(
      books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 token:\(accountToken(1)) at 2"])
    try books.add(reply(Self.january), user: "u1")
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 u1 at 2"])
  }

  @Test func ofAReplyTheFirstTokenInTheOrderOfRowsCounts() throws {
    func month(_ id: String, _ from: String, _ to: String, _ token: String) -> JSONText {
      row(
        id, of: "1", line: "7" + id, product: "pass", on: from,
        ["expires_date_ms": instant(to), "app_account_token": JSONText(stringLiteral: token)])
    }
    let books = Books()
    try books.add(
      reply(
        month("3", "2026-03-01", "2026-04-01", accountToken(3)),
        month("1", "2026-01-01", "2026-02-01", "no UUID"),
        month("2", "2026-02-01", "2026-03-01", accountToken(2).uppercased())))
    expectEqual(
      books.subscriptions(), ["1 pass 2026-03-01…2026-04-01 token:\(accountToken(2)) at 1"])
    try books.add(reply(month("1", "2026-01-01", "2026-02-01", accountToken(1))))
    #expect(books.subscriptions()[0].contains("token:\(accountToken(2))"))
  }

  // MARK: Renewal information

  private static func renewing(_ entries: JSONText..., requested: String? = nil) -> JSONText {
    reply(Self.january, requested: requested, also: ["pending_renewal_info": .array(entries)])
  }

  @Test func aReplySaysHowItRenews() throws {
    let books = Books()
    try books.add(
      Self.renewing(
        [
          "original_transaction_id": "1", "auto_renew_status": "1", "auto_renew_product_id": "gold",
          "expiration_intent": "2", "is_in_billing_retry_period": "1",
          "grace_period_expires_date_ms": date("2026-02-06"),
        ], ["auto_renew_status": "0"]))
    expectEqual(
      books.subscriptions(),
      [
        "1 pass 2026-01-01…2026-02-01 renews to gold intent 2 retry grace 2026-02-06 at 1"
      ], "an entry without an original transaction is about nothing")
  }

  @Test func theNewestInformationCountsAsAWhole() throws {
    let books = Books()
    let full: JSONText = [
      "original_transaction_id": "1", "auto_renew_status": "1", "expiration_intent": "2",
    ]
    try books.add(Self.renewing(full, requested: "2026-01-10"))
    try books.add(
      Self.renewing(
        ["original_transaction_id": "1", "auto_renew_status": "0"], requested: "2026-01-09"))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 renews intent 2 at 1"])
    try books.add(
      Self.renewing(
        ["original_transaction_id": "1", "auto_renew_status": "0"], requested: "2026-01-10"))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 ends at 5"])
    try books.add(renewal: [
      "originalTransactionId": "1", "signedDate": instant("2026-01-11"),
      "isInBillingRetryPeriod": false,
    ])
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 unsaid no retry at 6"])
  }

  @Test func ofOneListTheLastEntryCounts() throws {
    let books = Books()
    try books.add(
      Self.renewing(
        ["original_transaction_id": "1", "auto_renew_status": "1"],
        ["original_transaction_id": "1", "auto_renew_status": "0"]))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 ends at 1"])
  }

  @Test func informationWaitsForItsSubscription() throws {
    let books = Books()
    try books.add(renewal: [
      "originalTransactionId": "1", "signedDate": instant("2026-01-11"), "autoRenewStatus": 1,
      "autoRenewProductId": "gold", "gracePeriodExpiresDate": instant("2026-02-06"),
      "expirationIntent": 4,
    ])
    #expect(books.subscriptions().isEmpty)
    try books.add(reply(Self.january))
    expectEqual(
      books.subscriptions(),
      [
        "1 pass 2026-01-01…2026-02-01 renews to gold intent 4 grace 2026-02-06 at 2"
      ])
  }

  /// A reply of the legacy shape: flat.
  private static func legacy(_ member: JSONText, latest: JSONText = .absent) -> JSONText {
    [
      "status": 0,
      "receipt": [
        "bid": "app", "product_id": "pass", "transaction_id": "1", "original_transaction_id": "1",
        "purchase_date_ms": date("2026-01-01"), "original_purchase_date_ms": date("2026-01-01"),
        "expires_date": date("2026-02-01"), "web_order_line_item_id": "w1",
      ], "auto_renew_status": member, "latest_receipt_info": latest,
    ]
  }

  @Test func aLegacyReplySaysItOfItsOnlySubscription() throws {
    let books = Books()
    try books.add(Self.legacy(1))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 renews at 1"])
    let other = row(
      "9", line: "w9", product: "pass", on: "2026-01-02",
      ["expires_date": date("2026-02-02")])
    try books.add(Self.legacy(0, latest: other))
    expectEqual(
      books.subscriptions(),
      [
        "1 pass 2026-01-01…2026-02-01 renews at 3", "9 pass 2026-01-02…2026-02-02 at 3",
      ], "of two subscriptions it says nothing")
  }

  @Test func theOutermostMembersOfAUnifiedReplySayNothing() throws {
    let books = Books()
    try books.add(reply(Self.january, also: ["auto_renew_status": 1]))
    expectEqual(books.subscriptions(), ["1 pass 2026-01-01…2026-02-01 at 1"])
  }

  // MARK: Several subscriptions in one reply

  @Test func eachOfManySubscriptionsKeepsItsLatestPeriod() throws {
    let books = Books()
    let rows = (0..<30).flatMap { number in
      ["2026-01-01", "2026-02-01"].enumerated().map { index, start in
        row(
          "\(number)-\(index)", of: "s\(number)", line: "w\(number)-\(index)", product: "pass",
          on: start,
          ["expires_date_ms": date(index == 0 ? "2026-02-01" : "2026-03-01")])
      }
    }
    var random = SeededRandom()
    try books.add(reply(rows: rows.shuffled(using: &random)))
    let expected = (0..<30).map { "s\($0) pass 2026-02-01…2026-03-01 at 1" }.sorted()
    expectEqual(books.subscriptions().sorted(), expected, "seed \(random.seed)")
  }
}
