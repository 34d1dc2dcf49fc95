// Readers during an erasure: they show redacted lines from their file instead of the log's, and notice rewritten
// segments.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("Reading redacted lines")
struct RedactionReaderTests {
  private static let positions = [0, 3, 4, 11, 17, 23, 24]

  /// A log of segments, blocks and a tail with several frames.
  private func prepared() throws -> (LedgerFixture, RedactionRig) {
    let fixture = try LedgerFixture()
    let rig = RedactionRig(fixture.directory)
    try rig.fill(20)
    let writer = try LedgerWriter.open(fixture.directory)
    for index in 20..<26 { _ = try writer.append([RedactionRig.draft(index)]) }
    try writer.close()
    #expect(fixture.segmentNames.count > 1 && fixture.tailNames.count == 1)
    return (fixture, rig)
  }

  private func lines(_ reader: LogReader, from start: Int = 0, workers: Int) throws -> [[UInt8]] {
    var lines: [[UInt8]] = []
    try reader.read(from: start, workers: workers) { chunk in
      try chunk.forEachEvent { lines.append(Array($0.bytes)) }
      return true
    }
    return lines
  }

  @Test(
    "Lines of the file replace those in blocks and tails, in every way of reading",
    arguments: [0, 2])
  func overlay(_ workers: Int) throws {
    let (fixture, rig) = try prepared()
    var expected = try fixture.lines()
    let open = try LogReader(fixture.directory)
    try expectEqual(lines(open, workers: workers), expected)
    let redacted = try rig.redacted(Self.positions, by: 26)
    try rig.writeFile(redacted)
    for (index, position) in Self.positions.enumerated() { expected[position] = redacted[index] }
    let later = try LogReader(fixture.directory)
    #expect(open.redactedLines == nil && later.redactedLines?.count == Self.positions.count)
    for reader in [open, later] {
      try expectEqual(lines(reader, workers: workers), expected)
      for start in 0..<26 {
        try expectEqual(lines(reader, from: start, workers: workers), Array(expected[start...]))
        try expectEqual(reader.event(at: start), expected[start])
        try expectEqual(reader.frontier(at: start), naiveFrontier(Array(expected[..<start])))
      }
      #expect(try rig.isFree(Self.positions, reader: reader))
    }
    // Worker threads prepare from the redacted lines.
    final class Prepared { let bytes: [UInt8]; init(_ bytes: [UInt8]) { self.bytes = bytes } }
    try later.read(from: 0, workers: 2, prepare: { bytes, _, _ in Prepared(Array(bytes)) }) {
      chunk in
      if let prepared = chunk.prepared as? Prepared {
        expectEqual(prepared.bytes, Array(chunk.bytes))
      }
      return true
    }
    let part = try LogReader(fixture.directory, part: 10..<20)
    try part.read(from: 10, to: 20) { chunk in
      try chunk.forEachEvent { expectEqual(Array($0.bytes), expected[$0.position]) }
      return true
    }
  }

  @Test("Lines given to a reader stay, whatever the file holds")
  func given() throws {
    let (fixture, rig) = try prepared()
    let before = try fixture.lines()
    let redacted = try rig.redacted([5, 21], by: 26)
    let file = try RedactionFileWriter(fixture.directory, pass: .random())
    for line in redacted { try file.append(line: line) }
    try file.finish()
    let reader = try LogReader(
      fixture.directory, redactedLines: try RedactedLines.uncommitted(fixture.directory))
    try expectEqual(LogReader(fixture.directory).event(at: 5), before[5])
    for _ in 0..<2 {
      #expect(try reader.event(at: 5) == redacted[0] && reader.event(at: 21) == redacted[1])
      try expectEqual(lines(reader, workers: 0)[21], redacted[1])
      try reader.refresh()
      try? file.discard()
    }
  }

