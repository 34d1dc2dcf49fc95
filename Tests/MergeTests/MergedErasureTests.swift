// Erasures of the sources in the merged ledger: before it is made, between two runs, and later than what a run takes.
import Base
import Erasure
import Ledger
import Merge
import Projections
import TestSupport
import Testing

@Suite struct MergedErasureTests {
  /// Two ledgers with uploads of u1 in both and of others.
  private static func shops() throws -> [Shop] {
    let shops = [try Shop(1), try Shop(2)]
    for (index, shop) in shops.enumerated() {
      try shop.register(at: "2026-02-01")
      let receipts = ["a", "b", "c"].map { "\($0)\(index)" }
      for (number, receipt) in receipts.enumerated() {
        let user = number == 1 ? "u2-\(index)" : "u1"
        let purchase = row("\(index)\(number)", ["app_account_token": token(index, number)])
        try shop.append(
          .upload(reply(purchase), user: user, receipt: receipt), at: "2026-02-02")
      }
      try shop.append(.upload(user: "u1", receipt: "shared"), at: "2026-02-03")
    }
    return shops
  }

  private static func token(_ index: Int, _ number: Int) -> JSONText {
    JSONText(stringLiteral: "3f2a7c11-aaaa-4bbb-8ccc-0000000000\(index)\(number)")
  }

  private static func check(_ place: MergedPlace, _ shops: [Shop], _ name: String = "all") throws {
    expectEqual(try place.findings(name), [])
    let verification = try place.verification(shops, name)
    expectEqual(verification.differences, [])
    expectEqual(verification.erasedCount, 0)
    let audit = try LogAudit(try LedgerDirectory.open(path: place.path(name))).run()
    expectEqual(audit.unredactedCount, 0)
    expectEqual(audit.unfinishedErasures, [])
  }

  private static func users(_ place: MergedPlace, _ name: String = "all") throws -> [String] {
    try place.fixture(name).csv("users user_identifier --environment all")
      .split(whereSeparator: \.isNewline).dropFirst()
      .map { String($0.split(separator: ",").first ?? "") }
  }

  private static func holds(_ text: String, _ place: MergedPlace, of origin: String) throws -> Bool
  {
    try place.lines().contains { $0.contains(text) && $0.contains(origin) }
  }

  @Test("what was erased before the merge is redacted in it, by the same erasures in their places")
  func before() throws {
    let shops = try Self.shops()
    try shops[0].erase("u1", at: "2026-02-04")
    try shops[1].erase("u1", at: "2026-02-05")
    let place = try MergedPlace()
    let report = try place.merge(shops, until: "2026-02-06")
    expectEqual(report.run?.erasures, [])
    try Self.check(place, shops)
    // The two ledgers have their erasures at one position; they are two users here.
    let users = try Self.users(place)
    expectEqual(users.count { $0.hasPrefix("(redacted ") }, 2)
    expectEqual(users.filter { !$0.hasPrefix("(redacted ") }, ["u2-0", "u2-1"])
    #expect(!(try place.lines().joined().contains("\"u1\"")))
  }

