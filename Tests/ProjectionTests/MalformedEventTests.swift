// Events that deviate from the catalogue: the fold records them as exceptions and continues.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct MalformedEventTests {
  private static let family: JSONText = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
  private static let receiptID: JSONText = "11111111-2222-5333-8444-555555555555"
  private static let time: JSONText = "2026-01-10T00:00:00.000Z"

  private static let signedObject: JSONText = .object([
    ("outcome", "valid"), ("payload", signed("77")), ("signature", "AA"),
    ("header", JSONText(raw: "{}")),
  ])

  /// The values that replace a member.
  private static let values: [JSONText] = [
    .absent, .null, true, 5, -1, JSONText(raw: "1.5"), JSONText(raw: "99999999999999999999"), "x",
    "", [], JSONText(raw: "{}"),
  ]
  private static let strings: [JSONText] = ["x", ""]
  private static let integers: [JSONText] = [5, -1]

  /// A member with a good value, and which of `values` are good too.
  private struct Member {
    let name: String
    let good: JSONText
    let alsoGood: [JSONText]
    /// The member that is reported if this one is absent.
    let faultWithout: String

    init(
      _ name: String, _ good: JSONText, _ alsoGood: [JSONText] = [], faultWithout: String? = nil
    ) {
      (self.name, self.good, self.alsoGood) = (name, good, alsoGood)
      self.faultWithout = faultWithout ?? name
    }
  }

  private static let root = String(repeating: "0", count: 64)

  /// Each type's members in the catalogue's order. Position 5 holds neither an upload, nor a verification, nor a page.
  private static let catalogue: [(type: String, members: [Member])] = [
    (
      "app.registered",
      [
        Member("app_family_id", family), Member("name", "App", strings),
        Member("bundle_ids", ["app"], [[]]),
        Member("products", ["coins": "consumable"], [JSONText(raw: "{}")]),
        Member("app_apple_id", 7, [.absent, 5]),
        Member("entitlements", ["pro": ["coins", "pro.*"]], [.absent, JSONText(raw: "{}")]),
      ]
    ),
    (
      "receipt.uploaded",
      [
        Member("receipt_id", receiptID), Member("app_family_id", family),
        Member("style", "unified"), Member("bundle_id", "app", strings),
        Member("receipt_sha256", "00", strings), Member("occurred_at", time),
        Member("via", "import"), Member("line", 1, [.absent] + integers),
        Member("line_sha256", "00", [.absent] + strings),
        Member("country_code", "DE", [.absent] + strings),
        Member("identifier_for_vendor", "v", [.absent] + strings),
        Member("user_identifier", "u", [.absent] + strings),
        Member("ip_address", "10.0.0.1", [.absent] + strings),
        Member("metadata", ["a": 1], [.absent, JSONText(raw: "{}")]),
        Member("receipt", "cmVjZWlwdA==", strings),
      ]
    ),
    (
      "receipt.verified",
      [
        Member("upload", 1), Member("authority", "app_store"), Member("outcome", "valid"),
        Member("environment", "Production", [.absent] + strings),
        Member("status", 0, [.absent] + integers), Member("reason", "r", [.absent] + strings),
        Member("attempt", 1, integers), Member("endpoint", "production", [.absent]),
        Member("mismatch", "none", [.absent] + strings), Member("host", "h", [.absent, "x"]),
        Member("via", .absent, [.absent]), Member("occurred_at", time),
        Member("reply_base64", .absent, [.absent] + strings),
        Member("reply_of", .absent, [.absent]), Member("reply", reply(row("1")), values),
      ]
    ),
    (
      "transactions.received",
      [
        Member("upload_id", receiptID), Member("app_family_id", family),
        Member("occurred_at", time), Member("via", "import"),
        Member("line", 1, [.absent] + integers), Member("line_sha256", "00", [.absent] + strings),
        Member("country_code", "DE", [.absent] + strings),
        Member("identifier_for_vendor", "v", [.absent] + strings),
        Member("user_identifier", "u", [.absent] + strings),
        Member("ip_address", "10.0.0.1", [.absent] + strings),
        Member("metadata", ["a": 1], [.absent, JSONText(raw: "{}")]),
        Member("outcome", "valid"), Member("fraud_reason", .absent, [.absent] + strings),
        Member("transactions", [signedObject]), Member("app_transaction", .absent, [.absent]),
      ]
    ),
    (
      "notification.received",
      [
        Member("notification_uuid", receiptID, strings), Member("app_family_id", family),
        Member("bundle_id", "app", strings), Member("environment", "Production", strings),
        Member("occurred_at", time), Member("via", "http"),
        Member("line", .absent, [.absent] + integers),
        Member("line_sha256", .absent, [.absent] + strings), Member("type", "TEST", strings),
        Member("subtype", .absent, [.absent] + strings),
        Member("transaction", .absent, [.absent]), Member("renewal", .absent, [.absent]),
        Member("notification", signedObject),
      ]
    ),
    (
      "transactions.fetched",
      [
        Member("app_family_id", family), Member("bundle_id", "app", strings),
        Member("environment", "Production"), Member("occurred_at", time),
        Member("call", "history"), Member("host", "h", ["x"]),
        Member("transaction_id", "77", [.absent] + strings), Member("from", time, [.absent]),
        Member("to", time, [.absent]), Member("revision", "r", [.absent] + strings),
        Member("error_code", 4_040_010, [.absent] + integers), Member("has_more", true, [true]),
        Member("transactions", [signedObject], [[]]), Member("renewals", [signedObject], [[]]),
      ]
    ),
    (
      "signatures.accepted",
      [
        Member("page", 6), Member("occurred_at", time),
        Member(
          "transactions",
          [["index": 0, "outcome": "valid", "root_sha256": JSONText(stringLiteral: root)]], [[]]),
        Member("renewals", [], [[]]),
      ]
    ),
    (
      "prices.declared",
      [
        Member("source", "p.csv", strings), Member("source_sha256", "00", strings),
        Member("entries", [], [[]]),
      ]
    ),
    (
      "rates.declared",
      [
        Member("source", "r.csv", strings), Member("source_sha256", "00", strings),
        Member("days", [], [[]]),
      ]
    ),
    ("prices.withdrawn", [Member("position", 7)]), ("rates.withdrawn", [Member("position", 7)]),
    (
      "trust.declared",
      [
        Member("production_host", "h", ["x"]), Member("sandbox_host", "h", ["x"]),
        Member("roots_sha256", [], [[]]), Member("intermediates", [], [[]]),
        Member("local_testing_signers_sha256", [], [[]]),
      ]
    ),
    (
      "data.redacted",
      [
        Member("erasure", 0, [5]), Member("part", 1), Member("parts", 2, [5]),
        Member("reason", "user_request", ["x"]),
        Member(
          "lines",
          [["position": 1, "sha256": JSONText(stringLiteral: String(repeating: "0", count: 64))]],
          [[]]),
      ]
    ),
    (
      // Without `request` it is a list.
      "data.redacted",
      [
        Member("request", "5b3e4a0c-1d2f-4e3a-9b8c-7d6e5f4a3b2c", faultWithout: "parts"),
        Member("scope", "user"), Member("reason", "user_request", ["x"]),
      ]
    ),
    (
      "merged.from",
      [
        Member("before", "2026-01-10T00:00:00.000Z"), Member("chosen_by", "operator"),
        Member(
          "ledgers",
          [
            [
              "origin": "a", "id": "b", "first": 0, "size": 1,
              "root": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            ]
          ], [[]]),
        Member("events", 1, [5]), Member("erasures", [["origin": "a", "position": 1]], [[]]),
      ]
    ),
  ]

  private static var history: [TestEvent] {
    [
      LiveProjectionsTests.app([("coins", .consumable)]),
      .upload(reply(row("1")), user: "u1"),
      .upload(receipt: "b"), .upload(receipt: "c"),
      LiveProjectionsTests.app([("coins", .consumable)]),
    ]
  }

  /// Follows the event in the test of all members: a page with an object that may become good.
  private static let page = TestEvent.fetched([
    SignedObjectPlan(signed("7"), .invalid(reason: "untrusted_root"))
  ])

  private static func event(
    _ type: String, _ members: [Member], _ change: (String, JSONText)?
  ) -> TestEvent {
    .raw(
      type: type,
      .object(
        members.map { ($0.name, change?.0 == $0.name ? change?.1 ?? .absent : $0.good) }))
  }

  private struct Plan {
    var events: [TestEvent] = []
    /// Positions by the table that holds them.
    var folded: [String: [Int]] = [:]
    var details: [String: Int] = [:]
  }

  /// Each member of each type with each value in its place.
  private static func plan() -> Plan {
    var plan = Plan()
    var position = (history + [page]).reduce(0) { $0 + $1.count }
    for (type, members) in catalogue {
      for member in members {
        for value in values {
          plan.events.append(event(type, members, (member.name, value)))
          if member.alsoGood.contains(value) {
            plan.folded[type, default: []].append(position)
          } else {
            // A null does not make it an erasure's list either: it is a bad request.
            let isWithout = value == .absent || value == .null && type != "data.redacted"
            let detail = "\(type) \(isWithout ? member.faultWithout : member.name)"
            plan.details[detail] = min(plan.details[detail] ?? .max, position)
          }
          position += 1
        }
      }
    }
    return plan
  }

  private static func positions(_ sql: String, _ database: Database) throws -> [Int] {
    let rows = try database.prepare(sql)
    var result: [Int] = []
    while try rows.step() { result.append(Int(rows.integer(0))) }
    return result
  }

  @Test func eachMemberRemovedOrMistypedIsAnExceptionAndTheFoldPassesOn() throws {
    let plan = Self.plan()
    let fixture = try LedgerFixture()
    try fixture.append(Self.history + [Self.page])
    _ = try fixture.current()
    var (start, middle) = (0, 0)
    while start < plan.events.count {
      let end = min(start + 150, plan.events.count)
      try fixture.append(Array(plan.events[start..<end]))
      _ = try fixture.current()
      if start == 150 { middle = fixture.eventCount }
      start = end
    }
    let database = try fixture.current()
    #expect(fixture.notices.isEmpty, "it was caught up, not rebuilt")
    let rows = try database.prepare(
      "SELECT detail, position FROM exception_view WHERE exception = 'malformed_event'")
    var details: [String: Int] = [:]
    while try rows.step() { details[rows.text(0)] = Int(rows.integer(1)) }
    expectEqual(details, plan.details)
    for (type, sql) in [
      (
        "receipt.uploaded",
        "SELECT position FROM uploads WHERE position > 5 AND receipt IS NOT NULL ORDER BY 1"
      ),
      ("transactions.received", "SELECT position FROM signed_uploads ORDER BY 1"),
      ("notification.received", "SELECT position FROM notifications ORDER BY 1"),
      ("transactions.fetched", "SELECT position FROM fetched_pages WHERE position > 6 ORDER BY 1"),
      ("signatures.accepted", "SELECT position FROM signature_acceptances ORDER BY 1"),
      ("receipt.verified", "SELECT position FROM verifications WHERE position > 5 ORDER BY 1"),
      ("prices.declared", "SELECT position FROM declarations WHERE type = 0 ORDER BY 1"),
      ("rates.declared", "SELECT position FROM declarations WHERE type = 1 ORDER BY 1"),
      ("data.redacted", "SELECT position FROM redactions ORDER BY 1"),
    ] {
      #expect(try Self.positions(sql, database) == plan.folded[type] ?? [], "\(type)")
    }
    try expectEqual(
      Self.positions("SELECT position FROM apps", database), [plan.folded["app.registered"]?.last])
    // The event that vouches for the snapshot comes last, so it moves no other.
    let snapshot = try fixture.createSnapshot(at: middle)
    let caughtUp = try fixture.current().dump()
    try expectEqual(fixture.rebuilt().dump(), caughtUp)
    try fixture.projector().restore(snapshot)
    try expectEqual(fixture.current().dump(), caughtUp)
  }

  @Test func anUploadHasFactsInVersion2AndAReceiptInVersion1() throws {
    let members = try #require(Self.catalogue.first { $0.type == "receipt.uploaded" }).members
    let facts = JSONText(raw: #"{"environment":"Production","purchases":[{"transaction_id":"7"}]}"#)
    let cases: [(version: Int, receipt: JSONText, isRight: Bool)] = [
      (1, "cmVjZWlwdA==", true), (1, facts, false), (2, facts, true), (2, "cmVjZWlwdA==", false),
      (2, .absent, false), (2, .null, false),
    ]
    for (version, receipt, isRight) in cases {
      let fixture = try LedgerFixture()
      let data = members.map { ($0.name, $0.name == "receipt" ? receipt : $0.good) }
      try fixture.append([
        LiveProjectionsTests.app([("coins", .consumable)]),
        .raw(type: "receipt.uploaded", version: version, .object(data)),
      ])
      let caughtUp = try fixture.current().dump()
      let details = try fixture.current().prepare(
        "SELECT detail FROM exception_view WHERE exception = 'malformed_event'")
      try expectEqual(details.step(), !isRight, "\(version) \(receipt.text)")
      #expect(isRight || details.text(0) == "receipt.uploaded receipt")
      try expectEqual(fixture.rebuilt().dump(), caughtUp)
    }
  }

  @Test func whatIsPassedOverIsNamedByNobody() throws {
    func verified(_ upload: JSONText, replyOf: JSONText = .absent) -> TestEvent {
      .raw(
        type: "receipt.verified",
        [
          "upload": upload, "authority": "app_store", "outcome": "valid", "status": 0, "attempt": 1,
          "endpoint": "production", "occurred_at": Self.time, "reply_of": replyOf,
          "reply": replyOf == .absent ? reply(row("9")) : .absent,
        ])
    }
    let steps: [(TestEvent, String?)] = [
      (verified(0), "upload"), (verified(2), "upload"), (verified(8), "upload"),
      (verified(100), "upload"), (verified(JSONText(raw: "9223372036854775807")), "upload"),
      (.raw(type: "receipt.uploaded", JSONText(raw: "{}")), nil), (verified(11), "upload"),
      (verified(3, replyOf: 1), "reply_of"), (verified(3, replyOf: 0), "reply_of"),
      (verified(3, replyOf: JSONText(raw: "15")), "reply_of"),
      (verified(3, replyOf: 99), "reply_of"),
      // Malformed in itself, and named by the next.
      (.raw(type: "receipt.verified", ["upload": 3, "reply": reply(row("8"))]), nil),
      (verified(3, replyOf: 17), "reply_of"),
      // Only its upload is wrong: the reply is valid.
      (verified(3, replyOf: 6), nil),
    ]
    let fixture = try LedgerFixture()
    try fixture.append(Self.history)
    for step in steps {
      try fixture.append([step.0])
      _ = try fixture.current()
    }
    let database = try fixture.current()
    let shown = try fixture.csv(ReportRequest(.exceptions), from: database)
      .split(separator: "\n").filter { $0.hasPrefix("malformed_event") }
    expectEqual(
      shown,
      [
        "malformed_event,,,,,,6,receipt.verified upload,,,",
        "malformed_event,,,,,,11,receipt.uploaded receipt_id,,,",
        "malformed_event,,,,,,13,receipt.verified reply_of,,,",
        "malformed_event,,,,,,17,receipt.verified authority,,,",
      ])
    try expectEqual(
      Self.positions("SELECT position FROM verifications WHERE position > 5", database), [19])
    try expectEqual(Self.positions("SELECT sale_key FROM sales ORDER BY id", database), [1, 9])
    try expectEqual(fixture.rebuilt().dump(), database.dump())
  }

  @Test func aPendingReceiptThatCannotBeReadKeepsNothingFromBeingFolded() throws {
    let fixture = try LedgerFixture()
    var plan = VerificationPlan(upload: 0, occurredAtMs: ms("2026-01-10"), reply: .none)
    plan.authority = .local
    plan.status = nil
    plan.endpoint = nil
    try fixture.append([.upload(receipt: "no receipt file"), .verified(plan)])
    let database = try fixture.current()
    try expectEqual(database.integer("SELECT count(*) FROM pending_receipts"), 0)
    try expectEqual(database.integer("SELECT count(*) FROM open_uploads"), 1)
  }

  @Test func aReportOfOneEnvironmentOrMonthCountsMalformedEventsToo() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.raw(type: "app.registered", JSONText(raw: "{}"))])
    let database = try fixture.current()
    var request = ReportRequest(.exceptions)
    request.environments = ["Sandbox"]
    #expect(try fixture.csv(request, from: database).contains("app.registered app_family_id"))
    #expect(try fixture.json(request, from: database).contains("malformed_event"))
  }

  @Test func aServerStartsAndAnswersBesideAMalformedEvent() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      .raw(type: "app.registered", JSONText(raw: "{}")),
      LiveProjectionsTests.app([("coins", .consumable)]),
    ])
    let live = try LiveProjections(fixture.directory)
    try fixture.append([
      .raw(type: "receipt.verified", JSONText(raw: "{}")), .upload(reply(row("1"))),
    ])
    try live.catchUp()
    expectEqual(live.position, 5)
    #expect(try live.answer(upload: 3) != nil)
    expectEqual(live.appFamilies.count, 1)
  }

  @Test(arguments: [("app.removed", 1), ("app.registered", 2)])
  func anEventOfALaterProgramEndsTheFold(_ type: String, _ version: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.append([.raw(type: type, version: version, JSONText(raw: "{}"))])
    let error = #expect(throws: ProjectionError.self) { try fixture.current() }
    guard case .event(0, let cause) = try #require(error) else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(cause.isOfLaterProgram)
  }
}
