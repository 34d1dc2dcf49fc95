// What events changed, in order and in pages: the source of webhooks.
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct ChangeQueriesTests {
  private static let app = TestEvent.app(
    AppRegistered(
      appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app"], products: []))

  private static func sold(
    _ id: String, of original: String? = nil, line: String? = nil, on time: String,
    signed time2: String, _ members: Members = [:]
  ) -> JSONText {
    signed(
      id, of: original, line: line, product: "pro", on: time, signed: time2,
      merging: [("price", 9990), ("currency", "EUR"), ("storefront", "DEU")]
        + members.map { ($0.key, $0.value) })
  }

  /// A trial, its first paid period, a refund of that, its reversal, and a forged upload.
  private static let story: [TestEvent] = [
    app,
    .signedUpload(
      sold(
        "1", line: "11", on: "2026-01-01", signed: "2026-01-01",
        ["offerType": 1, "offerDiscountType": "FREE_TRIAL"]),
      sold("9", on: "2026-01-02", signed: "2026-01-02"), user: "anna"),
    .notification(
      "DID_RENEW", uuid: "a",
      sold("2", of: "1", line: "12", on: "2026-01-08", signed: "2026-01-08")),
    .notification(
      "REFUND", uuid: "b",
      sold(
        "2", of: "1", line: "12", on: "2026-01-08", signed: "2026-01-09",
        ["revocationDate": instant("2026-01-09"), "revocationReason": 1])),
    .notification(
      "REFUND_REVERSED", uuid: "c",
      sold("2", of: "1", line: "12", on: "2026-01-08", signed: "2026-01-10")),
    .signedUpload(
      [SignedObjectPlan(sold("7", on: "2026-01-02", signed: "2026-01-02"))], user: "eve",
      fraud: .signatureInvalid),
    .prices(["coins - EUR 1.99 2026-01-01"]),
  ]

  /// `1.0 sale 11`, a line for each change.
  private func text(_ changes: [LedgerChange]) -> [String] {
    changes.map { change in
      let what =
        switch change.content {
        case .sale(let sale, let isRenewal): "\(isRenewal ? "renewal" : "sale") \(sale.saleKey)"
        case .line(let sale, let line): "\(line.line) \(sale.saleKey) \(line.quantity)"
        case .subscription(let subscription, let turn):
          "\(turn.kind) \(subscription.originalTransactionID) \(turn.expirationIntent ?? "")"
        case .fraud(let fraud): "\(fraud.reason) \(fraud.userIdentifier ?? "")"
        }
      return "\(change.point) \(what)"
    }
  }

  private static let expected = [
    "1.0 sale 11", "1.1 sale 9", "2.0 renewal 12", "3.0 Return 12 -1", "4.0 Reversal 12 1",
    "5.0 signature_invalid eve",
  ]

  @Test("each event's lines and frauds come once, in order, whatever the size of a page")
  func pages() throws {
    let fixture = try LedgerFixture()
    try fixture.append(Self.story)
    let live = try LiveProjections(fixture.directory)
    for limit in 1...7 {
      var point = ChangePoint(0)
      var seen: [String] = []
      while point.position < live.position {
        let page = try live.changes(from: point, limit: limit)
        #expect(page.changes.count <= limit)
        #expect(page.next > point)
        seen += text(page.changes)
        point = page.next
      }
      expectEqual(seen, Self.expected)
    }
    let again = try live.changes(from: ChangePoint(1, 1), limit: 1)
    expectEqual(text(again.changes), ["1.1 sale 9"])
    expectEqual(again.changes.first?.appFamilyID, TestEvent.signedFamily)
    let end = try live.changes(from: ChangePoint(live.position), limit: 1)
    #expect(end.changes.isEmpty && end.next == ChangePoint(live.position))
  }

  @Test("events folded one by one give the same changes as a rebuild")
  func steps() throws {
    let fixture = try LedgerFixture()
    let live = try LiveProjections(fixture.directory)
    var point = ChangePoint(0)
    var seen: [String] = []
    for event in Self.story {
      try fixture.append([event])
      try live.catchUp()
      let page = try live.changes(from: point, limit: 100)
      seen += text(page.changes)
      point = page.next
    }
    expectEqual(seen, Self.expected)
    _ = try fixture.rebuilt()
    try live.catchUp()
    expectEqual(text(try live.changes(from: ChangePoint(0), limit: 100).changes), Self.expected)
  }

  /// A period of the subscription 1, from one day of January to another.
  private static func period(_ id: String, _ start: String, _ end: String) -> JSONText {
    sold(
      id, of: "1", line: "1\(id)", on: "2026-01-\(start)", signed: "2026-01-\(start)",
      ["expiresDate": instant("2026-01-\(end)"), "type": "Auto-Renewable Subscription"])
  }

  private static func renewal(_ signed: String, _ members: Members = [:]) -> JSONText {
    .object(
      [
        ("originalTransactionId", "1"), ("environment", "Production"),
        ("signedDate", instant("2026-01-\(signed)")),
      ] + members.map { ($0.key, $0.value) })
  }

  /// A renewal that fails, its grace period, a recovery, an end by the customer; then the same end from a reply.
  private static let lapses: [TestEvent] = [
    app,
    .notification("SUBSCRIBED", uuid: "a", period("1", "01", "08"), renewal: renewal("01")),
    .notification(
      "DID_FAIL_TO_RENEW", subtype: "GRACE_PERIOD", uuid: "b", period("1", "01", "08"),
      renewal: renewal(
        "08", ["expirationIntent": 2, "gracePeriodExpiresDate": instant("2026-01-12")])),
    .notification(
      "DID_CHANGE_RENEWAL_STATUS", uuid: "c", period("1", "01", "08"),
      renewal: renewal(
        "09", ["expirationIntent": 2, "gracePeriodExpiresDate": instant("2026-01-12")])),
    .notification(
      "GRACE_PERIOD_EXPIRED", uuid: "d", period("1", "01", "08"),
      renewal: renewal("12", ["expirationIntent": 2])),
    .notification("DID_RENEW", uuid: "e", period("2", "14", "21"), renewal: renewal("14")),
    .notification(
      "EXPIRED", subtype: "VOLUNTARY", uuid: "f", period("2", "14", "21"),
      renewal: renewal("21", ["expirationIntent": 1])),
    .notification(
      "DID_CHANGE_RENEWAL_PREF", uuid: "g", period("2", "14", "21"),
      renewal: renewal("22", ["expirationIntent": 1])),
    .notification("EXPIRED", uuid: "h", period("2", "14", "21")),
    .notification("EXPIRED", uuid: "i", nil, renewal: renewal("20", ["expirationIntent": 1])),
  ]

  private static let turns = [
    "1.0 sale 11", "2.0 gracePeriod 1 2", "4.0 expiry 1 2", "5.0 renewal 12", "6.0 expiry 1 1",
    "8.0 expiry 1 1", "9.0 expiry 1 1",
  ]

  @Test(
    "a subscription changes once when an end or a grace period is first reported, and with each EXPIRED"
  )
  func lapses() throws {
    let fixture = try LedgerFixture()
    let live = try LiveProjections(fixture.directory)
    for event in Self.lapses {
      try fixture.append([event])
      try live.catchUp()
    }
    let changes = try live.changes(from: ChangePoint(0), limit: 100).changes
    expectEqual(text(changes), Self.turns)
    guard case .subscription(_, let grace)? = changes.dropFirst().first?.content else {
      Issue.record("no turn")
      return
    }
    expectEqual(grace.expiresAtMs, ms("2026-01-08"))
    expectEqual(grace.gracePeriodExpiresAtMs, ms("2026-01-12"))
    _ = try fixture.rebuilt()
    try live.catchUp()
    expectEqual(text(try live.changes(from: ChangePoint(0), limit: 100).changes), Self.turns)
  }

  @Test("renewal information of replies changes a subscription too")
  func legacyLapse() throws {
    let fixture = try LedgerFixture()
    func shown(_ requested: String, _ pending: JSONText = .array([])) -> JSONText {
      reply(
        row("1", line: "11", ["expires_date_ms": date("2026-01-20")]), requested: requested,
        also: ["pending_renewal_info": pending])
    }
    let ended = JSONText.array([
      .object([
        ("original_transaction_id", "1"), ("expiration_intent", "1"), ("auto_renew_status", "0"),
      ])
    ])
    try fixture.append([
      Self.app, .upload(shown("2026-01-10")), .verify(1, shown("2026-01-21", ended)),
      .verify(1, shown("2026-01-22", ended)),
    ])
    let live = try LiveProjections(fixture.directory)
    expectEqual(
      text(try live.changes(from: ChangePoint(0), limit: 10).changes),
      ["2.0 sale 11", "3.0 expiry 1 1"])
  }

  @Test("a sale of a reply has who bought, where and for how much; a return has what was paid back")
  func details() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .prices(["coins - EUR 1.99 2026-01-01"]),
      .upload(reply(row("1", line: "11"), requested: "2026-01-06"), user: "anna"),
      .verify(
        2,
        reply(
          row(
            "1", line: "11",
            ["cancellation_date_ms": date("2026-01-07"), "cancellation_reason": "0"]),
          requested: "2026-01-08")),
    ])
    let live = try LiveProjections(fixture.directory)
    let changes = try live.changes(from: ChangePoint(0), limit: 10).changes
    expectEqual(text(changes), ["3.0 sale 11", "4.0 Return 11 -1"])
    guard case .sale(let sale, _)? = changes.first?.content,
      case .line(_, let line)? = changes.last?.content
    else {
      Issue.record("no sale")
      return
    }
    #expect(sale.userIdentifier == "anna" && sale.countryCode == "DE")
    #expect(sale.lines.first?.amountMicros == 1_990_000 && line.amountMicros == -1_990_000)
  }

  // MARK: Renewals, ids and backfills

  /// Periods of one subscription: what each has, and the expected changes.
  private static let periods: [(name: String, periods: [(String, Members)], told: [String])] = [
    ("the first purchase was never seen", [("2", ["transactionReason": "RENEWAL"])], ["renewal 2"]),
    (
      "the App Store signed a purchase: a start, an upgrade, a return after a pause",
      [("1", ["transactionReason": "PURCHASE"]), ("2", ["transactionReason": "PURCHASE"])],
      ["sale 1", "sale 2"]
    ),
    (
      "the App Store signed no reason that is known",
      [("1", [:]), ("2", ["transactionReason": "?"]), ("3", ["transactionReason": 7])],
      ["sale 1", "renewal 2", "renewal 3"]
    ),
    (
      "the period before was upgraded, and a renewal follows",
      [("1", ["isUpgraded": true]), ("2", [:]), ("3", [:])], ["sale 1", "sale 2", "renewal 3"]
    ),
  ]

  @Test(arguments: periods.indices)
  func whatTheAppStoreSignedAsARenewalIsOneAndAnUpgradeIsNot(_ place: Int) throws {
    let fixture = try LedgerFixture()
    let story = Self.periods[place]
    try fixture.append(
      [Self.app]
        + story.periods.map { id, members in
          .signedUpload(
            Self.sold(
              id, of: "1", line: id, on: "2026-01-0\(id)", signed: "2026-01-0\(id)", members))
        })
    let live = try LiveProjections(fixture.directory)
    let told = text(try live.changes(from: ChangePoint(0), limit: 10).changes)
    expectEqual(told.map { String($0.drop { $0 != " " }.dropFirst()) }, story.told, "\(story.name)")
  }

  private static func identities(_ events: [TestEvent]) throws -> [[String]] {
    let fixture = try LedgerFixture()
    try fixture.append(events)
    let live = try LiveProjections(fixture.directory)
    return try live.changes(from: ChangePoint(0), limit: 100).changes.map(\.identity)
  }

  @Test("each change has an identity of its own, independent of its position and its user")
  func identities() throws {
    for story in [Self.story, Self.lapses] {
      var known = try Self.identities(story)
      #expect(Set(known).count == known.count && !known.contains([]))
      // A fraud's identity includes when its upload was recorded, which depends on the position in this test.
      known.removeAll { $0.first == "fraud" }
      let padding = TestEvent.signedUpload(
        Self.sold("900", on: "2026-01-01", signed: "2026-01-01"), user: "zoe",
        at: "2026-01-09")
      #expect(Set(try Self.identities([Self.app, padding] + story)).isSuperset(of: known))
    }
    func sale(of user: String?) throws -> [[String]] {
      try Self.identities([
        Self.app,
        .signedUpload(Self.sold("1", on: "2026-01-01", signed: "2026-01-01"), user: user),
      ])
    }
    try expectEqual(sale(of: "anna"), sale(of: nil))
    // A second Return of the same date is another one.
    func refunded(_ percentage: JSONText, signed: String, uuid: String) -> TestEvent {
      .notification(
        "REFUND", uuid: uuid,
        Self.sold(
          "1", on: "2026-01-01", signed: signed,
          ["revocationDate": instant("2026-01-09"), "revocationPercentage": percentage]))
    }
    let refunds = try Self.identities([
      Self.app, .signedUpload(Self.sold("1", on: "2026-01-01", signed: "2026-01-01")),
      refunded(25_000, signed: "2026-01-09", uuid: "a"),
      refunded(50_000, signed: "2026-01-10", uuid: "b"),
    ])
    #expect(refunds.count == 3 && Set(refunds).count == 3)
    // Simultaneous uploads are several frauds.
    let frauds = try Self.identities([
      Self.app, Self.story[5], .prices(["coins - EUR 1.99 2026-01-01"]), Self.story[5],
    ])
    #expect(frauds.count == 2 && Set(frauds).count == 2)
  }

  @Test("a notification that the log holds twice gives changes with one identity")
  func storedTwice() throws {
    func ended(_ isFetched: Bool) -> TestEvent {
      .notification(
        "EXPIRED", subtype: "VOLUNTARY", uuid: "a", Self.period("1", "01", "08"),
        renewal: Self.renewal("08", ["expirationIntent": 1]), isFetched: isFetched)
    }
    let identities = try Self.identities([
      Self.app, .signedUpload(Self.period("1", "01", "08")), ended(false), ended(true),
    ])
    expectEqual(identities.count, 3)
    expectEqual(identities[1], identities[2])
  }

  @Test("an event from a synchronization or an import is a backfill, and no other is")
  func backfill() throws {
    func told(_ event: TestEvent) throws -> [Bool] {
      let fixture = try LedgerFixture()
      try fixture.append([Self.app, event])
      let live = try LiveProjections(fixture.directory)
      return try live.changes(from: ChangePoint(0), limit: 10).changes.map(\.isBackfill)
    }
    let period = Self.period("1", "01", "08")
    for (event, isBackfill) in [
      (TestEvent.signedUpload(period), false), (.signedUpload(period, line: "x"), true),
      (.notification("SUBSCRIBED", uuid: "a", period), false),
      (.notification("SUBSCRIBED", uuid: "a", period, line: "x"), true),
      (.notification("SUBSCRIBED", uuid: "a", period, isFetched: true), true),
      // The fixture's receipts come by import.
      (.fetched(period), true), (.upload(reply(row("1"), requested: "2026-01-06")), true),
    ] { try expectEqual(told(event), [isBackfill], "\(event)") }
  }
}