  @Test("an identifier that an erasure keeps is not named as one that others still hold")
  func keptIdentifier() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-04")
    try shops[0].erase(.position(1), at: "2026-02-05")
    let report = try place.merge(shops, until: "2026-02-06")
    #expect(report.redactedCount > 0)
    expectEqual(report.held, [])
  }

  @Test("an erasure between two runs is repeated before anything is merged, and others are named")
  func between() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-04")
    _ = try place.fixture().rebuilt()
    try shops[0].erase("u1", at: "2026-02-05")
    #expect(try Self.holds("\"u1\"", place, of: "shop.example/1"))
    expectEqual(try place.verification(shops).erasedCount, 5)
    let report = try place.merge(shops, until: "2026-02-06")
    expectEqual(report.redactedCount, 5)
    expectEqual(place.forgottenCount, 1)
    #expect(!(try Self.holds("\"u1\"", place, of: "shop.example/1")))
    expectEqual(report.held.map(\.member), ["user_identifier"])
    expectEqual(report.held.map(\.heldBy), ["shop.example/2"])
    expectEqual(report.held.map(\.eventCount), [3])
    try Self.check(place, shops)
    try place.merge(shops, until: "2026-02-06", into: "fresh")
    try Self.check(place, shops, "fresh")
    let report2 = "sales --environment all --include-pending"
    let kept = try place.fixture().figures(report2)
    try expectEqual(kept, place.fixture("fresh").figures(report2))
  }

  @Test(
    "an erased upload is what its source gives, though its receipt's SHA-256 is known later, or no longer"
  )
  func receiptKnownElsewhere() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    // u2 uploaded what u1 did; u1 alone uploaded another receipt.
    try shops[1].append(.upload(user: "u2", receipt: "shared"), at: "2026-02-04")
    try shops[1].erase("u1", at: "2026-02-05")
    try place.merge(shops, until: "2026-02-06")
    try Self.check(place, shops)
    try shops[1].append(.upload(user: "u3", receipt: "a1"), at: "2026-02-07")
    try place.merge(shops, until: "2026-02-08")
    try Self.check(place, shops)
    try shops[1].erase("u2", at: "2026-02-09")
    try place.merge(shops, until: "2026-02-10")
    try Self.check(place, shops)
  }

  @Test("an erasure later than what a run takes is repeated at its end, and keeps its name")
  func later() throws {
    let shops = try Self.shops()
    try shops[0].append(.upload(user: "u1", receipt: "d"), at: "2026-02-06")
    try shops[0].erase("u1", at: "2026-02-07")
    let place = try MergedPlace()
    let report = try place.merge(shops, until: "2026-02-05")
    expectEqual(report.run?.erasures.count, 1)
    try Self.check(place, shops)
    #expect(!(try Self.holds("\"u1\"", place, of: "shop.example/1")))
    // The upload of 6 February comes with the next run, the erasure's own events too.
    let next = try place.merge(shops, until: "2026-02-08")
    expectEqual(next.run?.erasures, [])
    try Self.check(place, shops)
    expectEqual(try Self.users(place).count { $0.hasPrefix("(redacted ") }, 1)
  }

  @Test("an erasure of what earlier runs took, later than what this one takes, comes at once")
  func laterOfEarlier() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-02T12:00:00Z")
    try shops[0].erase("u1", at: "2026-02-07")
    let report = try place.merge(shops, until: "2026-02-02T13:00:00Z")
    expectEqual(report.run?.eventCount, 0)
    expectEqual(report.run?.erasures.count, 1)
    expectEqual(report.redactedCount, 4)
    try Self.check(place, shops)
    #expect(!(try Self.holds("\"u1\"", place, of: "shop.example/1")))
    expectEqual(try place.merge(shops, until: "2026-02-02T13:00:00Z").run, nil)
    try place.merge(shops, until: "2026-02-08")
    try Self.check(place, shops)
    expectEqual(try Self.users(place).count { $0.hasPrefix("(redacted ") }, 1)
  }

  @Test("the id of a receipt whose digest was erased is that of its other uploads")
  func receiptID() throws {
    let shops = [try Shop(1), try Shop(2)]
    for shop in shops { try shop.register(at: "2026-02-01") }
    try shops[1].append(.upload(reply(row("1")), user: "u1", receipt: "r"), at: "2026-02-02")
    try shops[1].append(.upload(reply(row("1")), user: "u2", receipt: "r"), at: "2026-02-03")
    try shops[1].erase("u1", at: "2026-02-04")
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-05")
    try Self.check(place, shops)
    let receipts = try place.fixture().csv("receipts --environment all")
    expectEqual(receipts.split(separator: "\n").count, 2)
  }

  @Test(
    "the id stays that of the other uploads, whenever the content of one is erased",
    arguments: [0, 1])
  func receiptIDOfAnErasedUpload(runsBefore: Int) throws {
    let shops = [try Shop(1), try Shop(2)]
    for shop in shops { try shop.register(at: "2026-02-01") }
    let upload = try shops[1].append(
      .upload(reply(row("1")), user: "u1", receipt: "r"), at: "2026-02-02")
    try shops[1].append(.upload(reply(row("1")), user: "u2", receipt: "r"), at: "2026-02-03")
    let place = try MergedPlace()
    if runsBefore > 0 { try place.merge(shops, until: "2026-02-04") }
    try shops[1].erase(.position(upload), at: "2026-02-05")
    try place.merge(shops, until: "2026-02-06")
    try Self.check(place, shops)
    let receipts = try place.fixture().csv("receipts --environment all")
    expectEqual(receipts.split(separator: "\n").count, 2)
  }
}

extension LedgerFixture {
  /// The rows of a report without the columns in which positions and names show.
  fileprivate func figures(_ line: String) throws -> [String] {
    let text = try ndjson(try ReportWords(line).request, from: try rebuilt())
    return try text.split(separator: "\n").map { row in
      guard case .object(let members) = try JSONValue(Array(row.utf8)) else { return "" }
      let figures = members.filter {
        !$0.key.hasSuffix("position") && !$0.key.hasSuffix("positions")
          && $0.key != "user_identifier"
      }
      return String(decoding: JSONValue.object(figures).bytes, as: UTF8.self)
    }.sorted()
  }
}
