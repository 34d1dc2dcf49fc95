// What is appended is read again: in order, once, with the right tree.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

@Suite("The log gives back what was appended")
struct LogRoundTripTests {
  @Test("A new ledger is empty, and its one segment is a valid gzip file")
  func empty() throws {
    let fixture = try LedgerFixture()
    try expectEqual(fixture.lines(), [])
    expectEqual(fixture.names, ["00000000000000000000.jsonl.gz"])
    let (output, status) = try shell("gzip -t log/*.gz && zcat log/*.gz", in: fixture.path)
    #expect(output == [] && status == 0)
  }

  @Test("One event is in the tail in its written form")
  func oneEvent() throws {
    let fixture = try LedgerFixture()
    var options = WriterOptions()
    options.clock = { 1_767_323_045_678 }
    options.random = { buffer in
      buffer.initializeMemory(as: UInt8.self, repeating: 7)
      return true
    }
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    let result = try writer.append([EventDraft(type: "a.b", version: 2, data: Array("{}".utf8))])
    #expect(result.firstPosition == 0 && result.count == 1)
    expectEqual(result.recordedAtMs, 1_767_323_045_678)
    try writer.close()
    let digest = hash([UInt8](repeating: 7, count: 16) + Array("{}".utf8)).hex
    let expected =
      "{\"seq\":0,\"type\":\"a.b\",\"v\":2,\"at\":\"2026-01-02T03:04:05.678Z\","
      + "\"digest\":\"\(digest)\",\"salt\":\"BwcHBwcHBwcHBwcHBwcHBw==\",\"data\":{}}"
    try expectEqual(fixture.lines().map { String(decoding: $0, as: UTF8.self) }, [expected])
  }

  @Test("Random appends, sizes and reopenings", arguments: 0..<12)
  func random(_ seed: Int) throws {
    var random = SeededRandom(seed: UInt64(seed))
    let fixture = try LedgerFixture()
    var expected: [(first: Int, data: String)] = []
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let writer = try LedgerWriter.open(
        fixture.directory,
        options: LedgerFixture.smallOptions(
          block: Int.random(in: 1...3000, using: &random),
          segment: Int.random(in: 1...9000, using: &random)))
      expectEqual(writer.nextPosition, expected.count, "seed \(seed)")
      var tickets: [(AppendTicket, Int)] = []
      for _ in 0..<Int.random(in: 1...30, using: &random) {
        let drafts = (0..<Int.random(in: 1...5, using: &random)).map { _ in
          fixture.draft(
            Int.random(in: 0...999, using: &random), size: Int.random(in: 0...400, using: &random))
        }
        let first = expected.count
        for draft in drafts {
          expected.append((first, String(decoding: draft.data, as: UTF8.self)))
        }
        if Bool.random(using: &random) {
          try writer.flush()
          try expectEqual(writer.append(drafts).firstPosition, first, "seed \(seed)")
        } else {
          tickets.append((try writer.submit(drafts), first))
        }
      }
      for (ticket, first) in tickets {
        try expectEqual(writer.wait(for: ticket).firstPosition, first, "seed \(seed)")
      }
      try writer.close()
    }
    let lines = try fixture.lines(workers: seed % 4)
    expectEqual(lines.count, expected.count, "seed \(seed)")
    let hasher = SHA256()
    for (line, expected) in zip(lines, expected) {
      let isRight = line.withUnsafeBytes { bytes in
        guard let event = EventLine(bytes) else { return false }
        return String(decoding: event.data, as: UTF8.self) == expected.data
          && event.verifyDigest(hasher) && event.hasType("test.happened")
      }
      #expect(isRight, "seed \(seed)")
    }
  }

  @Test("Every range and position agrees with the whole")
  func ranges() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    let lines = try fixture.lines()
    let reader = try LogReader(fixture.directory)
    #expect(fixture.segmentNames.count > 2 && fixture.tailNames.count == 1)
    for from in stride(from: 0, through: 60, by: 3) {
      try expectEqual(reader.frontier(at: from), naiveFrontier(Array(lines[..<from])))
      if from < 60 { try expectEqual(reader.event(at: from), lines[from]) }
      for to in stride(from: from, through: 60, by: 7) {
        var found: [[UInt8]] = []
        try reader.read(from: from, to: to) { chunk in
          try chunk.forEachEvent { found.append(Array($0.bytes)) }
          expectEqual(chunk.frontierAfter, naiveFrontier(Array(lines[..<chunk.endPosition])))
          return true
        }
        expectEqual(found, Array(lines[from..<to]))
      }
    }
  }

  @Test("A body that returns false or throws ends the reading")
  func stopping() throws {
    struct Stop: Error {}
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    let reader = try LogReader(fixture.directory)
    var chunkCount = 0
    try reader.read(from: 0) { _ in
      chunkCount += 1
      return chunkCount < 2
    }
    expectEqual(chunkCount, 2)
    #expect(throws: Stop.self) { try reader.read(from: 0) { _ in throw Stop() } }
  }

  @Test("References become the positions of events of the same append")
  func references() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    _ = try writer.append((0..<9).map { fixture.draft($0) })
    let upload = EventDraft(type: "a", version: 1, data: Array("{}".utf8))
    let verified = EventDraft(
      type: "b", version: 1, data: Array("{\"upload\":,\"self\":}".utf8),
      references: [
        PositionReference(offsetBytes: 10, eventIndex: 0),
        PositionReference(offsetBytes: 18, eventIndex: 1),
      ])
    try expectEqual(writer.append([upload, verified]).firstPosition, 9)
    try writer.close()
    let line = String(decoding: try fixture.lines()[10], as: UTF8.self)
    #expect(line.hasSuffix("\"data\":{\"upload\":9,\"self\":10}}"))
  }

  @Test("gzip finds the segments whole; zcat and grep show every line")
  func shellTools() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    let expected = Array(try fixture.lines().map { $0 + [0x0A] }.joined())
    let (output, status) = try shell(
      "gzip -t log/*.jsonl.gz && zcat log/*.jsonl.gz && grep -hv '^#' log/tail-*.log",
      in: fixture.path)
    expectEqual(status, 0)
    expectEqual(output, expected)
  }

  @Test("An event of almost 16 MiB is kept, a larger one is refused")
  func largeEvents() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    _ = try writer.append([fixture.draft(0, size: (16 << 20) - 400)])
    let error = #expect(throws: LedgerError.self) {
      try writer.append([fixture.draft(1, size: 16 << 20)])
    }
    expectEqual(error?.kind, .invalidInput)
    _ = try writer.append([fixture.draft(2)])
    try writer.close()
    let reader = try LogReader(fixture.directory)
    expectEqual(reader.head.size, 2)
    #expect(try reader.event(at: 0).count > 16_000_000)
  }
}
