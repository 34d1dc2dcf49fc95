// Signed transactions: what is recorded of them, and the response to the client.
import AppStore
import AppStoreAuthority
import Base
import HTTPClient
import Intake
import Ledger
import Server
import TestSupport
import Testing

@Suite("Answers to signed transactions") struct TransactionResponseTests {
  private let sign = SignedSample()

  private func keys(_ value: JSONValue?) -> [String] {
    guard case .object(let members)? = value else { return [] }
    return members.map(\.key)
  }

  private func purchases(_ answer: ClientResponse) -> [JSONValue] {
    answer.body?["in_app_purchases"]?.arrayValue ?? []
  }

  /// The objects at fault that a fraud's response names, each with its code.
  private func refusals(_ answer: ClientResponse) -> [[String]] {
    (answer.body?["errors"]?.arrayValue ?? []).map {
      [$0["field"]?.stringValue ?? "", $0["code"]?.stringValue ?? ""]
    }
  }

  // MARK: Good lists

  @Test("a good list is one event, and the response shows its sale without asking the App Store")
  func good() throws {
    let fixture = try WorkflowFixture.signed()
    let answer = try fixture.sendTransactions(
      [try sign.transaction()],
      #""user_identifier":"u1","country_code":"FR","metadata":{"a":1}"#)
    expectEqual(answer.status, 200)
    let body = try #require(answer.body)
    expectEqual(
      keys(body),
      [
        "id", "app_family_id", "is_fraud", "fraud_reason", "user_identifier", "metadata",
        "ip_address", "in_app_purchases", "created_at", "updated_at",
      ])
    expectEqual(body["is_fraud"], .boolean(false))
    expectEqual(body["fraud_reason"], .null)
    expectEqual(body["user_identifier"], .string("u1"))
    expectEqual(body["ip_address"], .string("192.0.2.7"))
    let purchase = try #require(purchases(answer).first)
    let expected: [String: JSONValue] = [
      "version": .number("1"), "marketplace": .string("itunes_connect"),
      "app_identifier": .string("app"), "product_id": .string("coins"), "quantity": .number("1"),
      "type": .string("consumable"), "environment": .string("production"),
      // The signed storefront outranks the client's country.
      "country_code": .string("DE"), "currency_code": .string("EUR"),
      "user_identifier": .string("u1"), "is_auto_renewing": .boolean(false),
      "in_trial_period": .boolean(false), "in_grace_period": .boolean(false),
      "current_period_start_at": .null, "current_period_end_at": .null, "canceled_at": .null,
      "canceled_by": .null,
    ]
    for (key, value) in expected { expectEqual(purchase[key], value, "\(key)") }
    expectEqual(purchase["metadata"]?["a"], .number("1"))
    expectEqual(purchase["app_store"], (try JSONValue(Array(sign.payload().utf8))))
    expectEqual(purchase["purchased_at"]?["ms"]?.integerValue, ms("2026-01-05"))
    expectEqual(purchase["last_synced_at"]?["ms"]?.integerValue, ms("2026-01-05") + 1000)
    let events = try fixture.events()
    expectEqual(events.map(\.type), ["app.registered", "transactions.received"])
    expectEqual(events[1].data["upload_id"], body["id"])
    expectEqual(events[1].data["via"], .string("http"))
    expectEqual(events[1].data["outcome"], .string("valid"))
    expectEqual(fixture.appStore.calls, 0)
    let exposition = String(decoding: fixture.metrics.exposition(), as: UTF8.self)
    #expect(
      exposition.contains("receipt_ledger_uploads_total{kind=\"signed_transactions\"} 1"))
  }

  @Test("a purchase has the same id and the same members, whichever way it came") func sameSale()
    throws
  {
    let fixture = try WorkflowFixture.signed()
    let receipt = try fixture.upload("1", user: "u1")
    let transactions = try fixture.sendTransactions([try sign.transaction()])
    let (one, other) = (purchases(receipt), purchases(transactions))
    try #require(one.count == 1 && other.count == 1)
    expectEqual(one[0]["id"], other[0]["id"])
    expectEqual(keys(one[0]), keys(other[0]))
    expectEqual(other[0]["version"], .number("2"))
    expectEqual(other[0]["user_identifier"], .string("u1"))
    // The receipt's response knows the signed price now.
    expectEqual(one[0]["currency_code"], .null)
    let again = try fixture.look(receipt)
    expectEqual(purchases(again).first?["currency_code"], .string("EUR"))
  }

