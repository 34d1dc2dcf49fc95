// The client API's response about a user's purchases.
import Base
import Ledger
import Projections
import Revenue
import TestSupport
import Testing

/// Asks live projections about users.
struct UserQuestions {
  /// Kept so that the directory lives as long as this value.
  private let fixture: LedgerFixture
  let live: LiveProjections
  let family: UUID16

  init(_ fixture: LedgerFixture) throws {
    self.fixture = fixture
    live = try LiveProjections(fixture.directory)
    family = try LiveProjectionsTests.familyID
  }

  /// The response's body as JSON.
  func answer(
    _ question: OwnershipQuestion, about user: String, of family: UUID16? = nil,
    at time: String = "2026-03-01"
  ) throws -> JSONValue {
    let answer = try live.answer(
      question, about: user, of: family ?? self.family, atMs: ms(time))
    guard case .found(let body) = answer else { throw UnexpectedResponse() }
    return try JSONValue(body.bytes)
  }

  struct UnexpectedResponse: Error {}

  func purchases(
    of user: String, after: String? = nil, limit: Int = 100, at time: String = "2026-03-01"
  ) throws -> [JSONValue] {
    try answer(
      .purchases(after: after.flatMap { PurchaseCursor($0) }, limit: limit), about: user, at: time
    )["purchases"]?.arrayValue ?? []
  }
}

extension JSONValue {
  /// The texts of members of an object, a number's digits included; nil for null.
  func texts(_ names: String...) -> [String?] {
    names.map { name in
      switch self[name] {
      case .string(let text)?: text
      case .number(let digits)?: digits
      case .boolean(let value)?: "\(value)"
      default: nil
      }
    }
  }
}

@Suite struct PurchaseResponseTests {
  private static func questions(_ steps: [TestEvent]) throws -> UserQuestions {
    let fixture = try LedgerFixture()
    try fixture.append(
      [LiveProjectionsTests.app([("coins", .consumable), ("life", .nonConsumable)])] + steps)
    return try UserQuestions(fixture)
  }

  @Test("a purchase is shown with its price, its basis, its ids and the events it rests on")
  func onePurchase() throws {
    let questions = try Self.questions([
      .signedUpload(
        signed(
          "10", product: "life", on: "2026-01-05",
          ["price": 9990, "currency": "EUR", "storefront": "FRA", "quantity": 2]), user: "alice")
    ])
    let answer = try questions.answer(.purchases(after: nil, limit: 10), about: "alice")
    expectEqual(
      answer.texts("at", "position", "app_family_id", "next"),
      [
        "2026-03-01T00:00:00.000Z", "1", LiveProjectionsTests.family, nil,
      ])
    let purchase = try #require(answer["purchases"]?.arrayValue?.first)
    expectEqual(
      purchase.texts(
        "environment", "bundle_id", "product_id", "type", "kind", "quantity", "purchased_at",
        "state", "unit_price", "amount", "currency", "price_basis", "country_code",
        "transaction_id", "original_transaction_id", "refunded_quantity", "refunded_amount",
        "refunded_at"),
      [
        "production", "app", "life", "non_consumable", "regular", "2", "2026-01-05T00:00:00.000Z",
        "owned", "4.995", "9.99", "EUR", "signed_transaction", "FR", "10", "10", "0", "0.00", nil,
      ])
    expectEqual(purchase["transaction_ids"], .array([.string("10")]))
    expectEqual(purchase["positions"], .array([.number("1")]))
    // The id is that of the client API.
    let upload = try LiveProjectionsTests.purchases(try questions.live.answer(upload: 1))
    expectEqual(purchase["id"]?.stringValue, upload.first?["id"] as? String)
  }

  @Test("a purchase without a price, a country or a declared type has none")
  func unknownValues() throws {
    let questions = try Self.questions([
      .upload(reply(row("1", product: "gems")), country: nil, user: "alice")
    ])
    let purchase = try #require(try questions.purchases(of: "alice").first)
    expectEqual(
      purchase.texts(
        "type", "unit_price", "amount", "currency", "price_basis", "country_code",
        "refunded_amount"), [nil, nil, nil, nil, "none", nil, nil])
  }

