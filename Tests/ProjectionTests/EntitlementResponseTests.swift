// The client API's response about a user's entitlements.
import Base
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct EntitlementResponseTests {
  private static let products: [(String, ProductType)] = [
    ("coins", .consumable), ("life", .nonConsumable), ("season", .nonRenewing),
  ]

  private static func app(
    _ entitlements: [Entitlement], products: [(String, ProductType)] = products
  ) -> TestEvent {
    .app(
      AppRegistered(
        appFamilyID: LiveProjectionsTests.family, name: "App", bundleIDs: ["app"],
        products: products.map { .init(id: $0.0, type: $0.1) }, entitlements: entitlements))
  }

  private static let pro = Entitlement(
    name: "pro", patterns: ["pro.*", "life", "season", "coins", "gift"])

  /// `name active until reason product`, one a line; entitlements of the Sandbox follow behind a
  /// `~`.
  private static func entitlements(
    _ steps: [TestEvent], of user: String = "alice", at time: String = "2026-01-20",
    app: TestEvent = app([pro])
  ) throws -> [String] {
    let fixture = try LedgerFixture()
    try fixture.append([app] + steps)
    return try lines(
      try UserQuestions(fixture).answer(.entitlements, about: user, at: time))
  }

  private static func lines(_ answer: JSONValue) throws -> [String] {
    func lines(_ value: JSONValue?, _ mark: String) throws -> [String] {
      try #require(value?["entitlements"]?.arrayValue).map { entitlement in
        let texts = entitlement.texts("name", "is_active", "until", "reason", "product_id")
        return mark
          + texts.map { ($0 ?? "-").replacing("T00:00:00.000Z", with: "") }.joined(separator: " ")
      }
    }
    return try lines(answer, "") + lines(answer["sandbox"], "~")
  }

  /// A period of the subscription 1, a month from its start.
  private static func period(
    _ transaction: String, _ product: String = "pro.month", on start: String = "2026-01-05",
    until end: String = "2026-02-05", signed day: String = "2026-01-06", _ members: Members = [:]
  ) -> JSONText {
    signed(
      transaction, of: "1", line: "w\(transaction)", product: product, on: start, signed: day,
      merging: [("type", "Auto-Renewable Subscription"), ("expiresDate", instant(end))]
        + members.map { ($0.key, $0.value) })
  }

  private static func renewal(
    _ day: String, _ members: Members = [:]
  ) -> JSONText {
    .object(
      [
        ("originalTransactionId", "1"), ("autoRenewProductId", "pro.month"),
        ("productId", "pro.month"), ("autoRenewStatus", 1), ("environment", "Production"),
        ("signedDate", instant(day)),
      ] + members.map { ($0.key, $0.value) })
  }

  // MARK: Subscriptions

  @Test(
    "a subscription gives its entitlement until its period ends",
    arguments: [
      ("2026-01-06", "pro true 2026-02-05 subscription_active pro.month"),
      ("2026-02-04T23:59:59.999Z", "pro true 2026-02-05 subscription_active pro.month"),
      ("2026-02-05", "pro false 2026-02-05 expired pro.month"),
    ])
  func period(_ time: String, _ line: String) throws {
    let steps = [TestEvent.signedUpload(Self.period("1"), user: "alice")]
    try expectEqual(Self.entitlements(steps, at: time), [line])
  }

  @Test(
    "after its period a subscription is in its grace period, in billing retry, or over",
    arguments: [
      ("2026-02-04", "pro true 2026-02-05 subscription_active pro.month"),
      ("2026-02-05", "pro true 2026-02-11 grace_period pro.month"),
      ("2026-02-11", "pro false 2026-02-05 billing_retry pro.month"),
      ("2026-04-07", "pro false 2026-02-11 expired pro.month"),
    ])
  func afterPeriod(_ time: String, _ line: String) throws {
    let steps = [
      TestEvent.signedUpload(Self.period("1"), user: "alice"),
      .notification(
        "DID_FAIL_TO_RENEW", uuid: "n", Self.period("1", signed: "2026-02-05"),
        renewal: Self.renewal(
          "2026-02-05",
          ["gracePeriodExpiresDate": instant("2026-02-11"), "isInBillingRetryPeriod": true])),
    ]
    try expectEqual(Self.entitlements(steps, at: time), [line])
  }

  @Test(
    "a renewal that only a notification shows extends the entitlement of the subscription's user")
  func renewalByNotification() throws {
    let steps = [
      TestEvent.signedUpload(Self.period("1"), user: "alice"),
      .notification(
        "DID_RENEW", uuid: "n",
        Self.period("2", on: "2026-02-05", until: "2026-03-05", signed: "2026-02-05")),
    ]
    try expectEqual(
      Self.entitlements(steps, at: "2026-02-20"),
      [
        "pro true 2026-03-05 subscription_active pro.month"
      ])
    // The renewal is a purchase of the user, too.
    let fixture = try LedgerFixture()
    try fixture.append([Self.app([Self.pro])] + steps)
    let purchases = try UserQuestions(fixture).purchases(of: "alice", at: "2026-02-20")
    expectEqual(purchases.map { $0["transaction_id"]?.stringValue }, ["2", "1"])
    expectEqual(purchases.map { $0["state"]?.stringValue }, ["owned", "expired"])
    expectEqual(
      purchases[0]["subscription"]?.texts("status", "expires_at", "product_id", "auto_renew"),
      [
        "active", "2026-03-05T00:00:00.000Z", "pro.month", nil,
      ])
    expectEqual(purchases.map { $0["type"]?.stringValue }, ["auto_renewable", "auto_renewable"])
  }

  @Test("a refund of the current period ends the entitlement, one of an earlier period does not")
  func refunds() throws {
    let renewed = [
      TestEvent.signedUpload(
        Self.period("1"),
        Self.period("2", on: "2026-02-05", until: "2026-03-05", signed: "2026-02-05"),
        user: "alice")
    ]
    func refund(_ transaction: String, _ start: String, _ end: String) -> TestEvent {
      .notification(
        "REFUND", uuid: "r",
        Self.period(
          transaction, on: start, until: end, signed: "2026-02-10",
          ["revocationDate": instant("2026-02-10")]))
    }
    let current = renewed + [refund("2", "2026-02-05", "2026-03-05")]
    try expectEqual(
      Self.entitlements(current, at: "2026-02-20"), ["pro false 2026-02-10 revoked pro.month"])
    let earlier = renewed + [refund("1", "2026-01-05", "2026-02-05")]
    try expectEqual(
      Self.entitlements(earlier, at: "2026-02-20"),
      [
        "pro true 2026-03-05 subscription_active pro.month"
      ])
  }

  @Test("a change to another product takes effect when the paid period ends, not when it is known")
  func crossgrade() throws {
    let steps = [
      TestEvent.signedUpload(Self.period("1"), user: "alice"),
      .notification(
        "DID_RENEW", uuid: "n",
        Self.period(
          "2", "basic.month", on: "2026-02-05", until: "2026-03-05", signed: "2026-02-04")),
    ]
    let app = Self.app([
      Entitlement(name: "pro", patterns: ["pro.*"]), Entitlement(name: "basic", patterns: ["*"]),
    ])
    try expectEqual(
      Self.entitlements(steps, at: "2026-02-04T12:00:00Z", app: app),
      [
        "pro true 2026-02-05 subscription_active pro.month",
        "basic true 2026-03-05 subscription_active basic.month",
      ])
    try expectEqual(
      Self.entitlements(steps, at: "2026-02-05", app: app),
      [
        "pro false 2026-02-05 expired pro.month",
        "basic true 2026-03-05 subscription_active basic.month",
      ])
  }

  @Test("a product of the next period is not owned before that period begins")
  func productOfTheNextPeriod() throws {
    func steps(_ next: String) -> [TestEvent] {
      [
        .signedUpload(Self.period("1"), user: "alice"),
        .notification(
          "DID_RENEW", uuid: "n",
          Self.period("2", next, on: "2026-02-05", until: "2026-03-05", signed: "2026-02-04")),
      ]
    }
    let app = Self.app([
      Entitlement(name: "pro", patterns: ["pro.*"]), Entitlement(name: "max", patterns: ["max.*"]),
    ])
    try expectEqual(
      Self.entitlements(steps("max.month"), at: "2026-02-04T12:00:00Z", app: app),
      [
        "pro true 2026-02-05 subscription_active pro.month"
      ])
    try expectEqual(
      Self.entitlements(steps("max.month"), at: "2026-02-05", app: app),
      [
        "pro false 2026-02-05 expired pro.month",
        "max true 2026-03-05 subscription_active max.month",
      ])
    // With the same product, the renewal extends the end at once.
    try expectEqual(
      Self.entitlements(steps("pro.month"), at: "2026-02-04T12:00:00Z", app: app),
      [
        "pro true 2026-03-05 subscription_active pro.month"
      ])
    // A first period counts although this clock is behind the App Store's.
    try expectEqual(
      Self.entitlements(
        [.signedUpload(Self.period("1"), user: "alice")], at: "2026-01-04T23:59:59Z", app: app),
      ["pro true 2026-02-05 subscription_active pro.month"])
  }

  @Test("an upgrade ends the entitlement of the product that it replaced")
  func upgrade() throws {
    let steps = [
      TestEvent.signedUpload(
        Self.period("1", signed: "2026-01-15", ["isUpgraded": true]),
        Self.period("2", "max.month", on: "2026-01-15", until: "2026-02-15", signed: "2026-01-15"),
        user: "alice")
    ]
    try expectEqual(
      Self.entitlements(
        steps, app: Self.app([Entitlement(name: "pro", patterns: ["pro.*"])])),
      ["pro false 2026-01-15 expired pro.month"])
  }

  @Test("an upgrade with a credit ends the entitlement like one without, and is not a refund")
  func upgradeWithCredit() throws {
    let steps = [
      TestEvent.signedUpload(
        Self.period(
          "1", signed: "2026-01-15",
          [
            "isUpgraded": true, "price": 9990, "currency": "EUR",
            "revocationDate": instant("2026-01-15"), "revocationPercentage": 60_000,
          ]),
        Self.period("2", "max.month", on: "2026-01-15", until: "2026-02-15", signed: "2026-01-15"),
        user: "alice")
    ]
    let app = Self.app([Entitlement(name: "pro", patterns: ["pro.*"])])
    try expectEqual(Self.entitlements(steps, app: app), ["pro false 2026-01-15 expired pro.month"])
    let fixture = try LedgerFixture()
    try fixture.append([app] + steps)
    let purchases = try UserQuestions(fixture).purchases(of: "alice", at: "2026-01-20")
    expectEqual(
      purchases.map { $0.texts("state", "refunded_amount") },
      [
        ["owned", nil], ["upgraded", "5.99"],
      ])
  }

  @Test("a subscription belongs to its first user alone, whoever uploads its renewals")
  func otherUser() throws {
    let steps = [
      TestEvent.signedUpload(Self.period("1"), user: "alice"),
      .signedUpload(
        Self.period("2", on: "2026-02-05", until: "2026-03-05", signed: "2026-02-05"), user: "bob"),
    ]
    try expectEqual(Self.entitlements(steps, of: "bob", at: "2026-02-20"), [])
    try expectEqual(
      Self.entitlements(steps, of: "alice", at: "2026-02-20"),
      [
        "pro true 2026-03-05 subscription_active pro.month"
      ])
  }

  @Test("receipts give entitlements as signed transactions do")
  func receipts() throws {
    let row = row(
      "1", line: "w1", product: "pro.month", on: "2026-01-05",
      ["expires_date_ms": date("2026-02-05")])
    let steps = [TestEvent.upload(reply(row, requested: "2026-01-06"), user: "alice")]
    try expectEqual(Self.entitlements(steps), ["pro true 2026-02-05 subscription_active pro.month"])
  }

  // MARK: Other purchases

  private static func sold(_ product: String, _ members: Members = [:]) -> [TestEvent] {
    [.signedUpload(signed("9", product: product, signed: "2026-01-10", members), user: "alice")]
  }

  @Test(
    "a one-time purchase entitles for good, unless it was refunded or is a consumable",
    arguments: [
      ("life", [:], ["pro true - purchase life"]),
      ("season", [:], ["pro true - purchase season"]),
      // No type is declared: a consumable counts only if its pattern is the whole product id.
      ("gift", [:], ["pro true - purchase gift"]),
      ("pro.lifetime", [:], ["pro false - type_not_declared pro.lifetime"]),
      ("coins", [:], []), ("other", [:], []),
      (
        "life", ["revocationDate": instant("2026-01-09")],
        ["pro false 2026-01-09 refunded life"]
      ),
      (
        "life",
        ["revocationDate": instant("2026-01-09"), "inAppOwnershipType": "FAMILY_SHARED"],
        ["pro false 2026-01-09 revoked life"]
      ),
      ("life", ["inAppOwnershipType": "FAMILY_SHARED"], ["pro true - purchase life"]),
      ("life", ["environment": "Sandbox"], ["~pro true - purchase life"]),
    ] as [(String, Members, [String])])
  func once(_ product: String, _ members: Members, _ lines: [String]) throws {
    try expectEqual(Self.entitlements(Self.sold(product, members)), lines)
  }

  @Test(
    "where the app declares no type, the type that the App Store signed counts",
    arguments: [
      // The declared and the signed type; the result for a whole id, and for the beginning of an
      // id.
      (nil, "Consumable", [], []),
      (nil, "Non-Consumable", ["pro true - purchase gift"], ["all true - purchase gift"]),
      (
        nil, "Non-Renewing Subscription", ["pro true - purchase gift"], ["all true - purchase gift"]
      ),
      (nil, "Something New", ["pro true - purchase gift"], ["all false - type_not_declared gift"]),
      (nil, nil, ["pro true - purchase gift"], ["all false - type_not_declared gift"]),
      (.nonConsumable, "Consumable", ["pro true - purchase gift"], ["all true - purchase gift"]),
      (.consumable, "Non-Consumable", [], []),
    ] as [(ProductType?, String?, [String], [String])])
  func signedTypes(_ declared: ProductType?, _ name: String?, _ whole: [String], _ part: [String])
    throws
  {
    let app = Self.app(
      [Self.pro, Entitlement(name: "all", patterns: ["gi*"])],
      products: declared.map { [("gift", $0)] } ?? [])
    let type: Members = name.map { ["type": JSONText(stringLiteral: $0)] } ?? [:]
    let steps = Self.sold("gift", type)
    try expectEqual(Self.entitlements(steps, app: app), whole + part)
    // A later statement without a type changes nothing.
    let later = TestEvent.notification(
      "CONSUMPTION_REQUEST", uuid: "n", signed("9", product: "gift", signed: "2026-01-11"))
    try expectEqual(Self.entitlements(steps + [later], app: app), whole + part)
  }

  @Test(
    "the longest entitlement counts, for good before any time, and the newest reason where none is active"
  )
  func best() throws {
    let subscription = TestEvent.signedUpload(Self.period("1"), user: "alice")
    try expectEqual(
      Self.entitlements([subscription] + Self.sold("life")), ["pro true - purchase life"])
    let refunded = Self.sold("life", ["revocationDate": instant("2026-01-09")])
    try expectEqual(
      Self.entitlements([subscription] + refunded),
      [
        "pro true 2026-02-05 subscription_active pro.month"
      ])
    try expectEqual(
      Self.entitlements([subscription] + refunded, at: "2026-03-01"),
      [
        "pro false 2026-02-05 expired pro.month"
      ])
    try expectEqual(
      Self.entitlements(
        [subscription] + Self.sold("pro.lifetime"), at: "2026-03-01"),
      [
        "pro false - type_not_declared pro.lifetime"
      ])
  }

  @Test("entitlements come in the order of the app's list, each with its evidence")
  func orderAndEvidence() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app([
        Entitlement(name: "z", patterns: ["life"]), Entitlement(name: "none", patterns: ["x"]),
        Entitlement(name: "a", patterns: ["pro.*"]),
      ]), .signedUpload(Self.period("1"), signed("9", product: "life"), user: "alice"),
      .notification(
        "DID_CHANGE_RENEWAL_STATUS", uuid: "n", Self.period("1", signed: "2026-01-08"),
        renewal: Self.renewal("2026-01-08", ["autoRenewStatus": 0])),
    ])
    let questions = try UserQuestions(fixture)
    let answer = try questions.answer(.entitlements, about: "alice", at: "2026-01-20")
    let list = try #require(answer["entitlements"]?.arrayValue)
    expectEqual(list.map { $0["name"]?.stringValue }, ["z", "a"])
    expectEqual(list.map { $0["original_transaction_id"]?.stringValue }, ["9", "1"])
    expectEqual(list.map { $0["positions"] }, [.array([.number("1")]), .array([.number("2")])])
    expectEqual(answer.texts("position"), ["2"])
  }

  @Test("a changed declaration counts at once, and without one there is no response")
  func declarations() throws {
    let fixture = try LedgerFixture()
    try fixture.append([Self.app([])] + Self.sold("life"))
    let questions = try UserQuestions(fixture)
    func lines() throws -> [String] {
      try Self.lines(try questions.answer(.entitlements, about: "alice", at: "2026-01-20"))
    }
    try expectEqual(lines(), [])
    try fixture.append([Self.app([Self.pro])])
    try questions.live.catchUp()
    try expectEqual(lines(), ["pro true - purchase life"])
  }

  @Test("an unknown user, a user without purchases and an app without entitlements have one shape")
  func shape() throws {
    let fixture = try LedgerFixture()
    try fixture.append([Self.app([Self.pro]), .upload(user: "bob")] + Self.sold("life"))
    let questions = try UserQuestions(fixture)
    let unknown = try questions.answer(.entitlements, about: "nobody")
    expectEqual(unknown["entitlements"], .array([]))
    expectEqual(unknown["sandbox"], .object([.init("entitlements", .array([]))]))
    try expectEqual(questions.answer(.entitlements, about: "bob"), unknown)
    let none = try #require(UUID16("2e7c2f4a-9a0b-4c5d-8e6f-112233445566"))
    let other = try questions.answer(.entitlements, about: "alice", of: none)
    expectEqual(other["entitlements"], .array([]))
    guard case .object(let one) = unknown, case .object(let two) = other else {
      Issue.record("no objects")
      return
    }
    expectEqual(one.map(\.key), two.map(\.key))
  }

  @Test("a user with more purchases than one person has gets no response")
  func tooMany() throws {
    let fixture = try LedgerFixture()
    let rows = (0...10_000).map { row("\($0)") }
    try fixture.append([
      Self.app([Self.pro]),
      .upload(reply(rows: Array(rows.prefix(10_000))), user: "alice"),
    ])
    let questions = try UserQuestions(fixture)
    try expectEqual(Self.lines(try questions.answer(.entitlements, about: "alice")), [])
    try fixture.append([.upload(reply(rows[10_000]), user: "alice", receipt: "second")])
    try questions.live.catchUp()
    let answer = try questions.live.answer(
      .entitlements, about: "alice", of: questions.family, atMs: 0)
    guard case .tooManyPurchases = answer else {
      Issue.record("there is an answer")
      return
    }
    try expectEqual(questions.purchases(of: "alice", limit: 100).count, 100)
  }
}
