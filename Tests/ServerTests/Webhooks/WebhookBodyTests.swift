// The bodies of webhooks, byte for byte.
import Ledger
import Server
import TestSupport
import Testing

import Projections
import Revenue

@Suite struct WebhookBodyTests {
  private func body(_ content: LedgerChange.Content) throws -> String {
    let change = LedgerChange(
      point: ChangePoint(7, 2), identity: [], appFamilyID: WebhookFixture.family, content: content)
    let body = try #require(WebhookDelivery(change)).body
    try expectEqual(OpenAPIDocument().problems(webhook: body), [])
    return String(decoding: body, as: UTF8.self)
  }

  @Test func aTestFitsItsDescription() throws {
    let test = WebhookDelivery(testOf: WebhookFixture.family, nowMs: ms("2026-01-05"))
    try expectEqual(OpenAPIDocument().problems(webhook: test.body), [])
  }

  private func sale() throws -> SaleDetail {
    var sale = ScriptedChanges.sale("1", 7, user: "anna")
    sale.currency = Currency.parse("EUR")
    sale.priceBasis = "signed_transaction"
    sale.lines[0].amountMicros = 9_990_000
    return sale
  }

  private static let head =
    #""data":{"app_family_id":"\#(WebhookFixture.family)","environment":"Production","bundle_id":"app","#
  private static let saleMembers =
    #""product_id":"coins","kind":"regular","sale_key":"7","transaction_id":"7","original_transaction_id":"1","user_identifier":"anna","country_code":"DE","sale_date":"2026-01-05T00:00:00.000Z","#

  @Test func aPurchaseAndARenewalTellOfTheSaleLine() throws {
    let rest =
      #""quantity":1,"amount":"9.99","currency":"EUR","price_basis":"signed_transaction","reason":null,"position":7,"backfill":false}}"#
    for (isRenewal, type) in [(false, "purchase"), (true, "renewal")] {
      try expectEqual(
        body(.sale(try sale(), isRenewal: isRenewal)),
        #"{"type":"\#(type)","timestamp":"2026-01-05T00:00:00.000Z","#
          + Self.head + Self.saleMembers + rest)
    }
  }

  @Test func aRefundAndAReversalTellOfTheirLineAsTheJournalDoes() throws {
    for (line, type, sign) in [("Return", "refund", "-"), ("Reversal", "reversal", "")] {
      let detail = LineDetail(
        line: line, dateMs: ms("2026-01-08"), quantity: sign == "-" ? -1 : 1,
        amountMicros: sign == "-" ? -3_330_000 : 3_330_000, reason: "1", position: 7)
      try expectEqual(
        body(.line(try sale(), detail)),
        #"{"type":"\#(type)","timestamp":"2026-01-08T00:00:00.000Z","# + Self.head
          + Self.saleMembers
          + #""quantity":\#(sign)1,"amount":"\#(sign)3.33","currency":"EUR","price_basis":"signed_transaction","reason":"1","position":7,"backfill":false}}"#
      )
    }
  }

  @Test func whatIsNotKnownIsNull() throws {
    var sale = ScriptedChanges.sale("1", 7)
    sale.countryPosition = nil
    sale.countryCode = "ZZ"
    let text = try body(.sale(sale, isRenewal: false))
    for member in ["user_identifier", "country_code", "amount", "currency", "price_basis"] {
      #expect(text.contains("\"\(member)\":null"))
    }
  }

