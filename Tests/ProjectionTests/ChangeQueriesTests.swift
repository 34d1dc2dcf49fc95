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
