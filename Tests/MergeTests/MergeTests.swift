// What a merge makes of the events of several ledgers, and that its figures are those of one ledger.
import Base
import Ledger
import Merge
import Projections
import TestSupport
import Testing

@Suite struct MergeTests {
  private static let reports = [
    "revenue --by period,app,product,country,environment,basis,trust --environment all",
    "revenue --in EUR --refunds sale-date --environment all --include-pending",
    "journal --environment all --include-pending", "sales --environment all --include-pending",
    "exceptions --environment all", "exceptions --in EUR --include-pending --environment all",
    "receipts --environment all", "users --environment all --include-pending",
    "subscriptions --environment all --at 2026-02-10",
    "subscriptions --by month --environment all --at 2026-02-10",
  ]

  // MARK: Identity

  @Test("a receipt that came into two ledgers is one, pending in one and final in the other")
  func sharedReceipt() throws {
    let (one, two) = (try Shop(1), try Shop(2))
    try one.register(at: "2026-02-01")
    try two.register(at: "2026-02-02")
    try one.append(.upload(user: "u1", receipt: "r"), at: "2026-02-03")
    try two.append(.upload(reply(row("1")), user: "u1", receipt: "r"), at: "2026-02-04")
    let place = try MergedPlace()
    let report = try place.merge([two, one], until: "2026-02-05")
    expectEqual(report.run?.eventCount, 5)
    expectEqual(report.run?.sources.map(\.origin), ["shop.example/1", "shop.example/2"])
    let receipts = try place.fixture().csv("receipts --environment all")
    expectEqual(receipts.split(separator: "\n").count, 2)
    #expect(receipts.contains(",2,"))
    let text = try place.lines().joined()
    #expect(text.contains(one.family.description))
    #expect(!text.contains(two.family.description))
    expectEqual(try place.findings(), [])
    #expect(try place.verification([one, two]).isEqual)
  }

  @Test("families with a bundle id in common are one, with the bundles, products and grants of all")
  func families() throws {
    let shops = [try Shop(1), try Shop(2), try Shop(3)]
    let coins = AppRegistered.Product(id: "coins", type: .consumable)
    let pro = AppRegistered.Product(id: "pro", type: .autoRenewable)
    try shops[0].register(["app"], products: [coins], at: "2026-02-01")
    try shops[1].register(["app", "zoo"], products: [pro], at: "2026-02-02")
    try shops[2].register(["other"], at: "2026-02-03")
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-04")
    let rows = try place.fixture().rebuilt().prepare("SELECT data FROM apps ORDER BY position")
    var apps: [AppRegistered] = []
    while try rows.step() { apps.append(try AppRegistered(data: rows.bytes(0))) }
    expectEqual(apps.map(\.bundleIDs), [["app", "zoo"], ["other"]])
    expectEqual(apps.map(\.products), [[coins, pro], []])
    expectEqual(
      apps.map(\.appFamilyID), [shops[0].family.description, shops[2].family.description])
  }