  @Test("the same list again is another event with the same id") func again() throws {
    let fixture = try WorkflowFixture.signed()
    let list = [try sign.transaction()]
    let first = try fixture.sendTransactions(list)
    let second = try fixture.sendTransactions(list, #""user_identifier":"u""#)
    expectEqual(second.status, 200)
    expectEqual(first.body?["id"], second.body?["id"])
    expectEqual(first.body?["created_at"], second.body?["created_at"])
    try expectEqual(fixture.events().count, 3)
    expectEqual(purchases(second).count, 1)
  }

  @Test("each sale appears once, by its newest statement, ordered by date and key")
  func order() throws {
    let fixture = try WorkflowFixture.signed()
    func at(_ day: String, signed: String) -> [String: String?] {
      [
        "purchaseDate": "\(ms(day))", "originalPurchaseDate": "\(ms(day))",
        "signedDate": "\(ms(signed))",
      ]
    }
    let revoked = at("2026-01-05", signed: "2026-02-02").merging(
      ["revocationDate": "\(ms("2026-02-01"))", "revocationReason": "1"]) { $1 }
    let answer = try fixture.sendTransactions([
      try sign.transaction("9", at("2026-01-06", signed: "2026-01-07")),
      try sign.transaction("2", revoked),
      try sign.transaction("2", at("2026-01-05", signed: "2026-01-07")),
      try sign.transaction("1", at("2026-01-05", signed: "2026-01-07")),
    ])
    let shown = purchases(answer)
    expectEqual(shown.map { $0["app_store"]?["transactionId"]?.stringValue }, ["1", "2", "9"])
    try #require(shown.count == 3)
    expectEqual(shown[1]["canceled_at"]?["ms"]?.integerValue, ms("2026-02-01"))
    expectEqual(shown[1]["canceled_by"], .string("user"))
    expectEqual(shown[0]["canceled_at"], .null)
  }

  @Test("a subscription shows its period, but not whether it renews") func subscription() throws {
    let fixture = try WorkflowFixture.signed()
    let answer = try fixture.sendTransactions([
      try sign.transaction(
        "1",
        [
          "type": "\"Auto-Renewable Subscription\"", "webOrderLineItemId": "\"77\"",
          "expiresDate": "\(ms("2026-02-05"))", "offerType": "1",
          "offerDiscountType": "\"FREE_TRIAL\"",
        ])
    ])
    let purchase = try #require(purchases(answer).first)
    expectEqual(purchase["type"], .string("auto_renewable"))
    expectEqual(purchase["is_auto_renewing"], .null)
    expectEqual(purchase["in_grace_period"], .null)
    expectEqual(purchase["in_trial_period"], .boolean(true))
    expectEqual(purchase["current_period_start_at"]?["ms"]?.integerValue, ms("2026-01-05"))
    expectEqual(purchase["current_period_end_at"]?["ms"]?.integerValue, ms("2026-02-05"))
  }

  @Test("a withheld address is not stored") func withheld() throws {
    let fixture = try WorkflowFixture.signed()
    let answer = try fixture.sendTransactions([try sign.transaction()], #""ip_address":null"#)
    expectEqual(answer.body?["ip_address"], .null)
    #expect(try fixture.events()[1].data["ip_address"] == nil)
  }

  // MARK: Fraud

  @Test(
    "a forged transaction, or another app's, makes the list a fraud that is kept and counts nowhere"
  )
  func fraud() throws {
    let forged = try sign.sign(sign.payload("2"), by: .stranger.get())
    let other = try sign.transaction("3", ["bundleId": "\"com.example.other\""])
    let otherApp = try sign.sign(
      #"{"receiptType":"Production","bundleId":"other","receiptCreationDate":1779000000000}"#)
    let good = try sign.transaction()
    let (altered, foreign) = ("signature_invalid", "bundle_id_mismatch")
    let cases: [([String], String, String, [(String, String)])] = [
      ([good, forged], "", altered, [("signed_transactions[1]", altered)]),
      ([good, other], "", foreign, [("signed_transactions[1]", foreign)]),
      (
        [other, forged], "", altered,
        [("signed_transactions[0]", foreign), ("signed_transactions[1]", altered)]
      ),
      ([good], #""app_transaction":"\#(otherApp)""#, foreign, [("app_transaction", foreign)]),
      ([good], #""app_transaction":"\#(forged)""#, altered, [("app_transaction", altered)]),
    ]
    for (list, members, reason, places) in cases {
      let fixture = try WorkflowFixture.signed()
      let answer = try fixture.sendTransactions(list, members)
      expectEqual(answer.status, 402)
      expectEqual(answer.body?["is_fraud"], .boolean(true))
      expectEqual(answer.body?["fraud_reason"], .string(reason))
      #expect(purchases(answer).isEmpty)
      expectEqual(refusals(answer), places.map { [$0, $1] })
      let event = try #require(try fixture.events().last)
      expectEqual(event.type, "transactions.received")
      expectEqual(event.data["outcome"], .string("invalid"))
      expectEqual(event.data["fraud_reason"], .string(reason))
      // Nothing of the list counts: the sale comes with the next.
      expectEqual(purchases(try fixture.sendTransactions([good])).first?["version"], .number("1"))
    }
  }

  @Test("an undeclared product and another user's consumable are frauds too")
  func declaredProducts() throws {
    let products = [AppRegistered.Product(id: "coins", type: .consumable)]
    let fixture = try WorkflowFixture.signed(products: products)
    let good = try sign.transaction()
    try expectEqual(fixture.sendTransactions([good], #""user_identifier":"u1""#).status, 200)
    let replayed = try fixture.sendTransactions([good], #""user_identifier":"u2""#)
    expectEqual(replayed.status, 402)
    expectEqual(replayed.body?["fraud_reason"], .string("transaction_replayed"))
    let unknown = try fixture.sendTransactions([
      try sign.transaction("2", ["productId": "\"gold\""])
    ])
    expectEqual(unknown.status, 402)
    expectEqual(unknown.body?["fraud_reason"], .string("product_unknown"))
    expectEqual(purchases(unknown).count, 1)
  }

  @Test(
    "an app transaction of Production must name the number that the app declares",
    arguments: [
      (#""appAppleId":7,"#, "Production", 200), (#""appAppleId":8,"#, "Production", 402),
      ("", "Production", 402), (#""appAppleId":8,"#, "Sandbox", 200),
    ])
  func appAppleID(_ member: String, _ environment: String, _ status: Int) throws {
    let fixture = try WorkflowFixture.signed(appAppleID: 7)
    let app = try sign.sign(
      #"{\#(member)"receiptType":"\#(environment)","bundleId":"app","receiptCreationDate":1779000000000}"#
    )
    let answer = try fixture.sendTransactions(
      [try sign.transaction()], #""app_transaction":"\#(app)""#)
    expectEqual(answer.status, status)
    expectEqual(
      answer.body?["fraud_reason"], (status == 402 ? .string("bundle_id_mismatch") : .null))
    expectEqual(
      refusals(answer), (status == 402 ? [["app_transaction", "wrong_app_apple_id"]] : []))
  }

  // MARK: Refused lists

  @Test(
    "a malformed, expired or foreign transaction is refused by its index, and nothing is stored"
  )
  func refused() throws {
    var early = SignedObjectAuthority.Plan()
    early.leaf.notAfter = "200101000000Z"
    let expired = try SignedObjectAuthority(early)
    let root = expired.root.fingerprint
    let fixture = try WorkflowFixture.signed { $0.trust.additionalRoots.append(root) }
    let cases: [(String, FieldProblem.Code, SignedObjectFault)] = [
      (
        try sign.transaction("1", ["signedDate": nil]), .signedObjectMalformed, .missingSignedDate
      ),
      (try sign.transaction("1", ["bundleId": nil]), .signedObjectMalformed, .missingBundleID),
      (
        try sign.transaction("1", ["signedDate": "4070908800000"]), .signatureOutOfTime,
        .certificateExpired
      ),
      (try sign.sign(sign.payload(), by: expired), .signatureOutOfTime, .certificateExpired),
      (
        try sign.transaction("1", ["environment": "\"Xcode\""]), .environmentNotAccepted,
        .localTestingEnvironment
      ),
      (
        try sign.transaction("1", ["environment": "\"Moon\""]), .environmentNotAccepted,
        .unknownEnvironment
      ),
    ]
    let good = try sign.transaction()
    let forged = try sign.sign(sign.payload(), by: .stranger.get())
    for (text, code, fault) in cases {
      guard case .refused(let problems) = try fixture.sendTransactions([good, text, forged]) else {
        Issue.record("accepted: \(fault)")
        continue
      }
      expectEqual(problems.map(\.field), ["signed_transactions[1]"])
      expectEqual(problems.map(\.code), [code])
      #expect(problems[0].message.hasSuffix("(\(fault.rawValue))"))
    }
    try expectEqual(fixture.events().count, 1)
  }

  @Test(
    "a signedDate at most five minutes ahead of this clock is requested again, a later one is refused",
    arguments: [(60_000, nil), (60_001, 1), (90_000, 30), (300_000, 240), (300_001, 0)]
      as [(Int64, Int?)])
  func ahead(_ leadMs: Int64, _ seconds: Int?) throws {
    let fixture = try WorkflowFixture.signed(
      clock: WorkflowClock(nowMs: { ms("2026-01-05") }, monotonicMs: { 0 }))
    let text = try sign.transaction("1", ["signedDate": "\(ms("2026-01-05") + leadMs)"])
    let good = try sign.transaction("2", ["signedDate": "\(ms("2026-01-05"))"])
    switch try fixture.sendTransactions([good, text]) {
    case .receipt(let status, _): #expect(status == 200 && seconds == nil)
    case .later(let problems, let afterSeconds):
      expectEqual(afterSeconds, seconds)
      expectEqual(problems.map(\.field), ["signed_transactions[1]"])
      expectEqual(problems.map(\.code), [.signatureOutOfTime])
    case .refused(let problems):
      #expect(seconds == 0 && problems.map(\.code) == [.signatureOutOfTime])
    case let answer: Issue.record("\(answer)")
    }
    try expectEqual(fixture.events().count, (seconds == nil ? 2 : 1))
    // A permanent fault outweighs a temporary one.
    guard seconds ?? 0 > 0 else { return }
    let malformed = try sign.transaction(
      "3", ["bundleId": nil, "signedDate": "\(ms("2026-01-05"))"])
    try expectEqual(fixture.sendTransactions([text, malformed]).status, 422)
  }

  // MARK: Environments

  @Test("a Sandbox transaction is good, unless the app does not accept the Sandbox") func sandbox()
    throws
  {
    let transaction = try sign.transaction("1", ["environment": "\"Sandbox\""])
    let answer = try WorkflowFixture.signed().sendTransactions([transaction])
    expectEqual(answer.status, 200)
    expectEqual(purchases(answer).first?["environment"], .string("sandbox"))
    expectEqual(purchases(answer).first?["version"], .number("1"))
    let strict = try WorkflowFixture.signed {
      $0.apps[WorkflowFixture.familyText, default: Configuration.App()].acceptsSandbox = false
    }
    guard case .refused(let problems) = try strict.sendTransactions([transaction]) else {
      Issue.record("accepted")
      return
    }
    expectEqual(problems.map(\.code), [.sandboxNotAccepted])
    expectEqual(problems.map(\.field), ["signed_transactions[0]"])
    try expectEqual(strict.events().count, 1)
  }

  @Test(
    "a transaction of Xcode is answered where its certificate is configured, and counts nowhere")
  func localTesting() throws {
    let leaf = try SignedSample.authority.get().leaf.fingerprint
    let fixture = try WorkflowFixture.signed { $0.trust.localTestingSigners = [leaf] }
    let answer = try fixture.sendTransactions(
      [try sign.transaction("1", ["environment": "\"Xcode\""])], #""user_identifier":"u1""#)
    expectEqual(answer.status, 200)
    let purchase = try #require(purchases(answer).first)
    expectEqual(purchase["version"], .number("0"))
    expectEqual(purchase["environment"], .string("sandbox"))
    expectEqual(purchase["country_code"], .string("DE"))
    expectEqual(purchase["currency_code"], .string("EUR"))
    expectEqual(purchase["user_identifier"], .string("u1"))
    #expect(
      try fixture.events().last?.data["transactions"]?.arrayValue?.first?["signer_sha256"] != nil)
  }
}