  @Test func anExpiryAndAGracePeriodTellOfTheSubscription() throws {
    let terms = SubscriptionTerms(
      periodStartMs: ms("2026-01-01"), expiresAtMs: ms("2026-02-01"))
    let subscription = SubscriptionDetail(
      environment: "Production", bundleID: "app", originalTransactionID: "1", productID: "pro",
      userIdentifier: "anna", countryCode: "DE", startedAtMs: ms("2026-01-01"), terms: terms,
      statementPosition: 3, offer: .none, sale: 0)
    var turn = SubscriptionTurnDetail(
      kind: .expiry, expiresAtMs: ms("2026-01-31"), expirationIntent: "1")
    let members =
      Self.head
      + #""product_id":"pro","original_transaction_id":"1","user_identifier":"anna","country_code":"DE","expires_at":"2026-01-31T00:00:00.000Z","#
    try expectEqual(
      body(.subscription(subscription, turn)),
      #"{"type":"expiry","timestamp":"2026-01-31T00:00:00.000Z","# + members
        + #""grace_period_expires_at":null,"expiration_intent":"1","position":7,"backfill":false}}"#
    )
    turn.kind = .gracePeriod
    turn.gracePeriodExpiresAtMs = ms("2026-02-03")
    try expectEqual(
      body(.subscription(subscription, turn)),
      #"{"type":"grace_period","timestamp":"2026-01-31T00:00:00.000Z","# + members
        + #""grace_period_expires_at":"2026-02-03T00:00:00.000Z","expiration_intent":"1","position":7,"backfill":false}}"#
    )
  }

  @Test func aFraudTellsOfTheUpload() throws {
    let fraud = FraudDetail(
      upload: 6, reason: "signature_invalid", receiptID: nil, uploadID: "u", bundleID: "app",
      countryCode: nil, userIdentifier: "eve", occurredAtMs: ms("2026-01-10"))
    try expectEqual(
      body(.fraud(fraud)),
      #"{"type":"fraud","timestamp":"2026-01-10T00:00:00.000Z","data":{"app_family_id":"\#(WebhookFixture.family)","bundle_id":"app","receipt_id":null,"upload_id":"u","user_identifier":"eve","country_code":null,"reason":"signature_invalid","upload_position":6,"position":7,"backfill":false}}"#
    )
  }

  @Test func whatASynchronizationOrAnImportBroughtInSaysSo() throws {
    let change = LedgerChange(
      point: ChangePoint(7), identity: [], isBackfill: true, appFamilyID: WebhookFixture.family,
      content: .sale(try sale(), isRenewal: true))
    let body = try #require(WebhookDelivery(change)).body
    #expect(String(decoding: body, as: UTF8.self).hasSuffix(#""position":7,"backfill":true}}"#))
  }

  @Test func anIDFollowsFromTheLedgerAndTheChangeAndNotFromItsPosition() throws {
    func id(_ ledger: String, _ identity: [String], at position: Position) throws -> String {
      let change = LedgerChange(
        point: ChangePoint(position), identity: identity, appFamilyID: WebhookFixture.family,
        content: .sale(try sale(), isRenewal: false))
      let identity = LedgerIdentity(
        origin: "example.com/shop", id: try #require(LedgerID(ledger)), createdAtMs: 0)
      return try #require(WebhookDelivery(change)).id(in: identity)
    }
    let ledger = "6bc34d51-a2d9-4c0e-b2aa-6f1d5b0a9c77"
    let line = ["line", "Production", "app", "0", "7", "Sale", "1767571200000", ""]
    // Computed by Python: `hashlib.sha256(json.dumps([ledger] + line, separators=(",", ":")).encode())`.
    try expectEqual(id(ledger, line, at: 7), "099c54de307402498fe90a3e7d33c0ec")
    try expectEqual(id(ledger, line, at: 7), id(ledger, line, at: 8))
    #expect(try id(ledger, line, at: 7) != id(WebhookFixture.family, line, at: 7))
    #expect(try id(ledger, ["a", "b"], at: 7) != id(ledger, ["a,b"], at: 7))
  }

  @Test func salesOutsideOfTheAppStoreAndOfNoAppAreNotTold() throws {
    var sale = ScriptedChanges.sale("1", 7)
    sale.environment = "Xcode"
    let point = ChangePoint(7)
    #expect(
      WebhookDelivery(
        LedgerChange(
          point: point, identity: [], appFamilyID: WebhookFixture.family,
          content: .sale(sale, isRenewal: false))) == nil)
    sale.environment = "Sandbox"
    #expect(
      WebhookDelivery(
        LedgerChange(
          point: point, identity: [], appFamilyID: nil, content: .sale(sale, isRenewal: false)))
        == nil)
  }
}
