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
      #expect(seen == Self.expected)
    }
    let again = try live.changes(from: ChangePoint(1, 1), limit: 1)
    #expect(text(again.changes) == ["1.1 sale 9"])
    #expect(again.changes.first?.appFamilyID == TestEvent.signedFamily)
    let end = try live.changes(from: ChangePoint(live.position), limit: 1)
    #expect(end.changes.isEmpty && end.next == ChangePoint(live.position))
  }

  @Test("events that are folded one by one tell the same as a rebuild")
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
    #expect(seen == Self.expected)
    _ = try fixture.rebuilt()
    try live.catchUp()
    #expect(text(try live.changes(from: ChangePoint(0), limit: 100).changes) == Self.expected)
  }

  /// A period of the subscription 1 that begins on a day of January and ends on another.
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
    "a subscription turns once when an end or a grace period is first said, and with each EXPIRED")
  func lapses() throws {
    let fixture = try LedgerFixture()
    let live = try LiveProjections(fixture.directory)
    for event in Self.lapses {
      try fixture.append([event])
      try live.catchUp()
    }
    let changes = try live.changes(from: ChangePoint(0), limit: 100).changes
    #expect(text(changes) == Self.turns)
    guard case .subscription(_, let grace)? = changes.dropFirst().first?.content else {
      Issue.record("no turn")
      return
    }
    #expect(grace.expiresAtMs == ms("2026-01-08"))
    #expect(grace.gracePeriodExpiresAtMs == ms("2026-01-12"))
    _ = try fixture.rebuilt()
    try live.catchUp()
    #expect(text(try live.changes(from: ChangePoint(0), limit: 100).changes) == Self.turns)
  }

  @Test("renewal information of replies turns a subscription too")
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
    #expect(
      text(try live.changes(from: ChangePoint(0), limit: 10).changes)
        == ["2.0 sale 11", "3.0 expiry 1 1"])
  }

  @Test("a sale of a reply tells who bought, where and for how much; a return what went back")
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
    #expect(text(changes) == ["3.0 sale 11", "4.0 Return 11 -1"])
    guard case .sale(let sale, _)? = changes.first?.content,
      case .line(_, let line)? = changes.last?.content
    else {
      Issue.record("no sale")
      return
    }
    #expect(sale.userIdentifier == "anna" && sale.countryCode == "DE")
    #expect(sale.lines.first?.amountMicros == 1_990_000 && line.amountMicros == -1_990_000)
  }
}
