// The writer among threads, readers, a clock that jumps, and a process that is killed.
import Base
import Foundation
import Glibc
import Ledger
import Synchronization
import TestSupport
import Testing

@Suite("The writer", .bounded)
struct WriterTests {
  @Test("Many threads append at once: every event once, each append together")
  func manyThreads() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(
      fixture.directory, options: LedgerFixture.smallOptions(block: 5000, segment: 20_000))
    let firsts = Monitor<[Int: Int]>([:])
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for round in 0..<40 {
        let number = thread * 1000 + round
        let drafts = (0..<2).map { part in
          EventDraft(
            type: "test.part", version: 1, data: Array("{\"n\":\(number),\"p\":\(part)}".utf8))
        }
        let result = try? writer.append(drafts)
        firsts.withLock { $0[number] = result?.firstPosition }
      }
    }
    try writer.close()
    let lines = try fixture.lines()
    expectEqual(lines.count, 640)
    let found = firsts.withLock { $0 }
    expectEqual(found.count, 320)
    for (number, first) in found {
      for part in 0..<2 {
        let line = String(decoding: lines[first + part], as: UTF8.self)
        #expect(line.hasSuffix("\"data\":{\"n\":\(number),\"p\":\(part)}}"))
      }
    }
  }

  @Test("A reader sees a growing whole while a writer hands over and rolls over")
  func readerBesideWriter() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(
      fixture.directory, options: LedgerFixture.smallOptions(block: 2000, segment: 6000))
    let acknowledged = Atomic<Int>(0)
    let isDone = Atomic<Bool>(false)
    let draft = fixture.draft(1)
    let thread = Thread {
      for _ in 0..<1500 {
        if let result = try? writer.append([draft]) {
          acknowledged.store(result.firstPosition + 1, ordering: .sequentiallyConsistent)
        }
      }
      isDone.store(true, ordering: .sequentiallyConsistent)
    }
    thread.start()
    let reader = try LogReader(fixture.directory)
    var next = 0
    var frontier = Frontier()
    let hasher = SHA256()
    repeat {
      let atLeast = acknowledged.load(ordering: .sequentiallyConsistent)
      try reader.refresh()
      #expect(reader.damage == nil)
      #expect(reader.head.size >= atLeast)
      let opened = try LogReader(fixture.directory)
      #expect(opened.damage == nil)
      #expect(opened.head.size >= reader.head.size)
      try reader.read(from: next, syncTails: true) { chunk in
        expectEqual(chunk.firstPosition, next)
        try chunk.forEachEvent { frontier.append(leafHash: $0.leafHash(hasher), hasher) }
        next = chunk.endPosition
        expectEqual(chunk.frontierAfter, frontier)
        return true
      }
      expectEqual(next, reader.head.size)
      expectEqual(reader.head.frontier, frontier)
    } while !isDone.load(ordering: .sequentiallyConsistent) || next < 1500
    try writer.close()
    expectEqual(next, 1500)
  }

  /// Holds the first commit until two more submissions wait, so that they share a commit.
  private static func company(
    _ fixture: LedgerFixture, _ options: inout WriterOptions
  ) throws -> (writer: LedgerWriter, ticket: AppendTicket) {
    let (gate, hasBegun) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let isOpen = Monitor(false)
    let clock = options.clock
    options.clock = {
      let mustWait = isOpen.withLock { isOpen in
        defer { isOpen = true }
        return !isOpen
      }
      if mustWait {
        hasBegun.signal()
        gate.wait()
      }
      return clock()
    }
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    _ = try writer.submit([fixture.draft(1)])
    // Two in the first commit would count as a group already, and the third would wait for more.
    hasBegun.wait()
    _ = try writer.submit([fixture.draft(2)])
    let last = try writer.submit([fixture.draft(3)])
    gate.signal()
    return (writer, last)
  }

  @Test("Events that a pause between commits delays are written when the writer is closed")
  func closedInThePause() throws {
    let fixture = try LedgerFixture()
    var options = WriterOptions()
    options.groupPauseMs = 3_600_000
    let (writer, third) = try Self.company(fixture, &options)
    _ = try writer.wait(for: third)
    let held = try writer.submit([fixture.draft(4)])
    try writer.close()
    try expectEqual(writer.wait(for: held).firstPosition, 3)
    try expectEqual(fixture.lines().count, 4)
  }

  @Test("A full group ends the pause, and a submission alone has none")
  func fullInThePause() throws {
    let fixture = try LedgerFixture()
    var options = WriterOptions()
    options.groupPauseMs = 3_600_000
    options.groupByteCount = 20_000
    let (writer, third) = try Self.company(fixture, &options)
    _ = try writer.wait(for: third)
    let large = EventDraft(
      type: "test.large", version: 1,
      data: Array("{\"n\":\"\(String(repeating: "x", count: 30_000))\"}".utf8))
    try expectEqual(writer.append([large]).firstPosition, 3)
    // The last group was one submission alone: there is no wait.
    try expectEqual(writer.append([fixture.draft(5)]).firstPosition, 4)
    try expectEqual(writer.append([fixture.draft(6)]).firstPosition, 5)
    try writer.close()
  }

  @Test("Event times never decrease, whatever the clock does")
  func clock() throws {
    let fixture = try LedgerFixture()
    let times = Monitor<[Int64]>([5000, 3000, 7000, -5, .max, 8000])
    var options = LedgerFixture.smallOptions()
    options.clock = { times.withLock { $0.isEmpty ? 0 : $0.removeFirst() } }
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    var found: [Int64] = []
    for index in 0..<6 { found.append(try writer.append([fixture.draft(index)]).recordedAtMs) }
    try writer.close()
    expectEqual(
      found,
      [
        5000, 5000, 7000, 7000, Timestamp.fixedRangeMs.upperBound,
        Timestamp.fixedRangeMs.upperBound,
      ])
    let again = try LedgerWriter.open(fixture.directory, options: options)
    try expectEqual(
      again.append([fixture.draft(6)]).recordedAtMs, Timestamp.fixedRangeMs.upperBound)
    try again.close()
    try expectEqual(
      LogReader(fixture.directory).head.lastEventAtMs, Timestamp.fixedRangeMs.upperBound)
  }

  @Test(
    "Drafts that cannot become events are refused, and nothing is appended",
    arguments: [
      ("Type", 1, "{}", "type"), ("", 1, "{}", "type"), ("a b", 1, "{}", "type"),
      ("a", 0, "{}", "version"), ("a", 1, "", "JSON object"), ("a", 1, "[]", "JSON object"),
      ("a", 1, "{\n}", "line feed"),
    ])
  func refusedDrafts(_ type: String, _ version: Int, _ data: String, _ part: String) throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    let bad = EventDraft(type: type, version: version, data: Array(data.utf8))
    let error = #expect(throws: LedgerError.self) {
      try writer.append([fixture.draft(0), bad])
    }
    #expect(error?.kind == .invalidInput && error?.cause.contains(part) == true)
    expectEqual(writer.nextPosition, 0)
    try writer.close()
  }

  @Test("An empty append, and references to nowhere, are refused")
  func refusedReferences() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    #expect(throws: LedgerError.self) { try writer.append([]) }
    for (offset, index) in [(0, 0), (2, 0), (1, 1), (1, -1), (99, 0)] {
      let draft = EventDraft(
        type: "a", version: 1, data: Array("{}".utf8),
        references: [PositionReference(offsetBytes: offset, eventIndex: index)])
      #expect(throws: LedgerError.self, "\(offset) \(index)") { try writer.append([draft]) }
    }
    try writer.close()
  }

  @Test("A closed writer refuses, and closing twice is closing once")
  func closed() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    try writer.close()
    try writer.close()
    let error = #expect(throws: LedgerError.self) { try writer.append([fixture.draft(0)]) }
    expectEqual(error?.kind, .closed)
  }

  @Test("A process killed while appending loses nothing that was acknowledged", arguments: 0..<5)
  func killed(_ seed: Int) async throws {
    let fixture = try LedgerFixture()
    let path = fixture.path
    for round in 0..<2 {
      let count = 40 + 61 * seed + 17 * round
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = path as String, count = count as Int] in
        let directory = try LedgerDirectory.open(path: path)
        var options = LedgerFixture.smallOptions(block: 3000, segment: 9000)
        // The unacknowledged queue: enough to be lost, too little to fill a block with each append, whose sealing would
        // take most of the time.
        options.queueByteCount = 1000
        let writer = try LedgerWriter.open(directory, options: options)
        let acknowledged = open(path + "/acknowledged", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        let draft = EventDraft(
          type: "test.happened", version: 1, data: Array("{\"pad\":\"0123456789\"}".utf8))
        for _ in 0..<3 {
          Thread { while true { _ = try? writer.submit([draft]) } }.start()
        }
        for index in 0... {
          let result = try writer.append([draft, draft])
          let text = Array("\(result.firstPosition)\n".utf8)
          _ = Glibc.write(acknowledged, text, text.count)
          if index == count { kill(getpid(), SIGKILL) }
        }
      }
      let text = try String(contentsOfFile: path + "/acknowledged", encoding: .utf8)
      let last = try #require(text.split(separator: "\n").compactMap { Int($0) }.last)
      let before = try fixture.lines()
      #expect(before.count >= last + 2)
      let writer = try LedgerWriter.open(fixture.directory)
      expectEqual(writer.nextPosition, before.count)
      try writer.close()
      try expectEqual(fixture.lines(), before)
    }
  }
}
