// Recovery repairs what a crash leaves, and reports what no crash can cause.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

extension LedgerFixture {
  /// Ten events in ten frames of one tail, no block.
  func fillOneTail() throws -> [FrameBytes] {
    try fill(10, options: WriterOptions())
    return FrameBytes.split(try content(tailName(0)))
  }

  /// Ten events in one block, and the tail from which it was made, removed.
  func fillOneBlock() throws -> [FrameBytes] {
    let frames = try fillOneTail()
    try LedgerWriter.open(directory, options: LedgerFixture.smallOptions(block: 1)).close()
    expectEqual(tailNames, [])
    return frames
  }

  /// The error with which opening for writing ends; expects that opening changed no file.
  func writerError() throws -> LedgerError? {
    let before = try names.map { try content($0) }
    let error = #expect(throws: LedgerError.self) { try LedgerWriter.open(directory) }
    try expectEqual(names.map { try content($0) }, before)
    return error
  }

  /// Opens for writing, appends one event, closes; expects that the log then holds this many.
  func recover(expecting count: Int) throws -> RecoveryReport {
    let writer = try LedgerWriter.open(directory)
    try expectEqual(writer.append([draft(count - 1)]).firstPosition, count - 1)
    try writer.close()
    try expectEqual(lines().count, count)
    let again = try LedgerWriter.open(directory)
    #expect(again.recovery.notes.isEmpty)
    try again.close()
    return writer.recovery
  }
}

@Suite("Recovery of tails")
struct TailRecoveryTests {
  @Test("A frame torn at any length is cut off and reported")
  func tornAnywhere() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let whole = Array(frames.dropLast().map(\.bytes).joined())
    let last = frames[9].bytes
    for length in 0..<last.count {
      try fixture.write(whole + last[..<length], to: tailName(0))
      try expectEqual(LogReader(fixture.directory).head.size, 9)
      guard length % 37 == 1 || length == last.count - 1 else { continue }
      let report = try fixture.recover(expecting: 10)
      expectEqual(
        report.tornFrame,
        .init(file: "log/" + tailName(0), offsetBytes: whole.count, byteCount: length))
    }
  }

  @Test("A frame with lost sectors at the end is torn")
  func zeros() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let whole = Array(frames.dropLast().map(\.bytes).joined())
    let zeros = [UInt8](repeating: 0, count: frames[9].bytes.count)
    for broken in [zeros, Array(frames[9].bytes.prefix(100)) + zeros.dropFirst(100)] {
      try fixture.write(whole + broken, to: tailName(0))
      try expectEqual(fixture.recover(expecting: 10).tornFrame?.byteCount, broken.count)
    }
  }

  @Test("A damaged frame before a valid one is corruption", arguments: 0..<9)
  func damagedMiddle(_ index: Int) throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    var bytes = frames.map(\.bytes)
    bytes[index][bytes[index].count / 2] ^= 1
    try fixture.write(Array(bytes.joined()), to: tailName(0))
    let error = try fixture.writerError()
    expectEqual(error?.exitCode, .corrupted)
    expectEqual(
      error?.damage, .init(verdict: .corrupt, file: "log/" + tailName(0), position: index))
    let reader = try LogReader(fixture.directory)
    expectEqual(reader.head.size, index)
    var count = 0
    #expect(throws: try #require(error)) {
      try reader.read(from: 0) { chunk in
        count += chunk.count
        return true
      }
    }
    expectEqual(count, index)
  }

  @Test("A frame missing from the middle is missing data")
  func removedMiddle() throws {
    let fixture = try LedgerFixture()
    var frames = try fixture.fillOneTail()
    frames.remove(at: 4)
    try fixture.write(Array(frames.map(\.bytes).joined()), to: tailName(0))
    try expectEqual(
      fixture.writerError()?.damage,
      .init(verdict: .missing, file: "log/" + tailName(0), position: 4))
  }

  @Test("Several tails are read in order; recovery seals all but the newest")
  func severalTails() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let lines = try fixture.lines()
    try fixture.write(Array(frames[..<4].map(\.bytes).joined()), to: tailName(0))
    try fixture.write(Array(frames[4..<7].map(\.bytes).joined()), to: tailName(4))
    try fixture.write(Array(frames[7...].map(\.bytes).joined()), to: tailName(7))
    try expectEqual(fixture.lines(), lines)
    let writer = try LedgerWriter.open(fixture.directory)
    try writer.close()
    expectEqual(writer.recovery.unsealedTails, ["log/" + tailName(0), "log/" + tailName(4)])
    #expect(writer.recovery.notes.isEmpty)
    expectEqual(fixture.tailNames, [tailName(7)])
    try expectEqual(fixture.lines(), lines)
  }

  @Test("An older tail that does not reach the next is corruption")
  func tornOlderTail() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let older = Array(frames[..<4].map(\.bytes).joined())
    try fixture.write(Array(older.dropLast(5)), to: tailName(0))
    try fixture.write(Array(frames[4...].map(\.bytes).joined()), to: tailName(4))
    try expectEqual(fixture.writerError()?.damage?.position, 3)
    try fixture.write(Array(frames[..<3].map(\.bytes).joined()), to: tailName(0))
    try expectEqual(
      fixture.writerError()?.damage,
      .init(verdict: .missing, file: "log/" + tailName(3), position: 3))
    try fixture.remove(tailName(0))
    try expectEqual(
      fixture.writerError()?.damage,
      .init(verdict: .missing, file: "log/" + tailName(0), position: 0))
  }

  @Test("A writer copies the tail that it continues")
  func copied() throws {
    let fixture = try LedgerFixture()
    _ = try fixture.fillOneTail()
    func fileNumber() throws -> UInt64? {
      let path = fixture.logPath + "/" + tailName(0)
      return try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64
    }
    let reader = try LogReader(fixture.directory)
    let before = try fileNumber()
    let writer = try LedgerWriter.open(fixture.directory)
    #expect(try fileNumber() != before)
    _ = try writer.append([fixture.draft(10)])
    try reader.refresh()
    expectEqual(reader.head.size, 11)
    try writer.close()
  }

  @Test("Unfinished files are removed")
  func temporaries() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(3)
    try fixture.write([1, 2, 3], to: tailName(3) + ".new")
    try expectEqual(fixture.recover(expecting: 4).temporaryFiles, ["log/" + tailName(3) + ".new"])
  }
}

