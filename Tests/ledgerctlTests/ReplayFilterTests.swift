// Filters of `replay`: whichever blocks they skip, they print the events that a scan of every line finds.
import Base
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite(.bounded) struct ReplayFilterTests {
  /// An event as the test reads it from its line.
  private struct Line {
    let text: String
    let position: Int
    let type: String
    let timeMs: Int64
    /// Of uploads, and of the upload that a verification names.
    var receipt: String?
    var user: String?
    var app: String?
  }

  private static let otherApp = "5d8e1b62-0c3f-4b7a-9d2e-998877665544"

  /// A log of many small blocks, with two apps, one of which is registered repeatedly.
  private static func ledger(_ seed: UInt64) throws -> (LedgerFixture, [Line]) {
    let fixture = try LedgerFixture(blockByteCount: 3000, segmentByteCount: 40_000)
    var generator = HistoryGenerator(seed: seed)
    try fixture.append(generator.steps(120))
    let other = AppRegistered(
      appFamilyID: otherApp, name: "Other", bundleIDs: ["other"], products: [])
    try fixture.append([.app(other)] + generator.steps(1) + [.app(other)])
    return (fixture, try lines(fixture))
  }

  private static func lines(_ fixture: LedgerFixture) throws -> [Line] {
    var lines: [Line] = []
    try LogReader(fixture.directory).read(from: 0) { chunk in
      try chunk.forEachEvent { event in
        let data = try JSONValue(Array(event.data))
        var line = Line(
          text: String(decoding: event.bytes, as: UTF8.self), position: event.position,
          type: String(decoding: event.type, as: UTF8.self), timeMs: event.recordedAtMs,
          receipt: data["receipt_id"]?.stringValue, user: data["user_identifier"]?.stringValue,
          app: data["app_family_id"]?.stringValue)
        if let upload = data["upload"]?.integerValue {
          let named = lines[Int(upload)]
          (line.receipt, line.user, line.app) = (named.receipt, named.user, named.app)
        }
        lines.append(line)
      }
      return true
    }
    return lines
  }

  /// The options of a random filter, and which lines pass it.
  private static func filter(
    _ lines: [Line], _ random: inout SeededRandom
  ) -> (words: String, passes: (Line) -> Bool) {
    var words: [String] = []
    var tests: [(Line) -> Bool] = []
    if random.chance(percent: 60) {
      let rare = ["app.registered", "prices.declared", "rates.declared"]
      let all = rare + ["receipt.uploaded", "receipt.verified"]
      let from = random.chance(percent: 60) ? rare : all
      let types = Set([random.pick(from), random.pick(from)])
      words.append("--type \(types.sorted().joined(separator: ","))")
      tests.append { types.contains($0.type) }
    }
    if random.chance(percent: 30) {
      let app = random.pick([
        otherApp, lines.first { $0.type == "receipt.uploaded" }?.app ?? otherApp,
      ])
      words.append("--app \(app)")
      tests.append { $0.app == app }
    }
    if random.chance(percent: 20), let receipt = random.pick(lines).receipt {
      words.append("--receipt \(receipt)")
      tests.append { $0.receipt == receipt }
    }
    if random.chance(percent: 20), let user = random.pick(lines).user {
      words.append("--user '\(user)'")
      tests.append { $0.user == user }
    }
    if random.chance(percent: 40) {
      let first = random.below(lines.count)
      words.append("--from \(first)")
      tests.append { $0.position >= first }
    }
    if random.chance(percent: 30), !words.contains(where: { $0.hasPrefix("--from") }) {
      let last = random.pick(lines).timeMs
      let time = Date(timeIntervalSince1970: Double(last) / 1000).formatted(.iso8601)
      words.append("--until \(time)")
      tests.append { $0.timeMs <= last }
    }
    if random.chance(percent: 20) {
      let last = random.below(lines.count)
      words.append("--as-of \(last)")
      tests.append { $0.position <= last }
    }
    return (words.joined(separator: " "), { line in tests.allSatisfy { $0(line) } })
  }

  @Test func filterPrintsWhatAFullScanFinds() throws {
    var random = SeededRandom()
    let (fixture, lines) = try Self.ledger(random.seed)
    let sandbox = try Sandbox()
    for round in 0..<60 {
      // First without projections, then with projections at the log's head, then with older ones.
      if round == 20 { _ = try fixture.current() }
      if round == 40 { try fixture.append([.prices(["coins - EUR 1 2026-01-01"])]) }
      let lines = round < 40 ? lines : try Self.lines(fixture)
      let (words, passes) = Self.filter(lines, &random)
      let found = try sandbox.run("ledgerctl replay \(words) --ledger '\(fixture.path)'")
      let expected = lines.filter(passes).map { $0.text + "\n" }.joined()
      expectEqual(
        found, Outcome(output: expected, diagnostics: "", exitCode: 0),
        "seed \(random.seed), round \(round): \(words)")
    }
  }

  /// A skipped block is not read: damage in it goes unnoticed.
  @Test func blocksWithoutARareTypeAreNotRead() throws {
    let fixture = try LedgerFixture(blockByteCount: 3000)
    let uploads = (0..<40).map { TestEvent.upload(reply(row("\($0)")), receipt: "\($0)") }
    try fixture.append([.prices(["coins - EUR 1 2026-01-01"])] + uploads)
    try fixture.append([.rates(source: "bank", ["2026-01-01 EUR USD 2"])])
    _ = try fixture.current()
    let log = fixture.path + "/log/00000000000000000000.jsonl.gz"
    var bytes = try Data(contentsOf: URL(fileURLWithPath: log))
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: URL(fileURLWithPath: log))
    let sandbox = try Sandbox()
    for (types, count, exitCode) in [
      ("prices.declared,rates.declared", 2, Int32(0)), ("app.registered", 0, 0),
      ("receipt.uploaded", nil, 20),
    ] as [(String, Int?, Int32)] {
      let found = try sandbox.run("ledgerctl replay --type \(types) --ledger '\(fixture.path)'")
      expectEqual(found.exitCode, exitCode, "\(types): \(found.diagnostics)")
      if let count { expectEqual(found.output.split(separator: "\n").count, count, "\(types)") }
    }
  }
}
