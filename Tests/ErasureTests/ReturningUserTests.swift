// Uploads of a subscription after its user was erased (rule R6, last paragraph).
import Ledger
import Projections
import TestSupport
import Testing

import Erasure

@Suite struct ReturningUserTests {
  /// A period of the subscription that begins in this month.
  private static func period(_ month: Int) -> JSONText {
    signed(
      "10\(month)", of: "101", line: "90\(month)", product: "pro.month",
      on: "2026-0\(month)-05", signed: "2026-0\(month)-06",
      [
        "type": "Auto-Renewable Subscription", "expiresDate": instant("2026-0\(month + 1)-05"),
        "appAccountToken": "3f2a7c11-aaaa-4bbb-8ccc-000000000001",
      ])
  }

  private static func rows(_ sql: String, _ fixture: LedgerFixture) throws -> [String] {
    let rows = try fixture.current().prepare(sql)
    var result: [String] = []
    while try rows.step() { result.append(rows.text(0)) }
    return result
  }

  private static func subscriber(_ fixture: LedgerFixture) throws -> [String] {
    try rows("SELECT user_identifier FROM subscription_view", fixture)
  }

  private static func buyers(_ fixture: LedgerFixture) throws -> [String] {
    try rows("SELECT ifnull(user_identifier, '-') FROM sale_view ORDER BY sale_key", fixture)
  }

  /// A subscription of u1, who is erased at 2.
  private static func erased() throws -> LedgerFixture {
    let fixture = try LedgerFixture()
    try fixture.append([
      .app(
        AppRegistered(
          appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app"], products: [])),
      .signedUpload(period(1), user: "u1"),
    ])
    try fixture.redact { $0.position == 1 ? Taking() : nil }
    try expectEqual(subscriber(fixture), ["(redacted 2)"])
    return fixture
  }

  @Test(
    "The first upload with a user after the erasure takes over the subscription and its later sales"
  )
  func takesOver() throws {
    let fixture = try Self.erased()
    try fixture.append([
      .notification("DID_RENEW", uuid: "1", Self.period(2)),
      .signedUpload(Self.period(1)), .signedUpload(Self.period(1), user: "u2"),
      .notification("DID_RENEW", uuid: "2", Self.period(3)),
      .signedUpload(Self.period(3), user: "u3"),
    ])
    try expectEqual(Self.subscriber(fixture), ["u2"])
    let token = "token:3f2a7c11-aaaa-4bbb-8ccc-000000000001"
    try expectEqual(Self.buyers(fixture), ["(redacted 2)", token, "u2"])
    let claims = "SELECT detail FROM exception_view WHERE exception = 'claimed_by_other_user'"
    try expectEqual(Self.rows(claims, fixture), ["u3"])
    let rebuilt = try fixture.rebuilt().prepare("SELECT user_identifier FROM subscription_view")
    #expect(try rebuilt.step() && rebuilt.text(0) == "u2")
  }

  @Test("A reply does the same, also for periods that it shows without a user")
  func replies() throws {
    let fixture = try Self.erased()
    func row(_ month: Int) -> JSONText {
      [
        "product_id": "pro.month", "transaction_id": "10\(month)", "original_transaction_id": "101",
        "web_order_line_item_id": "90\(month)",
        "purchase_date_ms": instantText("2026-0\(month)-05"),
        "expires_date_ms": instantText("2026-0\(month + 1)-05"), "quantity": "1",
      ]
    }
    try fixture.append([
      .upload(reply(row(1)), user: "u2", receipt: "one"), .upload(reply(row(4)), receipt: "two"),
    ])
    try expectEqual(Self.subscriber(fixture), ["u2"])
    try expectEqual(Self.buyers(fixture), ["(redacted 2)", "u2"])
  }
}

private func instantText(_ time: String) -> JSONText { JSONText(stringLiteral: "\(ms(time))") }