  @Test("the newest purchase comes first, and of equal dates the one seen last")
  func order() throws {
    let questions = try Self.questions([
      .upload(reply(row("1", on: "2026-01-02"), row("2", on: "2026-01-09")), user: "alice"),
      .upload(reply(row("3", on: "2026-01-05")), user: "alice", receipt: "second"),
      .upload(reply(row("4", on: "2026-01-02")), user: "alice", receipt: "third"),
    ])
    let ids = try questions.purchases(of: "alice").map { $0["transaction_id"]?.stringValue }
    expectEqual(ids, ["2", "3", "4", "1"])
  }

  @Test("pages join without a gap, whatever is bought meanwhile")
  func paging() throws {
    let fixture = try LedgerFixture()
    let rows = (1...7).map { row("\($0)", on: "2026-01-0\(1 + $0 / 2)") }
    try fixture.append([LiveProjectionsTests.app([]), .upload(reply(rows: rows), user: "alice")])
    let questions = try UserQuestions(fixture)
    let whole = try questions.purchases(of: "alice").map { $0["transaction_id"]?.stringValue }
    expectEqual(whole.count, 7)
    var seen: [String?] = []
    var next: String?
    repeat {
      let answer = try questions.answer(
        .purchases(after: next.flatMap { PurchaseCursor($0) }, limit: 2), about: "alice")
      let page = answer["purchases"]?.arrayValue ?? []
      #expect(page.count <= 2 && !page.isEmpty)
      seen += page.map { $0["transaction_id"]?.stringValue }
      next = answer["next"]?.stringValue
      try fixture.append([
        .upload(
          reply(row("new\(seen.count)", on: "2026-01-20")), user: "alice",
          receipt: "new \(seen.count)")
      ])
      try questions.live.catchUp()
    } while next != nil
    expectEqual(seen, whole)
  }

  @Test("a page that ends with the last purchase has no next page")
  func lastPage() throws {
    let questions = try Self.questions([.upload(reply(row("1"), row("2")), user: "alice")])
    let answer = try questions.answer(.purchases(after: nil, limit: 2), about: "alice")
    expectEqual(answer["purchases"]?.arrayValue?.count, 2)
    expectEqual(answer["next"], .null)
  }

  @Test(
    "a cursor is read as written, and nothing else is accepted",
    arguments: [
      "", "x", String(repeating: "0", count: 31), String(repeating: "0", count: 33),
      String(repeating: "F", count: 32), String(repeating: "g", count: 32),
      "+" + String(repeating: "0", count: 31),
    ])
  func cursor(_ text: String) throws {
    #expect(PurchaseCursor(text) == nil)
    let good = "00000193a1b2c3d4ffffffffffffffff"
    expectEqual(PurchaseCursor(good)?.text, good)
  }

  @Test("an unknown user and a user without purchases of this app get the same response")
  func nothing() throws {
    let other = AppRegistered(
      appFamilyID: "1e7c2f4a-9a0b-4c5d-8e6f-112233445566", name: "Other", bundleIDs: ["other"],
      products: [])
    let questions = try Self.questions([
      .app(other), .upload(reply(row("1")), user: "alice"), .upload(user: "bob", receipt: "none"),
    ])
    let unknown = try questions.answer(.purchases(after: nil, limit: 5), about: "nobody")
    #expect(unknown["purchases"] == .array([]) && unknown["next"] == .null)
    try expectEqual(questions.answer(.purchases(after: nil, limit: 5), about: "bob"), unknown)
    let family = try #require(UUID16(other.appFamilyID))
    let ofOther = try questions.answer(
      .purchases(after: nil, limit: 5), about: "alice", of: family)
    #expect(ofOther["purchases"] == .array([]) && ofOther["next"] == .null)
    let none = try #require(UUID16("2e7c2f4a-9a0b-4c5d-8e6f-112233445566"))
    let ofNone = try questions.answer(.purchases(after: nil, limit: 5), about: "alice", of: none)
    expectEqual(ofNone["purchases"], .array([]))
  }

