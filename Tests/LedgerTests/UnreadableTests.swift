// Bytes that the medium cannot read: only the events in them are lost.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

/// Two closed segments of three blocks and an open one with one, each of several pages, and a tail.
private struct LargeLog {
  static let blockCount = 7
  static let pageByteCount = 4096

  let storage = FaultyStorage()
  let directory: LedgerDirectory
  let segments: [(path: String, members: [Range<Int>])]
  let lines: [[UInt8]]

  init() throws {
    directory = try LedgerDirectory.create(
      path: "/ledger", origin: "unreadable.example", storage: storage)
    // Random digits compress to no less than half of their size.
    var random = SeededRandom(seed: 4)
    let options = LedgerFixture.smallOptions(block: 1, segment: 65 << 10)
    let writer = try LedgerWriter.open(directory, options: options)
    for _ in 0...LargeLog.blockCount {
      let data = Array("{\"n\":\"\(random.digits(48 << 10))\"}".utf8)
      _ = try writer.append([EventDraft(type: "test.large", version: 1, data: data)])
    }
    try writer.close()
    let storage = storage
    segments = try storage.paths.filter { $0.hasSuffix(".jsonl.gz") }.map {
      ($0, try memberPlaces(storage.content($0)))
    }
    try #require(segments.map(\.members.count) == [5, 5, 2])
    lines = try LargeLog.salvage(directory).lines
    try #require(lines.count == LargeLog.blockCount + 1)
  }

  static func salvage(
    _ directory: LedgerDirectory
  ) throws -> (lines: [[UInt8]], report: SalvageReport) {
    var found: [[UInt8]] = []
    let report = try LogSalvage(directory).run { found.append(Array($0.bytes)) }
    return (found, report)
  }

  /// Makes the pages under a byte range of a segment unreadable.
  func damage(_ segment: Int, _ place: Range<Int>) {
    let page = LargeLog.pageByteCount
    let start = place.lowerBound / page * page
    let end = (place.upperBound + page - 1) / page * page
    storage.setFaults(.init(unreadable: [segments[segment].path: start..<end]))
  }

  /// Expects that salvage returns all but these positions; returns the findings.
  func expectLost(
    _ lost: Set<Int>, _ what: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> [AuditFinding] {
    let (found, report) = try LargeLog.salvage(directory)
    let kept = lines.indices.filter { !lost.contains($0) }
    #expect(found == kept.map { lines[$0] }, "\(what)", sourceLocation: sourceLocation)
    #expect(Set(report.leftOut.joined()) == lost, "\(what)", sourceLocation: sourceLocation)
    #expect(report.audit.size == lines.count, "\(what)", sourceLocation: sourceLocation)
    let threaded = try LogAudit(directory, workers: 2).run()
    #expect(threaded.findings == report.audit.findings, sourceLocation: sourceLocation)
    return report.audit.findings
  }
}

@Suite("Unreadable places")
struct UnreadableTests {
  @Test(
    "Any page of a segment: only the blocks that touch it are lost, and one finding reports it")
  func everyPage() throws {
    let log = try LargeLog()
    for (index, segment) in log.segments.enumerated() {
      let size = log.storage.content(segment.path).count
      for start in stride(from: 0, to: size, by: LargeLog.pageByteCount) {
        let page = start..<start + LargeLog.pageByteCount
        log.damage(index, page)
        let hit = segment.members.indices.filter { segment.members[$0].overlaps(page) }
        let lost = hit.filter { 1...3 ~= $0 }.map { 3 * index + $0 - 1 }
        let findings = try log.expectLost(Set(lost), "segment \(index), page at \(start)")
        #expect(findings.allSatisfy { $0.damage.verdict == .unreadable }, "\(findings)")
        expectEqual(
          findings.first?.damage.file, "log/" + segment.path.dropFirst("/ledger/log/".count))
        // If opening and first block, or last block and closing, share the page, each is reported.
        #expect((1...2).contains(findings.count), "\(index), \(start): \(findings)")
        let reader = try LogReader(log.directory)
        let error = #expect(throws: LedgerError.self) {
          try reader.read(from: 0, workers: 0) { _ in true }
        }
        #expect(error?.damage?.verdict == .unreadable && error?.exitCode == .corrupted)
      }
    }
  }

  @Test("An unreadable header: the finding names where the log is whole again")
  func extent() throws {
    let log = try LargeLog()
    let member = log.segments[0].members[2]
    log.damage(0, member.lowerBound..<member.lowerBound + 1)
    let findings = try log.expectLost([0, 1], "the second block's header")
    expectEqual(findings.map(\.damage.position), [0, 1])
    expectEqual(findings.map(\.damage.block), [0, 1])
    expectEqual(findings.last?.endPosition, 2)
  }

  @Test(
    "A block of an earlier position behind an unreadable header is not taken for the lost one"
  )
  func earlierBlockBehind() throws {
    let log = try LargeLog()
    let path = log.segments[0].path
    let members = log.segments[0].members
    let content = log.storage.content(path)
    // Opening, first, second and third block, and the first again; the third is then made
    // unreadable.
    let changed =
      content[members[0]] + content[members[1]] + content[members[2]] + content[members[3]]
      + content[members[1]]
    log.storage.setContent(path, Array(changed))
    log.damage(0, members[3].lowerBound + LargeLog.pageByteCount..<members[3].lowerBound + 5000)
    let (found, report) = try LargeLog.salvage(log.directory)
    expectEqual(found, log.lines.indices.filter { $0 != 2 }.map { log.lines[$0] })
    expectEqual(report.leftOut, [2..<3])
    expectEqual(report.audit.findings.map(\.damage.verdict).prefix(2), [.unreadable, .tampered])
  }

  @Test("A segment that cannot be read at all is one finding, up to the next")
  func wholeSegment() throws {
    let log = try LargeLog()
    let size = log.storage.content(log.segments[1].path).count
    log.damage(1, 0..<size)
    let findings = try log.expectLost([3, 4, 5], "the second segment")
    expectEqual(findings.map(\.damage.verdict), [.unreadable])
    #expect(findings.first?.damage.position == 3 && findings.first?.endPosition == 6)
  }
}