  @Test("A line of another event than the log's is refused, and nothing is shown in its place")
  func otherLeaf() throws {
    let (fixture, rig) = try prepared()
    let line = String(decoding: try rig.redacted([4], by: 26)[0], as: UTF8.self)
    try rig.writeFile([
      Array(line.replacingOccurrences(of: "test.person", with: "test.nobody").utf8)
    ])
    let reader = try LogReader(fixture.directory)
    let error = #expect(throws: LedgerError.self) { try reader.event(at: 4) }
    #expect(error?.damage?.verdict == .tampered && error?.damage?.position == 4)
    for workers in [0, 2] {
      #expect(throws: LedgerError.self) { try lines(reader, workers: workers) }
    }
  }

  @Test("An open reader sees each step of an erasure at once, and its head stays")
  func openReader() throws {
    let (fixture, rig) = try prepared()
    let reader = try LogReader(fixture.directory)
    // Both caches: a block of a closed segment, and a block of the newest.
    _ = try reader.event(at: 3)
    let head = reader.head
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    var stepCount = 0
    try rig.erase(Self.positions, with: writer) {
      stepCount += 1
      #expect((try? rig.isFree(Self.positions, reader: reader)) == true)
    }
    expectEqual(stepCount, 1)
    // The file is removed, and all segments are replaced.
    #expect(try rig.isFree(Self.positions, reader: reader))
    #expect(reader.redactedLines == nil && reader.head == head)
    _ = try writer.append([RedactionRig.draft(99)])
    try reader.refresh()
    #expect(reader.damage == nil && reader.head.size == 29)
    #expect(try rig.isFree(Self.positions, reader: reader))
    try writer.close()
    try expectEqual(fixture.lines().count, 29)
  }

  @Test(
    "Blocks that only the rewritten segment holds are found, though the old file no longer grows")
  func blocksAfterRewrite() throws {
    let fixture = try LedgerFixture()
    let rig = RedactionRig(
      fixture.directory, options: LedgerFixture.smallOptions(block: 700, segment: 1 << 20))
    try rig.fill(9)
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    let erasure = try rig.open(writer)
    try writer.sealAll()
    try rig.writeFile(try rig.redacted([erasure - 1], by: erasure))
    let lines = try #require(try RedactedLines.ifPresent(fixture.directory))
    _ = try writer.append([try rig.list(lines, by: erasure)])
    try writer.sealAll()
    let readers = [try LogReader(fixture.directory), try LogReader(fixture.directory, .durable)]
    try writer.rewriteSegments(lines)
    try RedactionFile.remove(from: fixture.directory)
    _ = try writer.append([RedactionRig.draft(1)])
    try writer.sealAll()
    for reader in readers {
      try reader.refresh()
      #expect(reader.head.size == writer.nextPosition && reader.damage == nil)
      #expect(try rig.isFree([erasure - 1], reader: reader))
    }
    try writer.close()
  }

  @Test("A reader follows a log whose newest segment is rewritten repeatedly")
  func followed() throws {
    let fixture = try LedgerFixture()
    let rig = RedactionRig(
      fixture.directory, options: LedgerFixture.smallOptions(block: 700, segment: 1 << 20))
    let readers = [try LogReader(fixture.directory), try LogReader(fixture.directory, .durable)]
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    for round in 0..<6 {
      let first = writer.nextPosition
      for index in 0..<7 { _ = try writer.append([RedactionRig.draft(index)]) }
      try rig.erase([first + 1, first + 5], with: writer)
      // A block that only the new file holds.
      _ = try writer.append([RedactionRig.draft(round)])
      try writer.sealAll()
      for reader in readers {
        if round % 2 == 0 { try reader.refresh() }
        #expect(reader.damage == nil)
        if round % 2 == 0 { expectEqual(reader.head.size, writer.nextPosition) }
        let erased = [first + 1, first + 5].filter { $0 < reader.head.size }
        #expect(try rig.isFree(erased, reader: reader))
      }
    }
    try writer.close()
    expectEqual(fixture.segmentNames.count, 1)
    #expect(try rig.audit().isWhole)
  }
}