  @Test("a registration that joins two families that were merged apart is refused")
  func joinedFamilies() throws {
    let shops = [try Shop(1), try Shop(2)]
    try shops[0].register(["app"], at: "2026-02-01")
    try shops[1].register(["zoo"], at: "2026-02-02")
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-03")
    try shops[0].register(["app", "zoo"], at: "2026-02-04")
    let families = shops.map(\.family.description)
    #expect(throws: MergeError.joinedFamilies(families[1], families[0])) {
      try place.merge(shops, until: "2026-02-05")
    }
    try place.merge(shops, until: "2026-02-05", into: "new")
    #expect(try place.verification(shops, "new").isEqual)
  }

  @Test("users of one identifier are one person, unless a prefix tells them apart")
  func users() throws {
    let shops = [try Shop(1), try Shop(2)]
    for (index, shop) in shops.enumerated() {
      try shop.register(at: "2026-02-01")
      let receipt = "r\(index)"
      try shop.append(
        .upload(reply(row("\(index)")), user: "u\"1", receipt: receipt), at: "2026-02-02")
    }
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-03", into: "one")
    let users = "users user_identifier --environment all"
    let one = try place.fixture("one").csv(users)
    expectEqual(one.split(separator: "\n").count, 2)
    place.merge.userPrefixes = ["shop.example/2": "b\"/"]
    try place.merge(shops, until: "2026-02-03", into: "two")
    let two = try place.fixture("two").csv(users)
    expectEqual(two.split(separator: "\n").count, 3)
    #expect(two.contains("b\"\"/u\"\"1"))
    place.merge.userPrefixes = ["shop.example/2": "c"]
    #expect(throws: MergeError.otherPrefix(origin: "shop.example/2")) {
      try place.merge(shops, until: "2026-02-04", into: "two")
    }
    place.merge.userPrefixes = ["elsewhere": "c"]
    #expect(throws: MergeError.unknownOrigin("elsewhere")) {
      try place.merge(shops, until: "2026-02-04", into: "two")
    }
  }

  // MARK: Duplicates

  @Test("a notification that came into two ledgers is merged once, by its UUID")
  func notifications() throws {
    let shops = [try Shop(1), try Shop(2)]
    for shop in shops {
      try shop.register(at: "2026-02-01")
      try shop.append(
        .notification("DID_RENEW", uuid: "u", signed("1", line: "5", on: "2026-01-05")),
        at: "2026-02-02")
    }
    try shops[1].append(
      .notification("DID_RENEW", uuid: "v", signed("2", line: "6", on: "2026-01-06")),
      at: "2026-02-03")
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-03")
    try place.merge(shops, until: "2026-02-04")
    let rows = try place.fixture().rebuilt().prepare(
      "SELECT notification_uuid FROM notifications ORDER BY position")
    var uuids: [String] = []
    while try rows.step() { uuids.append(rows.text(0)) }
    expectEqual(uuids, ["u", "v"])
    #expect(try place.verification(shops).isEqual)
  }

  @Test("a file of Apple's that two ledgers declared counts once; a later one stays current")
  func settlementFiles() throws {
    func file(_ digest: String, part: Int = 1, of parts: Int = 1) -> EventDraft {
      let hex = digest.utf8.first.map { String(repeating: Character(UnicodeScalar($0)), count: 64) }
      let declared = SettlementDeclared(
        source: "f", sourceSHA256Hex: hex ?? "", kind: .financial, month: "FY2026-P01",
        region: "EU", part: part, partCount: parts, lines: .init())
      return EventDraft(.settlementDeclared, declared.data)
    }
    let (one, two) = (try Shop(1), try Shop(2))
    try one.append(drafts: [file("a", of: 2)], atMs: ms("2026-02-01"))
    try two.append(drafts: [file("a", of: 2)], atMs: ms("2026-02-02"))
    try one.append(drafts: [file("a", part: 2, of: 2)], atMs: ms("2026-02-03"))
    try one.append(drafts: [file("b")], atMs: ms("2026-02-04"))
    try two.append(drafts: [file("a", part: 2, of: 2)], atMs: ms("2026-02-05"))
    try two.append(drafts: [file("a")], atMs: ms("2026-02-06"))
    let place = try MergedPlace()
    try place.merge([one, two], until: "2026-02-05")
    try place.merge([one, two], until: "2026-02-07")
    let files = try SettlementFiles(try place.fixture().rebuilt()).files
    expectEqual(files.filter(\.isCurrent).map(\.name), ["bbbbbbbb"])
    expectEqual(files.filter(\.isWhole).map(\.name), ["aaaaaaaa", "bbbbbbbb"])
    #expect(try place.verification([one, two]).isEqual)
  }

  @Test("snapshots and accepted histories are not copied; what names an event names it still")
  func notCopied() throws {
    let shop = try Shop(1)
    try shop.register(at: "2026-02-01")
    _ = try shop.fixture.createSnapshot()
    let upload = try shop.append(.upload(receipt: "r"), at: "2026-02-03")
    try shop.append(.verify(upload, reply(row("1"))), at: "2026-02-04")
    try shop.append(.verify(7, reply(row("2"))), at: "2026-02-05")
    let place = try MergedPlace()
    try place.merge([shop], until: "2026-02-06")
    let lines = try place.lines()
    expectEqual(lines.count, 5)
    #expect(lines[3].contains(#""position":3},"upload":2,"#))
    #expect(lines[4].contains(#""position":4},"upload":999999999999999999,"#))
    #expect(try place.verification([shop]).isEqual)
  }

  @Test("what a ledger trusts is named with it")
  func trust() throws {
    let shops = [try Shop(1), try Shop(2)]
    for (shop, host) in zip(shops, ["one.example", "buy.itunes.apple.com"]) {
      let trust = TrustDeclared(
        productionHost: host, sandboxHost: "sandbox.itunes.apple.com", roots: [],
        intermediates: [], localTestingSigners: [])
      try shop.append(drafts: [trust.draft], atMs: ms("2026-02-01"))
    }
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-02")
    let foreign = try TrustQueries(try place.fixture().rebuilt()).foreign()
    expectEqual(
      foreign.flatMap(\.trust.foreignTrust),
      ["host one.example for production, by shop.example/1"])
    expectEqual(foreign.map(\.trust.mergedFrom), ["shop.example/1"])
  }

  // MARK: Figures

  @Test(
    "the reports of a merged ledger are those of one ledger with the same events in this order",
    arguments: [SeededRandom().seed, SeededRandom().seed, 1])
  func figures(seed: UInt64) throws {
    var fleet = try RandomFleet(seed: seed, shopCount: 3)
    try fleet.run(stepCount: 90)
    let place = try MergedPlace()
    try place.merge(fleet.shops, until: fleet.endTime)
    let (merged, one) = (try place.fixture(), fleet.one.fixture)
    #expect(try one.csv("sales --environment all").count > 1000)
    for report in Self.reports {
      try expectEqual(merged.csv(report), one.csv(report), "seed \(seed): \(report)")
    }
    expectEqual(try place.findings(), [])
    #expect(try place.verification(fleet.shops).isEqual, "seed \(seed)")
  }

  @Test(
    "a merge that was repeated is, event for event, the fresh one up to the same time",
    arguments: [SeededRandom().seed, 2])
  func repeated(seed: UInt64) throws {
    var fleet = try RandomFleet(seed: seed, shopCount: 3)
    let place = try MergedPlace()
    for _ in 0..<4 {
      try fleet.run(stepCount: 15)
      try place.merge(fleet.shops, into: "repeated")
    }
    try place.merge(fleet.shops, until: fleet.endTime, into: "repeated")
    try place.merge(fleet.shops, until: fleet.endTime, into: "fresh")
    let (repeated, fresh) = (try place.lines("repeated"), try place.lines("fresh"))
    try expectEqual(comparable(repeated), comparable(fresh), "seed \(seed)")
    #expect(repeated.count > fresh.count)
    expectEqual(try place.findings("repeated"), [])
    #expect(try place.verification(fleet.shops, "repeated").isEqual, "seed \(seed)")
  }
}
