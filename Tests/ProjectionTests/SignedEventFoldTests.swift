// The rows that the fold of signed transactions and notifications writes, and what queries and imports find in them.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

import Projections

@Suite struct SignedEventFoldTests {
  private static let app = LiveProjectionsTests.app([])

  private static func texts(_ sql: String, _ database: Database) throws -> [String] {
    let rows = try database.prepare(sql)
    var result: [String] = []
    while try rows.step() { result.append(rows.optionalText(0) ?? "-") }
    return result
  }

  /// The rows of a query after the events, folded from nothing; expects the same from a catch-up after each event.
  private static func texts(_ sql: String, after events: [TestEvent]) throws -> [String] {
    let fixture = try LedgerFixture()
    for event in events {
      try fixture.append([event])
      _ = try fixture.current()
    }
    let caughtUp = try texts(sql, try fixture.current())
    #expect(fixture.notices.isEmpty)
    try expectEqual(texts(sql, try fixture.rebuilt()), caughtUp)
    return caughtUp
  }

  private static func digest(_ line: String) -> SHA256Digest {
    Array(line.utf8).withUnsafeBytes { SHA256.hash($0) }
  }

  // MARK: Which transactions count

  @Test(
    arguments: [
      ("of a registered bundle", [app, .signedUpload(signed("1"))], ["1"]),
      ("before the bundle was registered", [.signedUpload(signed("1")), app], []),
      (
        "of a bundle that a later registration no longer names",
        [
          app,
          .app(
            AppRegistered(
              appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["other"], products: [])),
          .signedUpload(signed("1")),
        ], ["1"]
      ),
      ("of another bundle", [app, .signedUpload(signed("1", ["bundleId": "elsewhere"]))], []),
      ("of Xcode", [app, .signedUpload(signed("1", ["environment": "Xcode"]))], []),
      ("of the sandbox", [app, .signedUpload(signed("1", ["environment": "Sandbox"]))], ["1"]),
      (
        "beside an object that is not valid",
        [
          app,
          .signedUpload([
            SignedObjectPlan(signed("1"), .invalid(reason: "wrong_signature")),
            SignedObjectPlan(signed("2")),
          ]),
        ], ["2"]
      ),
      (
        "of an upload that is not valid",
        [app, .signedUpload([SignedObjectPlan(signed("1"))], fraud: .bundleIDMismatch)], []
      ),
      ("of a notification", [app, .notification("DID_RENEW", uuid: "n", signed("1"))], ["1"]),
      ("of a fetched page", [app, .fetched(signed("1"), signed("2"))], ["1", "2"]),
      (
        "of a fetched page beside one that is not valid",
        [
          app,
          .fetched([
            SignedObjectPlan(signed("1"), .invalid(reason: "wrong_signature")),
            SignedObjectPlan(signed("2")),
          ]),
        ], ["2"]
      ),
      ("of a fetched page before its registration", [.fetched(signed("1")), app], []),
      ("of a notification without one", [app, .notification("TEST", uuid: "n", nil)], []),
      (
        "of a list in which one comes twice", [app, .signedUpload(signed("2"), signed("2"))], ["2"]
      ),
    ] as [(String, [TestEvent], [String])])
  func aTransactionMakesASale(
    _ situation: String, _ events: [TestEvent], _ sales: [String]
  ) throws {
    try expectEqual(
      Self.texts("SELECT sale_key FROM sale_view ORDER BY 1", after: events), sales,
      "\(situation)")
  }

  @Test func theSourceOfASaleIsTheRootOfItsTransaction() throws {
    let other = SHA256Digest(1, 1, 1, 1)
    let events: [TestEvent] = [
      Self.app, .signedUpload(signed("1")),
      .signedUpload([SignedObjectPlan(signed("2"), .valid(root: other))]),
    ]
    try expectEqual(
      Self.texts("SELECT trust FROM sale_view ORDER BY sale_key", after: events),
      ["app_store", "configured"])
  }

  // MARK: Uploads

  @Test func anUploadOfTransactionsCountsForItsUserButIsOfNoReceipt() throws {
    let events: [TestEvent] = [
      Self.app, .upload(reply(row("1")), user: "u"),
      .signedUpload(signed("2"), signed("3"), user: "u", at: "2026-01-11"),
    ]
    try expectEqual(
      Self.texts(
        """
        SELECT user_identifier || ' ' || uploads || ' ' || receipts || ' ' || last_seen_at
        FROM user_view
        """, after: events), ["u 2 1 2026-01-11T00:00:00.000Z"])
    try expectEqual(
      Self.texts(
        """
        SELECT position || ' ' || (receipt_id IS NULL) || ' ' || (upload_id IS NULL) || ' '
        || ifnull(transactions, 0) || ' ' || bundle_id || ' ' || is_fraud FROM upload_view
        """, after: events), ["1 0 1 0 app 0", "3 1 0 2 app 0"])
    try expectEqual(Self.texts("SELECT upload FROM open_uploads", after: events), [])
  }