@Suite("Recovery of segments")
struct SegmentRecoveryTests {
  private let segment = "00000000000000000000.jsonl.gz"

  @Test("A tail that a block covers is removed")
  func coveredTail() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneBlock()
    try fixture.write(Array(frames.map(\.bytes).joined()), to: tailName(0))
    try expectEqual(LogReader(fixture.directory).head.size, 10)
    try expectEqual(fixture.recover(expecting: 11).coveredTails, ["log/" + tailName(0)])
  }

  @Test("A tail that extends beyond the block that covers it is corruption")
  func tailBeyondBlock() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    try fixture.write(Array(frames[..<6].map(\.bytes).joined()), to: tailName(0))
    try LedgerWriter.open(
      fixture.directory, options: LedgerFixture.smallOptions(block: 1)
    ).close()
    try fixture.write(Array(frames.map(\.bytes).joined()), to: tailName(0))
    try expectEqual(fixture.writerError()?.damage?.position, 6)
    let finding = try #require(fixture.audit().findings.first)
    #expect(finding.damage.verdict == .tampered && finding.damage.position == 6)
    expectEqual(finding.damage.file, "log/\(tailName(0))")
  }

  @Test("A last block torn at any length is cut if its tail is there")
  func tornBlockWithTail() throws {
    let fixture = try LedgerFixture()
    let empty = try fixture.content(segment)
    let frames = try fixture.fillOneBlock()
    let whole = try fixture.content(segment)
    for length in empty.count + 1..<whole.count {
      try fixture.write(Array(whole[..<length]), to: segment)
      try fixture.write(Array(frames.map(\.bytes).joined()), to: tailName(0))
      try expectEqual(LogReader(fixture.directory).head.size, 10)
      guard length % 101 == 0 else { continue }
      let report = try fixture.recover(expecting: 11)
      expectEqual(
        report.tornMember,
        .init(
          file: "log/" + segment, offsetBytes: empty.count, byteCount: length - empty.count))
    }
  }

  @Test("A last block torn at any length is missing data if its tail is not there")
  func tornBlockWithoutTail() throws {
    let fixture = try LedgerFixture()
    let empty = try fixture.content(segment)
    _ = try fixture.fillOneBlock()
    let whole = try fixture.content(segment)
    for length in empty.count + 1..<whole.count {
      try fixture.write(Array(whole[..<length]), to: segment)
      try expectEqual(
        LogReader(fixture.directory).damage?.damage,
        .init(verdict: .missing, file: "log/" + segment, block: 0, position: 0))
    }
    try expectEqual(fixture.writerError()?.exitCode, .corrupted)
  }

  @Test("A damaged block before a valid one is corruption, even if its tail is there")
  func damagedMiddleBlock() throws {
    let fixture = try LedgerFixture()
    let empty = try fixture.content(segment)
    let frames = try fixture.fillOneBlock()
    try fixture.fill(10, options: LedgerFixture.smallOptions(block: 1, segment: 1 << 20))
    try fixture.write(Array(frames.map(\.bytes).joined()), to: tailName(0))
    var bytes = try fixture.content(segment)
    bytes[empty.count + 17] ^= 0x40
    try fixture.write(bytes, to: segment)
    let error = try fixture.writerError()
    #expect(error?.damage?.block == 0 && error?.damage?.verdict == .corrupt)
  }

  @Test("A segment that is missing, cut or another log's is corruption")
  func segments() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    let lines = try fixture.lines()
    let names = fixture.segmentNames
    let other = try LedgerFixture()
    try other.fill(60)
    #expect(names.count > 3 && other.segmentNames == names)
    for (index, name) in names.enumerated() {
      let first = Int(name.prefix(20)) ?? -1
      let content = try fixture.content(name)
      func verdict(_ expected: LedgerError.Verdict, _ change: String) throws {
        let reader = try LogReader(fixture.directory)
        expectEqual(reader.damage?.damage?.verdict, expected, "segment \(index) \(change)")
        // What lies before the damage is whole.
        var found: [[UInt8]] = []
        #expect(throws: try #require(reader.damage)) {
          try reader.read(from: 0) { chunk in
            try chunk.forEachEvent { found.append(Array($0.bytes)) }
            return true
          }
        }
        #expect(found == Array(lines[..<reader.head.size]) && found.count <= max(first, 0) + 20)
        try expectEqual(fixture.writerError()?.exitCode, .corrupted)
      }
      try fixture.remove(name)
      try verdict(.missing, "removed")
      try fixture.write([], to: name)
      try verdict(.corrupt, "emptied")
      try fixture.write(try other.content(name), to: name)
      try verdict(.tampered, "another's")
      try fixture.write(try fixture.content(names[index == 0 ? 1 : index - 1]), to: name)
      try verdict(.tampered, "duplicated")
      try fixture.write(content, to: name)
      try expectEqual(fixture.lines(), lines)
    }
  }

  @Test("One bit in each byte of the segments: reading the log finds every flip")
  func bitFlips() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(25)
    var random = SeededRandom(seed: 4)
    for name in fixture.segmentNames {
      let content = try fixture.content(name)
      for index in content.indices {
        var changed = content
        changed[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        try fixture.write(changed, to: name)
        let error = #expect(throws: LedgerError.self, "\(name) byte \(index)") {
          try LogReader(fixture.directory).read(from: 0) { _ in true }
        }
        expectEqual(error?.kind, .corruption, "\(name) byte \(index)")
      }
      try fixture.write(content, to: name)
    }
    try expectEqual(fixture.lines().count, 25)
  }
}
