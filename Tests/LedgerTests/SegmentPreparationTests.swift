// New files of segments that are made while the blocks are read for another purpose.
import Base
import Ledger
import TestSupport
import Testing

@Suite("Preparing segments that are written anew")
struct SegmentPreparationTests {
  private static let positions = [2, 9, 10, 26]

  private struct Prepared {
    let fixture: LedgerFixture
    let rig: RedactionRig
    let writer: LedgerWriter
    let file: RedactionFileWriter
    /// The lines of the log as they must be at the end.
    var expected: [[UInt8]]
  }

  /// A ledger of many small segments, with redacted lines that are not committed yet.
  private func prepared() throws -> Prepared {
    let fixture = try LedgerFixture()
    let rig = RedactionRig(fixture.directory)
    try rig.fill(30)
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    let erasure = try rig.open(writer)
    try writer.sealAll()
    var expected = try fixture.lines()
    let lines = try rig.redacted(Self.positions, by: erasure)
    let file = try RedactionFileWriter(fixture.directory, pass: .random())
    for (position, line) in zip(Self.positions, lines) {
      try file.append(line: line)
      expected[position] = line
    }
    try file.finish()
    return Prepared(fixture: fixture, rig: rig, writer: writer, file: file, expected: expected)
  }

  private func check(_ prepared: Prepared) throws {
    try prepared.writer.close()
    let lines = try prepared.fixture.lines()
    #expect(Array(lines.prefix(prepared.expected.count)) == prepared.expected)
    #expect(prepared.fixture.names.allSatisfy { !$0.hasSuffix(".new") })
    let report = try LogAudit(prepared.fixture.directory).run()
    #expect(report.isWhole && report.redactedCount == Self.positions.count, "\(report.findings)")
  }

  private func temporaryCount(_ prepared: Prepared) -> Int {
    prepared.fixture.names.count { $0.hasSuffix(".jsonl.gz.new") }
  }

  @Test("Every segment's file is there before the commit, and gets its name after it")
  func whole() throws {
    let prepared = try prepared()
    let before = try prepared.fixture.lines()
    let preparation = try prepared.rig.preparation(prepared.writer)
    #expect(temporaryCount(prepared) >= 3)
    #expect(try prepared.fixture.lines() == before)
    try prepared.file.commit()
    _ = try prepared.rig.finish(prepared.writer, preparation)
    try check(prepared)
  }

  @Test("What is appended and sealed meanwhile is in the new file of the newest segment")
  func grown() throws {
    let prepared = try prepared()
    let preparation = try prepared.rig.preparation(prepared.writer)
    for index in 0..<20 { _ = try prepared.writer.append([RedactionRig.draft(index)]) }
    try prepared.writer.sealAll()
    try prepared.file.commit()
    _ = try prepared.rig.finish(prepared.writer, preparation)
    #expect(try prepared.fixture.lines().count == prepared.expected.count + 21)
    try check(prepared)
  }

  @Test("Blocks that come late, twice or not at all: the segments are written all the same")
  func missing() throws {
    for missing in 0..<3 {
      let prepared = try prepared()
      let lines = try RedactedLines.uncommitted(prepared.fixture.directory)
      var blocks: [(bytes: [UInt8], first: Position, count: Int)] = []
      try LogReader(prepared.fixture.directory, redactedLines: lines).read(from: 0, workers: 0) {
        blocks.append((Array($0.bytes), $0.firstPosition, $0.count))
        return true
      }
      let preparation = try prepared.writer.prepareSegments(lines)
      let affected = blocks.indices.filter { index in
        Self.positions.contains {
          (blocks[index].first..<blocks[index].first + blocks[index].count).contains($0)
        }
      }
      for index in (affected.reversed() + affected) where index != affected[missing] {
        blocks[index].bytes.withUnsafeBytes {
          preparation.take($0, first: blocks[index].first, count: blocks[index].count)
        }
      }
      try prepared.file.commit()
      _ = try prepared.rig.finish(prepared.writer, preparation)
      try check(prepared)
    }
  }

  @Test("A preparation that is dropped leaves nothing behind")
  func dropped() throws {
    let prepared = try prepared()
    let preparation = try prepared.rig.preparation(prepared.writer)
    #expect(temporaryCount(prepared) > 0)
    preparation.discard()
    #expect(temporaryCount(prepared) == 0)
    try prepared.file.commit()
    _ = try prepared.rig.finish(prepared.writer, preparation)
    try check(prepared)
  }

  @Test(
    "A segment that was written anew meanwhile is not replaced by what was made of its old file")
  func replaced() throws {
    let prepared = try prepared()
    let preparation = try prepared.rig.preparation(prepared.writer)
    let other = try prepared.rig.preparation(prepared.writer)
    try prepared.file.commit()
    let lines = try #require(try RedactedLines.ifPresent(prepared.fixture.directory))
    try prepared.writer.rewriteSegments(lines, preparation: other)
    _ = try prepared.rig.finish(prepared.writer, preparation)
    try check(prepared)
  }

  @Test("A disk without room for the new files ends the preparation, not the erasure")
  func fullDisk() throws {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let rig = RedactionRig(directory)
    try rig.fill(30)
    let writer = try LedgerWriter.open(directory, options: rig.options)
    let erasure = try rig.open(writer)
    try writer.sealAll()
    let file = try RedactionFileWriter(directory, pass: .random())
    for line in try rig.redacted(Self.positions, by: erasure) { try file.append(line: line) }
    try file.finish()
    storage.setFaults(.init(fullFiles: ".jsonl.gz.new"))
    let preparation = try rig.preparation(writer)
    #expect(storage.paths.allSatisfy { !$0.hasSuffix(".jsonl.gz.new") })
    try file.commit()
    storage.setFaults(.init())
    _ = try rig.finish(writer, preparation)
    try writer.close()
    #expect(writer.failure == nil)
    #expect(try rig.isFree(Self.positions))
  }
}