  @Test(
    arguments: [
      (
        "an invalid list",
        [
          app,
          .signedUpload(
            [SignedObjectPlan(signed("1"), .invalid(reason: "wrong_signature"))],
            fraud: .signatureInvalid),
        ], "1 signature_invalid 1"
      ),
      (
        "a product that is not declared",
        [LiveProjectionsTests.app([("gems", .consumable)]), .signedUpload(signed("1"))],
        "1 product_unknown 1"
      ),
      (
        "a consumable of another user",
        [
          LiveProjectionsTests.app([("coins", .consumable)]), .signedUpload(signed("1"), user: "a"),
          .signedUpload(signed("1"), user: "b"),
        ], "2 transaction_replayed 2"
      ),
    ] as [(String, [TestEvent], String)])
  func anUploadThatIsAFraudSaysSo(
    _ situation: String, _ events: [TestEvent], _ verdict: String
  ) throws {
    let sql = """
      SELECT position || ' ' || fraud_reason || ' ' || fraud_position FROM upload_view
      WHERE is_fraud
      """
    try expectEqual(Self.texts(sql, after: events), [verdict], "\(situation)")
  }

  @Test func aVerificationCannotNameAnUploadOfTransactions() throws {
    let events: [TestEvent] = [
      Self.app, .signedUpload(signed("1")), .verify(1, reply(row("2"))),
    ]
    try expectEqual(
      Self.texts(
        "SELECT detail FROM exception_view WHERE exception = 'malformed_event'", after: events),
      ["receipt.verified upload"])
  }

  // MARK: Lookups by an import

