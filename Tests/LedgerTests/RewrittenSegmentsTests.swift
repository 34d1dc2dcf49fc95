// New files of segments, made while their blocks are read with redacted lines.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("Segments that are rewritten while they are read")
struct RewrittenSegmentsTests {
  private static let positions = [2, 9, 10, 26]

  private struct Prepared {
    let fixture: LedgerFixture
    let rig: RedactionRig
    let writer: LedgerWriter
    let file: RedactionFileWriter
    /// The lines that the log must have at the end.
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
    expectEqual(Array(lines.prefix(prepared.expected.count)), prepared.expected)
    #expect(prepared.fixture.names.allSatisfy { !$0.hasSuffix(".new") })
    let report = try LogAudit(prepared.fixture.directory).run()
    #expect(report.isWhole && report.redactedCount == Self.positions.count, "\(report.findings)")
  }

  private func temporaryCount(_ prepared: Prepared) -> Int {
    prepared.fixture.names.count { $0.hasSuffix(".jsonl.gz.new") }
  }

  private func fileNumbers(_ prepared: Prepared, _ suffix: String) throws -> Set<UInt64> {
    Set(
      try prepared.fixture.names.filter { $0.hasSuffix(suffix) }.map { name in
        let path = "\(prepared.fixture.logPath)/\(name)"
        let number = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber]
        return try #require(number as? UInt64)
      })
  }

  @Test(
    "Every segment's new file exists before the commit, and gets its name afterwards",
    arguments: [0, 1, 2])
  func whole(workers: Int) throws {
    let prepared = try prepared()
    let before = try prepared.fixture.lines()
    let rewritten = try prepared.rig.rewritten(prepared.writer, workers: workers)
    #expect(temporaryCount(prepared) >= 3)
    try expectEqual(prepared.fixture.lines(), before)
    let made = try fileNumbers(prepared, ".jsonl.gz.new")
    try prepared.file.commit()
    _ = try prepared.rig.finish(prepared.writer, rewritten)
    #expect(try fileNumbers(prepared, ".jsonl.gz").isSuperset(of: made))
    try check(prepared)
  }

  @Test("Events appended and sealed meanwhile are in the new file of the newest segment")
  func grown() throws {
    let prepared = try prepared()
    let rewritten = try prepared.rig.rewritten(prepared.writer)
    for index in 0..<20 { _ = try prepared.writer.append([RedactionRig.draft(index)]) }
    try prepared.writer.sealAll()
    try prepared.file.commit()
    _ = try prepared.rig.finish(prepared.writer, rewritten)
    try expectEqual(prepared.fixture.lines().count, prepared.expected.count + 21)
    try check(prepared)
  }

  @Test("Blocks that come again, late or not at all: the segments are written all the same")
  func missing() throws {
    for from in [0, 9, 10, 26] {
      let prepared = try prepared()
      let rewritten = try prepared.rig.rewritten(prepared.writer, from: from)
      let lines = try RedactedLines.uncommitted(prepared.fixture.directory)
      let late = try LogReader(prepared.fixture.directory, redactedLines: lines)
      late.rewritten = rewritten
      try late.read(from: 0, workers: 1) { _ in true }
      try prepared.file.commit()
      _ = try prepared.rig.finish(prepared.writer, rewritten)
      try check(prepared)
    }
  }

  @Test("Unused new files leave nothing behind")
  func dropped() throws {
    let prepared = try prepared()
    var rewritten: RewrittenSegments? = try prepared.rig.rewritten(prepared.writer)
    #expect(temporaryCount(prepared) > 0 && rewritten != nil)
    rewritten = nil
    expectEqual(temporaryCount(prepared), 0)
    try prepared.file.commit()
    _ = try prepared.rig.finish(prepared.writer)
    try check(prepared)
  }

  @Test(
    "A segment that was rewritten meanwhile is not replaced by a file made from the old one")
  func replaced() throws {
    let prepared = try prepared()
    let rewritten = try prepared.rig.rewritten(prepared.writer)
    let other = try prepared.rig.rewritten(prepared.writer)
    try prepared.file.commit()
    let lines = try #require(try RedactedLines.ifPresent(prepared.fixture.directory))
    try prepared.writer.rewriteSegments(lines, rewritten: other)
    _ = try prepared.rig.finish(prepared.writer, rewritten)
    try check(prepared)
  }

  @Test("A disk without room for the new files ends this, not the erasure")
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
    let rewritten = try rig.rewritten(writer)
    #expect(storage.paths.allSatisfy { !$0.hasSuffix(".jsonl.gz.new") })
    try file.commit()
    storage.setFaults(.init())
    _ = try rig.finish(writer, rewritten)
    try writer.close()
    #expect(writer.failure == nil)
    #expect(try rig.isFree(Self.positions))
  }
}
