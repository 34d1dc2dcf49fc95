// Plans: parts without gaps, heads, copies that hold only a part, a running writer.
import Base
import Foundation
import Ledger
import LedgerRules
import TestSupport
import Testing

/// A ledger of several segments and unsealed tails.
private func ledger() throws -> LedgerFixture {
  let fixture = try LedgerFixture(blockByteCount: 4 << 10, segmentByteCount: 12 << 10)
  var generator = HistoryGenerator(seed: 5)
  try fixture.append(generator.steps(150))
  return fixture
}

private func copy(_ name: String, from path: String, to target: String) throws {
  try FileManager.default.copyItem(atPath: "\(path)/\(name)", toPath: "\(target)/\(name)")
}

/// A folder for some of a ledger's files, with its identity.
private func partialCopy(of path: String) throws -> TemporaryDirectory {
  let target = try TemporaryDirectory()
  try FileManager.default.createDirectory(
    atPath: target.path("log"), withIntermediateDirectories: false,
    attributes: [.posixPermissions: 0o700])
  try copy("ledger.json", from: path, to: target.path)
  return target
}

@Suite(.bounded) struct PlanTests {
  @Test func partsCoverTheLog() throws {
    let fixture = try ledger()
    let plan = try plan(fixture.path)
    let head = try LogReader(fixture.directory).head
    expectEqual(plan["size"]?.integerValue, Int64(fixture.eventCount))
    expectEqual(plan["root"]?.stringValue, head.root.hex)
    expectEqual(plan["id"]?.stringValue, fixture.directory.identity.id.description)
    let ranges = plan.ranges
    #expect(ranges.count >= 3)
    #expect(ranges.first?.lowerBound == 0 && ranges.last?.upperBound == head.size)
    #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
    let scans = try ranges.map { try scan(fixture.path, $0) }
    expectEqual(scans.last?.text("root_after"), head.root.hex)
  }

  @Test func aHeadMayLieAnywhere() throws {
    let fixture = try ledger()
    let whole = try plan(fixture.path)
    let reader = try LogReader(fixture.directory)
    for size in [0, 1, 37, fixture.eventCount - 1, fixture.eventCount] {
      let plan = try plan(fixture.path, size: size)
      expectEqual(plan["root"]?.stringValue, (try reader.frontier(at: size).root.hex))
      expectEqual(plan.ranges.last?.upperBound ?? 0, size)
      // Parts that end before the head are those of the whole log.
      let parts = plan["parts"]?.arrayValue ?? []
      #expect(
        parts.dropLast().elementsEqual(
          (whole["parts"]?.arrayValue ?? []).prefix(max(parts.count - 1, 0))))
      guard let last = plan.ranges.last else { continue }
      try expectEqual(scan(fixture.path, last).text("root_after"), plan["root"]?.stringValue)
    }
    let beyond = failure { _ = try plan(fixture.path, size: fixture.eventCount + 1) }
    expectEqual(beyond?.exitCode, .failed)
    expectEqual(beyond?.cause, "the log ends at \(fixture.eventCount)")
    let range = failure { _ = try scan(fixture.path, 0..<fixture.eventCount + 1) }
    expectEqual(range?.exitCode, .failed)
  }

  /// Tasks on other machines get the identity and the file that holds their range.
  @Test func aCopyOfOneSegmentIsEnough() throws {
    let fixture = try ledger()
    for part in try plan(fixture.path)["parts"]?.arrayValue ?? [] {
      guard part["kind"]?.stringValue == "segment" else { continue }
      let name = try #require(part["name"]?.stringValue)
      let range = Int(part["first"]?.integerValue ?? 0)..<Int(part["end"]?.integerValue ?? 0)
      let folder = try partialCopy(of: fixture.path)
      try copy("log/\(name)", from: fixture.path, to: folder.path)
      let (part, whole) = try (scan(folder.path, range), scan(fixture.path, range))
      #expect(part.events == whole.events && part.edges == whole.edges)
      expectEqual(part.summary, whole.summary)
    }
  }

  @Test func tailsNeedTheSegmentBeforeThem() throws {
    let fixture = try ledger()
    let parts = try plan(fixture.path)["parts"]?.arrayValue ?? []
    let segment = try #require(parts.last { $0["kind"]?.stringValue == "segment" })
    let range = try #require(try plan(fixture.path).ranges.last)
    let folder = try partialCopy(of: fixture.path)
    for name in try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/log")
    where name.hasPrefix("tail-") { try copy("log/\(name)", from: fixture.path, to: folder.path) }
    expectEqual(failure { _ = try scan(folder.path, range) }?.exitCode, .corrupted)
    let name = try #require(segment["name"]?.stringValue)
    try copy("log/\(name)", from: fixture.path, to: folder.path)
    try expectEqual(scan(folder.path, range).summary, scan(fixture.path, range).summary)
  }

  /// A plan reads only the first and last bytes of closed segments: a copy may have holes between them.
  @Test func closedSegmentsMayHaveHoles() throws {
    let fixture = try ledger()
    let folder = try partialCopy(of: fixture.path)
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/log")
    let newest = names.filter { $0.hasSuffix(".jsonl.gz") }.max()
    for name in names {
      guard name.hasSuffix(".jsonl.gz"), name != newest else {
        try copy("log/\(name)", from: fixture.path, to: folder.path)
        continue
      }
      let content = [UInt8](
        try Data(contentsOf: URL(fileURLWithPath: fixture.path + "/log/" + name)))
      var holed = [UInt8](repeating: 0, count: content.count)
      holed.replaceSubrange(..<4096, with: content[..<4096])
      holed.replaceSubrange((content.count - 4096)..., with: content[(content.count - 4096)...])
      #expect(
        FileManager.default.createFile(
          atPath: folder.path("log/\(name)"), contents: Data(holed),
          attributes: [.posixPermissions: 0o400]))
    }
    try expectEqual(plan(folder.path), plan(fixture.path))
  }

  @Test func aWriterMaySealMeanwhile() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path("ledger")
    let directory = try LedgerDirectory.create(path: path, origin: "receipts.example/test")
    var options = WriterOptions()
    options.blockByteCount = 1 << 20
    options.segmentByteCount = 2 << 20
    options.sealingRestMs = 0
    options.sealingDelayMs = 0
    let writer = try LedgerWriter.open(directory, options: options)
    let stop = Monitor(false)
    let thread = try WorkerThread.start {
      var number = 0
      while !stop.withLock({ $0 }) {
        let event = TestEvent.upload(
          reply(row("\(number)")),
          receipt: String(repeating: "\(number)", count: 20_000))
        guard (try? writer.append(event.drafts)) != nil else { return }
        number += 1
      }
    }
    defer {
      stop.withLock { $0 = true }
      thread.join()
      try? writer.close()
    }
    var sizes: Set<Int64> = []
    while sizes.count < 8 {
      let plan = try plan(path)
      guard let size = plan["size"]?.integerValue, size > 0 else { continue }
      sizes.insert(size)
      let scans = try plan.ranges.map { try scan(path, $0) }
      expectEqual(scans.last?.text("root_after"), plan["root"]?.stringValue)
    }
  }
}
