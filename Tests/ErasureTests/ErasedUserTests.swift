// The names of erased users, and other users' claims against them (rule R6).
import Base
import Erasure
import Ledger
import Revenue
import TestSupport
import Testing

@Suite struct ErasedUserTests {
  @Test(
    "Only a name that an erasure writes is an erased user's",
    arguments: [
      ("(redacted 7)", 7), ("(redacted 0)", 0), ("(redacted 7.2)", 7), ("token:(redacted 7)", 7),
      ("token:(redacted 7.12)", 7), ("(redacted 7.1)", nil), ("(redacted 07)", nil),
      ("(redacted )", nil), ("(redacted 7", nil), ("(redacted 7))", nil), ("(redacted -7)", nil),
      (" (redacted 7)", nil), ("(redacted 7.)", nil), ("(redacted 9999999999999999999)", nil),
      ("", nil), ("token:", nil), ("u1", nil),
    ] as [(String, Int?)])
  func names(_ text: String, erasure: Int?) {
    let found = Array(text.utf8).withUnsafeBytes { ErasedUser.erasure(of: $0) }
    expectEqual(found, erasure)
  }

  @Test("A name is read as written")
  func roundTrip() {
    for ordinal in [1, 2, 30] {
      let name = Array(ErasedUser.name(erasure: 12, ordinal: ordinal).utf8)
      expectEqual(name.withUnsafeBytes { ErasedUser.erasure(of: $0) }, 12)
    }
  }

  /// The claims and replays among the exceptions.
  private static func claims(_ fixture: LedgerFixture) throws -> [String] {
    try fixture.figures("exceptions --environment all", at: fixture.eventCount).compactMap { row in
      let value = try JSONValue(Array(row.utf8))
      guard let word = value["exception"]?.stringValue, let position = value["position"] else {
        return nil
      }
      return ["claimed_by_other_user", "transaction_replayed"].contains(word)
        ? "\(word) \(String(decoding: position.bytes, as: UTF8.self))" : nil
    }
  }

  @Test(
    "Claims before an erasure stay; the first one after it is not a claim, and holds against the next user"
  )
  func claimsAfterErasure() throws {
    let coins = AppRegistered.Product(id: "coins", type: .consumable)
    let fixture = try LedgerFixture()
    try fixture.append([
      .app(
        AppRegistered(
          appFamilyID: TestEvent.signedFamily, name: "App", bundleIDs: ["app"], products: [coins])),
      .upload(reply(row("500")), user: "u1", receipt: "one"),
      .upload(reply(row("500")), user: "u2", receipt: "two"),
    ])
    let before = try Self.claims(fixture)
    expectEqual(before, ["claimed_by_other_user 4", "transaction_replayed 4"])
    try fixture.redact { event in
      event.position == 1 ? Taking() : nil
    }
    try expectEqual(Self.claims(fixture), before)
    try fixture.append([
      .upload(reply(row("500")), user: "u2", receipt: "two"),
      .upload(reply(row("500")), user: "u2", receipt: "two"),
    ])
    try expectEqual(Self.claims(fixture), before)
    try fixture.append([.upload(reply(row("500")), user: "u3", receipt: "three")])
    let last = fixture.eventCount - 1
    expectEqual(
      Set(try Self.claims(fixture)),
      Set(before + ["claimed_by_other_user \(last)", "transaction_replayed \(last)"]))
  }
}
