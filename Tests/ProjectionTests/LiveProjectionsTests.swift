// Live projections: what they answer, and that they follow the log whoever else folds it.
import Bytes
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct LiveProjectionsTests {
  static let family = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
  static var familyID: UUID16 {
    get throws { try #require(UUID16(family)) }
  }

  static func app(_ products: [(String, ProductType)]) -> TestEvent {
    .app(
      AppRegistered(
        appFamilyID: family, name: "App", bundleIDs: ["app"],
        products: products.map { .init(id: $0.0, type: $0.1) }))
  }

  /// The body as JSON.
  static func object(_ receipt: ClientReceipt?) throws -> [String: Any] {
    let body = try #require(receipt?.body)
    return try #require(
      try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
  }

  static func purchases(_ receipt: ClientReceipt?) throws -> [[String: Any]] {
    try #require(try object(receipt)["in_app_purchases"] as? [[String: Any]])
  }

  @Test func aConfirmedReceiptShowsItsPurchases() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app([("coins", .consumable)]),
      .upload(
        reply(row("1")), user: "u1", metadata: shorthand("2.00"), at: "2026-01-10"),
    ])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 1))
    #expect(!answer.isFraud && !answer.isPending && answer.fraudReason == nil)
    let object = try Self.object(answer)
    #expect(object["app_family_id"] as? String == Self.family)
    #expect(object["environment"] as? String == "production")
    #expect(object["user_identifier"] as? String == "u1")
    let purchase = try #require(try Self.purchases(answer).first)
    #expect(purchase["product_id"] as? String == "coins")
    #expect(purchase["type"] as? String == "consumable")
    #expect(purchase["currency_code"] as? String == "EUR")
    #expect((purchase["app_store"] as? [String: Any])?["transaction_id"] as? String == "1")
  }

  @Test func aWaitingReceiptShowsItsFileAndWaits() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.pending(.unified(.init("1")), user: "u1")])
    let live = try LiveProjections(fixture.directory)
    let answer = try #require(try live.answer(upload: 0))
    #expect(answer.isPending && !answer.isFraud)
    let purchase = try #require(try Self.purchases(answer).first)
    #expect(purchase["app_store"] is NSNull)
    #expect(purchase["version"] as? Int == 0)
    let waiting = try live.waiting(limit: 10)
    #expect(waiting.map { $0.uploads.map(\.position) } == [[0]])
    #expect(try live.waiting(afterReceipt: waiting[0].number, limit: 10).isEmpty)
  }

  @Test func twoUsersOfOneConsumableAreJudgedByPosition() throws {
    let fixture = try LedgerFixture()
    try fixture.append([
      Self.app([("coins", .consumable)]), .upload(reply(row("1")), user: "u1"),
      .upload(reply(row("1")), user: "u2"),
    ])
    let live = try LiveProjections(fixture.directory)
    #expect(try live.answer(upload: 1)?.isFraud == false)
    #expect(try live.answer(upload: 3)?.fraudReason == "transaction_replayed")
  }
}