  @Test("a user that only a signed transaction names is found by the token")
  func token() throws {
    let token = "7e2f1c3a-0000-4000-8000-00000000000a"
    let questions = try Self.questions([
      .notification(
        "ONE_TIME_CHARGE", uuid: "n",
        signed("1", ["appAccountToken": JSONText(stringLiteral: token)]))
    ])
    try expectEqual(questions.purchases(of: "token:\(token)").count, 1)
    #expect(try questions.purchases(of: token).isEmpty)
    #expect(try questions.purchases(of: "TOKEN:\(token)").isEmpty)
  }

  @Test(
    "states of a purchase",
    arguments: [
      ([:], "owned", "0", "0.00", nil),
      (["revocationDate": instant("2026-02-01")], "refunded", "2", "10.00", "2026-02-01"),
      (
        ["revocationDate": instant("2026-02-01"), "revocationPercentage": 50000],
        "partly_refunded", "1", "5.00", "2026-02-01"
      ),
      (
        ["revocationDate": instant("2026-02-01"), "revocationPercentage": 30000], "refunded", "0",
        "3.00", "2026-02-01"
      ),
      (
        ["revocationDate": instant("2026-02-01"), "inAppOwnershipType": "FAMILY_SHARED"], "revoked",
        "2", nil, "2026-02-01"
      ),
      (["isUpgraded": true], "upgraded", "0", "0.00", nil),
    ] as [(Members, String, String, String?, String?)])
  func states(
    _ members: Members, _ state: String, _ units: String, _ amount: String?, _ at: String?
  ) throws {
    // Two units for 10.00 EUR.
    let sold: [(String, JSONText)] = [("price", 10000), ("currency", "EUR"), ("quantity", 2)]
    let payload = signed(
      "1", signed: "2026-02-02", merging: sold + members.map { ($0.key, $0.value) })
    let questions = try Self.questions([
      .signedUpload(payload, user: "alice")
    ])
    let purchase = try #require(try questions.purchases(of: "alice").first)
    expectEqual(
      purchase.texts("state", "refunded_quantity", "refunded_amount", "refunded_at"),
      [
        state, units, amount, at.map { "\($0)T00:00:00.000Z" },
      ])
  }

  @Test("a refund that was reversed leaves the purchase owned, with both events in its evidence")
  func reversed() throws {
    let questions = try Self.questions([
      .signedUpload(signed("1", ["price": 5000, "currency": "EUR"]), user: "alice"),
      .notification(
        "REFUND", uuid: "r",
        signed(
          "1", signed: "2026-02-02",
          ["price": 5000, "currency": "EUR", "revocationDate": instant("2026-02-01")])),
      .notification(
        "REFUND_REVERSED", uuid: "s",
        signed("1", signed: "2026-02-05", ["price": 5000, "currency": "EUR"])),
    ])
    let purchase = try #require(try questions.purchases(of: "alice").first)
    expectEqual(
      purchase.texts("state", "refunded_quantity", "refunded_amount", "refunded_at"),
      [
        "owned", "0", "0.00", nil,
      ])
    expectEqual(purchase["positions"], .array([.number("1"), .number("2"), .number("3")]))
  }

  @Test("purchases of the Sandbox are marked as such")
  func sandbox() throws {
    let questions = try Self.questions([
      .upload(
        reply(row("1"), environment: "Sandbox"), user: "alice", endpoint: .sandbox)
    ])
    try expectEqual(
      questions.purchases(of: "alice").map { $0["environment"] }, [.string("sandbox")])
  }

  @Test("a list that grows large continues in the next response, far below 1 MiB")
  func largeAnswers() throws {
    let rows = (0..<100).map { index in
      row(
        "\(index)", product: String(repeating: "p", count: 20_000),
        on: "2026-01-05T00:00:\(index / 2 < 10 ? "0" : "")\(index / 2)Z")
    }
    let questions = try Self.questions([.upload(reply(rows: rows), user: "alice")])
    var count = 0
    var next: String?
    repeat {
      let answer = try questions.answer(
        .purchases(after: next.flatMap { PurchaseCursor($0) }, limit: 100), about: "alice")
      #expect(answer.bytes.count < 1 << 20)
      count += answer["purchases"]?.arrayValue?.count ?? 0
      next = answer["next"]?.stringValue
    } while next != nil
    expectEqual(count, 100)
  }
}
