// `fleet-ledgers`: a ledger that is split, and ledgers that are merged.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("Fleets of ledgers")
struct FleetLedgersTests {
  /// An event of a ledger, without what differs between ledgers.
  struct Event: Equatable {
    let position: Position
    let type: String
    let atMs: Int64
    let data: JSONValue
  }

  static let uploadCount = 120
  let directory: TemporaryDirectory
  let source: LedgerFixture

  /// The source: named uploads, each with two verifications that name it. Every third reply is reused by the next
  /// upload. Declarations are in between.
  init() throws {
    directory = try TemporaryDirectory()
    source = try LedgerFixture()
    var position = 0
    var reply = 0
    for number in 0..<Self.uploadCount {
      let upload = position
      var drafts = [draft(.receiptUploaded, #"{"name":\#(number)}"#)]
      drafts.append(draft(.receiptVerified, #"{"upload":\#(upload),"of":\#(number)}"#))
      if number % 3 == 1 {
        let text =
          #"{"upload":\#(upload),"of":\#(number),"was":\#(number - 1),"reply_of":\#(reply)}"#
        drafts.append(draft(.receiptVerified, text))
      } else {
        let text = #"{"upload":\#(upload),"of":\#(number),"reply":{"upload":\#(number)}}"#
        drafts.append(draft(.receiptVerified, text))
        reply = upload + 2
      }
      if number % 10 == 0 { drafts.append(draft(.appRegistered, #"{"upload":\#(number)}"#)) }
      _ = try source.append(drafts: drafts)
      position += drafts.count
    }
  }

  func draft(_ type: EventType, _ text: String) -> EventDraft {
    EventDraft(type, Array(text.utf8))
  }

  func run(_ arguments: String...) throws -> Outcome {
    try Outcome(of: "fleet-ledgers", arguments, in: directory.path)
  }

  func split(into count: Int, seed: Int, _ more: String...) throws -> [[Event]] {
    let outcome = try Outcome(
      of: "fleet-ledgers",
      ["split", source.path, "--into", String(count), "--seed", String(seed), "-o", "fleet"] + more,
      in: directory.path)
    try #require(outcome.exitCode == 0, "\(outcome.diagnostics)")
    return try (1...count).map { try events(directory.path("fleet/shop-\($0)")) }
  }

  func events(_ path: String) throws -> [Event] {
    let reader = try LogReader(try LedgerDirectory.open(path: path))
    #expect(reader.damage == nil)
    var events: [Event] = []
    try reader.read(from: 0) { chunk in
      try chunk.forEachEvent { line in
        #expect(line.verifyDigest(SHA256()))
        events.append(
          Event(
            position: line.position, type: String(decoding: line.type, as: UTF8.self),
            atMs: line.recordedAtMs, data: try JSONValue(line.data)))
      }
      return true
    }
    return events
  }

  /// Checks that verifications name their uploads and replies; returns how many name a reply.
  func checkReferences(_ events: [Event]) throws -> Int {
    var reusedCount = 0
    for event in events where event.type == "receipt.verified" {
      let upload = events[Int(try #require(event.data["upload"]?.integerValue))]
      #expect(upload.type == "receipt.uploaded" && upload.position < event.position)
      expectEqual(upload.data["name"], event.data["of"])
      var reply = event.data["reply"]
      if let position = event.data["reply_of"]?.integerValue {
        reusedCount += 1
        #expect(position < event.position)
        reply = events[Int(position)].data["reply"]
      }
      if let was = event.data["was"] { expectEqual(reply?["upload"], was) }
    }
    return reusedCount
  }

  @Test("a fleet of one ledger has the same events at the same positions")
  func splitIntoOne() throws {
    let fleet = try split(into: 1, seed: 1)
    expectEqual(fleet, [try events(source.path)])
  }

  @Test("verifications follow their uploads and name them, replies of other ledgers are copied")
  func splitIntoMany() throws {
    let fleet = try split(into: 5, seed: 2, "--stray-percent", "0", "--block-bytes", "4096")
    let all = try events(source.path)
    expectEqual(fleet.map(\.count).reduce(0, +), all.count)
    #expect(fleet.allSatisfy { $0.count > all.count / 20 })
    let reusedCount = try fleet.map(checkReferences).reduce(0, +)
    #expect((1..<Self.uploadCount / 3).contains(reusedCount))
    // A value that is not a position stays as it is.
    let declared = fleet.joined().filter { $0.type == "app.registered" }
    expectEqual(
      Set(declared.compactMap { $0.data["upload"]?.integerValue }),
      Set(stride(from: 0, to: Int64(Self.uploadCount), by: 10)))
    for ledger in fleet { expectEqual(ledger.map(\.atMs), ledger.map(\.atMs).sorted()) }
    let named = try JSONValue(
      Data(contentsOf: URL(fileURLWithPath: directory.path("fleet/fleet.json"))).map { $0 })
    expectEqual(
      named["ledgers"]?.arrayValue?.compactMap { $0["name"]?.stringValue },
      (1...5).map { "shop-\($0)" })
  }

  @Test("a merged ledger has all events by time, ledger id and position, and maps positions")
  func merge() throws {
    let fleet = try split(into: 4, seed: 3, "--spread-ms", "50", "--stray-percent", "0")
    let folders = (1...4).map { "fleet/shop-\($0)" }
    let outcome = try Outcome(
      of: "fleet-ledgers", ["merge"] + folders + ["-o", "merged", "--map", "map.csv"],
      in: directory.path)
    try #require(outcome.exitCode == 0, "\(outcome.diagnostics)")
    let merged = try events(directory.path("merged"))
    try expectEqual(checkReferences(merged), fleet.map(checkReferences).reduce(0, +))

    let ids = try folders.map {
      try LedgerDirectory.open(path: directory.path($0)).identity.id.description
    }
    let expected = fleet.indices.flatMap { ledger in
      fleet[ledger].map { (at: $0.atMs, id: ids[ledger], ledger: ledger, event: $0) }
    }.sorted { ($0.at, $0.id, $0.event.position) < ($1.at, $1.id, $1.event.position) }
    expectEqual(merged.map(\.atMs), expected.map(\.at))
    expectEqual(merged.map(\.type), expected.map(\.event.type))
    let map = try String(contentsOfFile: directory.path("map.csv"), encoding: .utf8)
    let lines =
      ["merged,ledger,position"]
      + expected.enumerated().map { "\($0),shop-\($1.ledger + 1),\($1.event.position)" }
    expectEqual(map, lines.joined(separator: "\n") + "\n")
  }

  @Test("a reference to nothing in its ledger is a reference to nothing in the merged one")
  func strays() throws {
    let fleet = try split(into: 3, seed: 4, "--stray-percent", "100")
    let folders = (1...3).map { "fleet/shop-\($0)" }
    let outcome = try Outcome(
      of: "fleet-ledgers", ["merge"] + folders + ["-o", "merged", "--map", "map.csv"],
      in: directory.path)
    try #require(outcome.exitCode == 0, "\(outcome.diagnostics)")
    let merged = try events(directory.path("merged"))
    let map = try String(contentsOfFile: directory.path("map.csv"), encoding: .utf8)
      .split(separator: "\n").dropFirst().map { $0.split(separator: ",") }
    var danglingCount = 0
    for (event, place) in zip(merged, map) {
      let ledger = fleet[(Int(place[1].dropFirst("shop-".count)) ?? 0) - 1]
      let before = ledger[Int(place[2]) ?? 0]
      expectEqual(before.type, event.type)
      guard event.type == "receipt.verified", let old = before.data["upload"]?.integerValue,
        let new = event.data["upload"]?.integerValue
      else { continue }
      if old < ledger.count {
        expectEqual(merged[Int(new)].type, ledger[Int(old)].type)
      } else {
        danglingCount += 1
        #expect(new >= merged.count)
      }
    }
    #expect(danglingCount > 10)
  }

  @Test("wrong usage and directories that are not ledgers are refused")
  func refusals() throws {
    let usage = ["split", source.path, "--seed", "1", "-o", "fleet"]
    try expectEqual(Outcome(of: "fleet-ledgers", usage, in: directory.path).exitCode, 2)
    try expectEqual(
      run("deal").diagnostics,
      """
      fleet-ledgers: unknown command 'deal'
      Try 'fleet-ledgers --help'.

      """)
    let twice = try run("merge", source.path, source.path, "-o", "merged", "--map", "map.csv")
    #expect(twice.exitCode == 2 && twice.diagnostics.contains("have the same id"))
    let none = try run("merge", "none", "-o", "merged", "--map", "map.csv")
    #expect(none.exitCode == 1 && none.diagnostics.contains("there is no such directory"))
  }
}