  @Test func importedLinesAndNotificationsAreKnown() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .signedUpload(signed("1"), line: "one"),
      .notification("TEST", uuid: "Aa-1", nil, line: "two"), .notification("TEST", uuid: "2", nil),
    ])
    let lookup = try IntakeLookup(try fixture.current())
    #expect(try lookup.containsLine(Self.digest("one")))
    #expect(try lookup.containsLine(Self.digest("two")))
    #expect(try !lookup.containsLine(Self.digest("three")))
    #expect(try lookup.containsNotification("Aa-1"))
    #expect(try lookup.containsNotification("2"))
    #expect(try !lookup.containsNotification("aa-1"))
  }

  @Test func aNotificationSaysWhatItIsAbout() throws {
    let renewal: JSONText = ["originalTransactionId": "9", "environment": "Production"]
    let events: [TestEvent] = [
      Self.app,
      .notification("DID_RENEW", subtype: "BILLING_RECOVERY", uuid: "1", signed("8", of: "7")),
      .notification("EXPIRED", uuid: "2", nil, renewal: renewal),
      .notification("TEST", uuid: "3", nil),
    ]
    try expectEqual(
      Self.texts(
        """
        SELECT position || ' ' || notification_uuid || ' ' || type || ' ' || ifnull(subtype, '-')
        || ' ' || environment || ' ' || bundle_id || ' ' || ifnull(original_transaction_id, '-')
        || ' ' || ifnull(transaction_id, '-') || ' ' || signed_at FROM notification_view
        """, after: events),
      [
        "1 1 DID_RENEW BILLING_RECOVERY Production app 7 8 2026-01-06T00:00:00.000Z",
        "2 2 EXPIRED - Production app 9 - 2026-01-06T00:00:00.000Z",
        "3 3 TEST - Production app - - 2026-01-06T00:00:00.000Z",
      ])
  }

  // MARK: Fetched pages

  @Test func aFetchedPageSaysWhatWasAskedAndHowFar() throws {
    let range = ms("2026-01-01")...ms("2026-01-09")
    let events: [TestEvent] = [
      Self.app, .fetched(signed("8", of: "7"), about: "7", revision: "r1", hasMore: true),
      .fetched([], about: "9", environment: "Sandbox", errorCode: 4_040_010),
      .fetched([], .notificationHistory, about: nil, revision: "p", range: range),
      .notification("TEST", uuid: "n", nil, isFetched: true),
    ]
    try expectEqual(
      Self.texts(
        """
        SELECT position || ' ' || app_family_id || ' ' || bundle_id || ' ' || environment || ' '
        || call || ' ' || ifnull(transaction_id, '-') || ' ' || ifnull(range_start, '-') || ' '
        || ifnull(range_end, '-') || ' ' || ifnull(revision, '-') || ' ' || ifnull(error_code, '-')
        || ' ' || has_more || ' ' || occurred_at FROM fetch_view
        """, after: events),
      [
        "1 \(TestEvent.signedFamily) app Production history 7 - - r1 - 1 2026-01-10T00:00:00.000Z",
        "2 \(TestEvent.signedFamily) app Sandbox history 9 - - - 4040010 0 2026-01-10T00:00:00.000Z",
        "3 \(TestEvent.signedFamily) app Production notification_history - "
          + "2026-01-01T00:00:00.000Z 2026-01-09T00:00:00.000Z p - 0 2026-01-10T00:00:00.000Z",
      ])
    try expectEqual(
      Self.texts("SELECT notification_uuid FROM notification_view", after: events), ["n"])
    try expectEqual(
      Self.texts("SELECT DISTINCT position FROM signed_statements", after: events), ["1"])
  }

  @Test func aFetchedPageHasNoUserAndTakesNothingFromTheFirstUpload() throws {
    let token: JSONText = "7e3fb20b-4cdb-47cc-936d-99d65f608138"
    let events: [TestEvent] = [
      Self.app, .fetched(signed("1", ["appAccountToken": token])),
      .fetched(signed("2", ["appAccountToken": token])), .signedUpload(signed("1"), user: "u"),
    ]
    try expectEqual(
      Self.texts(
        "SELECT sale_key || ' ' || user_identifier FROM sale_view ORDER BY 1", after: events),
      ["1 u", "2 token:7e3fb20b-4cdb-47cc-936d-99d65f608138"])
    try expectEqual(Self.texts("SELECT position FROM upload_view", after: events), ["3"])
  }

  // MARK: Renewal information

  @Test(
    arguments: [
      ("of its own environment", ["environment": "Production"], "Sandbox", "1 1"),
      ("of the page's environment, where it names none", [:], "Production", "1 1"),
      ("of another environment", ["environment": "Sandbox"], "Production", "- 1"),
      ("of another subscription", ["originalTransactionId": "2"], "Production", "- 1"),
    ] as [(String, Members, String, String)])
  func aFetchedPagesRenewalInformationIsFolded(
    _ situation: String, _ members: Members, _ environment: String, _ row: String
  ) throws {
    let period = signed("1", line: "7", ["expiresDate": instant("2026-02-05")])
    let renewal = JSONText.object(
      [
        ("originalTransactionId", "1"), ("signedDate", instant("2026-01-09")),
        ("autoRenewStatus", 1),
      ] + members.map { ($0.key, $0.value) })
    let forged = SignedObjectPlan(
      ["originalTransactionId": "1", "signedDate": instant("2026-01-20"), "autoRenewStatus": 0],
      .invalid(reason: "wrong_signature"))
    let events: [TestEvent] = [
      Self.app,
      .fetched(
        [SignedObjectPlan(period)], renewals: [SignedObjectPlan(renewal), forged], .statuses,
        environment: environment),
    ]
    try expectEqual(
      Self.texts(
        "SELECT ifnull(auto_renew, '-') || ' ' || position FROM subscription_view",
        after: events), [row], "\(situation)")
  }

  // MARK: Queries

  private static func queries(_ fixture: LedgerFixture) throws -> LedgerQueries {
    let reader = try LogReader(fixture.directory)
    return try LedgerQueries(try fixture.current()) { try reader.event(at: $0) }
  }

  @Test func aSalesStatementsAreToldInTheOrderOfTheirTimes() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .signedUpload(signed("1", signed: "2026-01-20", ["storefront": "DEU"]), user: "u"),
      .upload(reply(row("1"), requested: "2026-01-10"), user: "u"),
      .notification(
        "REFUND", uuid: "n",
        signed(
          "1", signed: "2026-01-15",
          ["revocationDate": instant("2026-01-14"), "revocationPercentage": 50_000])),
      .signedUpload(signed("2")), .fetched(signed("1", signed: "2026-01-21")),
    ])
    let queries = try Self.queries(fixture)
    let sale = try #require(try queries.sales(key: "1").first)
    let (statements, isCut) = try queries.statements(about: sale)
    #expect(!isCut)
    expectEqual(
      statements.map(\.atMs),
      ["2026-01-10", "2026-01-15", "2026-01-20", "2026-01-21"].map { ms($0) })
    expectEqual(statements.map(\.source), [.reply, .notification, .upload, .fetch])
    expectEqual(statements[1].revocationPercentage, 50_000)
    expectEqual(statements[2].storefront, "DEU")
    let user = try #require(try queries.user("u"))
    expectEqual(user.uploads.map(\.position), [1, 2])
    expectEqual(user.notifications.map(\.position), [4])
  }

  @Test func positionsAreFoundByTypeUserAndFamily() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app, .signedUpload(signed("1"), user: "u"), .upload(reply(row("2")), user: "v"),
      .notification("TEST", uuid: "n", nil), .fetched(signed("4")),
    ])
    let queries = try Self.queries(fixture)
    try expectEqual(queries.positions(of: [.transactionsReceived], before: 9), [1])
    try expectEqual(queries.positions(of: [.notificationReceived], before: 9), [4])
    try expectEqual(queries.positions(of: [.receiptUploaded], before: 9), [2])
    try expectEqual(queries.positions(of: [.transactionsFetched], before: 9), [5])
    try expectEqual(queries.positions(of: [.appRegistered], before: 6), [0])
    func positions(user: String? = nil, family: String? = nil) throws -> [Position] {
      try queries.positions(receiptID: nil, userIdentifier: user, appFamilyID: family)
    }
    try expectEqual(positions(user: "u"), [1])
    try expectEqual(positions(user: "v"), [2, 3])
    try expectEqual(positions(family: TestEvent.signedFamily), [1, 2, 3, 4, 5])
    try expectEqual(queries.fetchedPage(at: 5)?.call, "history")
    #expect(try queries.fetchedPage(at: 4) == nil)
    try expectEqual(positions(user: "u", family: TestEvent.signedFamily), [1])
  }
}
