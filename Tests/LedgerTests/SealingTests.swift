// Full tails wait on disk until they become blocks: how many wait, which threads seal them, and what a reader sees.
import Base
import Foundation
import Glibc
import Ledger
import Synchronization
import TestSupport
import Testing

@Suite("Sealing", .bounded)
struct SealingTests {
  @Test(
    "Full tails become blocks while the writer lives, in idle time or not",
    arguments: [Int64(0), 3_600_000])
  func sealedMeanwhile(_ delayMs: Int64) throws {
    let fixture = try LedgerFixture()
    var options = LedgerFixture.smallOptions(block: 500, segment: 4000)
    options.sealingRestMs = 0
    options.sealingDelayMs = delayMs
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    for index in 0..<40 { _ = try writer.append([fixture.draft(index)]) }
    #expect(eventually { fixture.tailNames.count <= 1 && writer.unsealedTails.count == 0 })
    try writer.close()
    try expectEqual(fixture.lines().count, 40)
    #expect(try LogAudit(fixture.directory).run().isWhole)
  }

  /// Limits that two or three tails of 500 bytes of events reach.
  private static let bounds: [(tails: Int, bytes: Int)] = [(4, 2 << 30), (3072, 1500)]

  @Test("Appends wait at either limit of unsealed tails", arguments: bounds)
  func bounded(_ tails: Int, _ bytes: Int) throws {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    var options = LedgerFixture.smallOptions(block: 500, segment: 1 << 20)
    options.unsealedTailCountMax = tails
    options.unsealedByteCountMax = bytes
    let writer = try LedgerWriter.open(directory, options: options)
    // The disk has no room for a block, so an append that would have to wait for one is refused
    // instead.
    storage.setFaults(.init(fullFiles: ".jsonl.gz"))
    var count = 0
    let error = #expect(throws: LedgerError.self) {
      while count < 60 {
        _ = try writer.append([CrashRig.draft(count)])
        count += 1
      }
    }
    expectEqual(error?.cause, systemErrorText(ENOSPC))
    #expect((2...4).contains(writer.unsealedTails.count))
    storage.setFaults(.init())
    #expect(eventually { (try? writer.append([CrashRig.draft(count)])) != nil })
    try writer.close()
    try expectEqual(CrashRig(.sealing).content(storage), (0...count).map(CrashRig.data))
  }

  @Test("A ledger left with many full tails opens at once, and they are sealed")
  func leftBehind() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let lines = try fixture.lines()
    for frame in frames { try fixture.write(frame.bytes, to: tailName(frame.first)) }
    // The next tail had been created, and nothing of it was durable.
    try fixture.write([], to: tailName(10))
    try expectEqual(fixture.lines(), lines)
    #expect(try LogAudit(fixture.directory).run().isWhole)
    let options = LedgerFixture.smallOptions(block: 1)
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    expectEqual(writer.recovery.unsealedTails, (0..<10).map { "log/" + tailName($0) })
    expectEqual(writer.recovery.notes, ["removed log/\(tailName(10)): it held no event"])
    try expectEqual(writer.append([fixture.draft(10)]).firstPosition, 10)
    try writer.close()
    expectEqual(fixture.tailNames, [tailName(10)])
    try expectEqual(fixture.lines().prefix(10), lines[...])
    #expect(try LogAudit(fixture.directory).run().isWhole)
  }

  @Test("A writer that closes leaves the tails of earlier writers once its time is over")
  func leftAgain() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    for frame in frames { try fixture.write(frame.bytes, to: tailName(frame.first)) }
    var options = LedgerFixture.smallOptions(block: 1)
    options.sealingDelayMs = 3_600_000
    options.closingInheritedLimitMs = 0
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    try expectEqual(writer.append([fixture.draft(10)]).firstPosition, 10)
    try writer.close()
    expectEqual(fixture.tailNames, (0...10).map(tailName))
    try expectEqual(fixture.lines().count, 11)
    #expect(try LogAudit(fixture.directory).run().isWhole)
    // With more time they are sealed.
    try LedgerWriter.open(
      fixture.directory, options: LedgerFixture.smallOptions(block: 1)
    ).close()
    expectEqual(fixture.tailNames, [])
    try expectEqual(fixture.lines().count, 11)
  }

  @Test("Closing does not wait for blocks that stall because no processor is idle")
  func closedBesideBusyThreads() throws {
    let fixture = try LedgerFixture()
    let isOver = Atomic(false)
    for _ in 0..<2 * sysconf(Int32(_SC_NPROCESSORS_ONLN)) {
      Thread { while !isOver.load(ordering: .relaxed) {} }.start()
    }
    defer { isOver.store(true, ordering: .relaxed) }
    var options = WriterOptions()
    options.sealingRestMs = 0
    options.sealingDelayMs = 3_600_000
    options.compressionLevel = 12
    options.closingLimitMs = 3_600_000
    var random = SeededRandom(seed: 9)
    let text = String(
      decoding: (0..<2 << 20).map { _ in UInt8.random(in: 97...122, using: &random) }, as: UTF8.self
    )
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    for index in 0..<4 {
      let data = Array("{\"n\":\(index),\"pad\":\"\(text)\(text)\"}".utf8)
      _ = try writer.append([EventDraft(type: "test.large", version: 1, data: data)])
    }
    // A thread of idle priority has begun the first by now, or will: there it takes minutes.
    let startMs = Timestamp.now()
    try writer.close()
    #expect(Timestamp.now() - startMs < 60_000)
    expectEqual(fixture.tailNames.count, 1)
    try expectEqual(LogReader(fixture.directory).head.size, 4)
  }

  /// A log with many tails, for whose blocks the disk has no room.
  private static func manyTails(
    _ count: Int, padding: Int = 0, storage: FaultyStorage
  ) throws -> LedgerDirectory {
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    storage.setFaults(.init(fullFiles: ".jsonl.gz"))
    let options = LedgerFixture.smallOptions(block: 1, segment: 1 << 20)
    let writer = try LedgerWriter.open(directory, options: options)
    let pad = String(repeating: "z", count: padding)
    for _ in 0..<count {
      let index = writer.nextPosition
      let data = padding == 0 ? CrashRig.data(index) : "{\"n\":\(index),\"pad\":\"\(pad)\"}"
      _ = try writer.append([EventDraft(type: "test.crash", version: 1, data: Array(data.utf8))])
    }
    try writer.close()
    storage.setFaults(.init())
    return directory
  }

  @Test("A log with more tails than files may be open is opened, read, written and sealed")
  func fewFiles() throws {
    let storage = try CrashRig.newLedger()
    let directory = try Self.manyTails(60, storage: storage)
    storage.setFaults(.init(openFilesMax: storage.openFileCount + 16))
    let reader = try LogReader(directory, keptTailCount: 4)
    #expect(reader.damage == nil && reader.head.size == 60)
    let writer = try LedgerWriter.open(
      directory, options: LedgerFixture.smallOptions(block: 1, segment: 1 << 20))
    try expectEqual(writer.append([CrashRig.draft(60)]).firstPosition, 60)
    try writer.close()
    try reader.refresh()
    #expect(reader.damage == nil && reader.head.size == 61)
    #expect(try LogAudit(directory, workers: 0).run().isWhole)
    // The last one is the one that the next append continues.
    expectEqual(storage.paths.filter { $0.contains("tail-") }.count, 1)
  }

  @Test("A view whose tails are not kept open stays the same while they become blocks")
  func vanishedTails() throws {
    let storage = try CrashRig.newLedger()
    let directory = try Self.manyTails(30, storage: storage)
    for action in 0..<3 {
      let reader = try LogReader(directory, keptTailCount: 2)
      let (head, frontier) = (reader.head, try reader.frontier(at: 12))
      let lines = try (0..<30).map { try reader.event(at: $0) }
      if action == 0 {
        let writer = try LedgerWriter.open(
          directory, options: LedgerFixture.smallOptions(block: 1, segment: 1 << 20))
        _ = try writer.append([CrashRig.draft(30)])
        try writer.close()
      }
      switch action {
      case 0:
        var found: [[UInt8]] = []
        try reader.read(from: 0) { chunk in
          try chunk.forEachEvent { found.append(Array($0.bytes)) }
          return true
        }
        expectEqual(found, lines)
      case 1: try expectEqual(reader.event(at: 17), lines[17])
      default: try expectEqual(reader.frontier(at: 12), frontier)
      }
      expectEqual(reader.head, head)
      if action == 0 {
        #expect(throws: LedgerError.self) { try reader.event(at: 30) }
        try reader.refresh()
        expectEqual(reader.head.size, 31)
      }
    }
  }

  @Test(
    "An up-to-date reader does not read a tail again when a segment is closed after its blocks")
  func rollOverReadsLittle() throws {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    var options = LedgerFixture.smallOptions(block: 1, segment: 1 << 20)
    let first = try LedgerWriter.open(directory, options: options)
    for index in 0..<3 { _ = try first.append([CrashRig.draft(index)]) }
    try first.close()
    _ = try Self.manyTails(40, padding: 20_000, storage: storage)
    let reader = try LogReader(directory)
    try expectEqual(reader.files().filter { $0.kind == .tail }.count, 41)
    // One block begins the next segment, and the disk has no room for the segment after that.
    storage.setFaults(.init(fullFiles: "0003.jsonl.gz"))
    options.segmentByteCount = 1
    try LedgerWriter.open(directory, options: options).close()
    storage.setFaults(.init())
    try reader.refresh()
    #expect(reader.damage == nil && reader.head.size == 43)
    #expect(try reader.files().filter { $0.kind == .sealed }.count >= 1)
    #expect(storage.readByteCount < 200_000)
  }

  @Test("A tail that becomes unreadable ends the writer, and is left alone")
  func unreadable() throws {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    storage.setFaults(.init(unreadable: ["/ledger/log/" + tailName(0): 0..<4096]))
    let writer = try LedgerWriter.open(
      directory, options: LedgerFixture.smallOptions(block: 500, segment: 1 << 20))
    var count = 0
    let hasEnded = eventually {
      guard (try? writer.append([CrashRig.draft(count)])) != nil else { return true }
      count += 1
      return false
    }
    #expect(hasEnded)
    let failure = #expect(throws: LedgerError.self) { try writer.close() }
    #expect(failure?.damage?.verdict == .unreadable && failure?.damage?.position == 0)
    storage.setFaults(.init())
    try LedgerWriter.open(directory).close()
    try expectEqual(CrashRig(.sealing).content(storage), (0..<count).map(CrashRig.data))
  }

  @Test("A reader closes tails as they become blocks")
  func readerFollows() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    for frame in frames { try fixture.write(frame.bytes, to: tailName(frame.first)) }
    let reader = try LogReader(fixture.directory)
    let head = reader.head
    try expectEqual(reader.files().filter { $0.kind == .tail }.count, 10)
    try LedgerWriter.open(fixture.directory, options: LedgerFixture.smallOptions(block: 1)).close()
    try reader.closeSealedTails()
    #expect(reader.damage == nil && reader.head == head)
    #expect(try reader.files().allSatisfy { $0.kind != .tail })
    var next = 0
    try reader.read(from: 0) { chunk in
      expectEqual(chunk.firstPosition, next)
      next = chunk.endPosition
      return true
    }
    expectEqual(next, 10)
  }

  @Test("Blocks sealed into further segments since the last refresh are seen at once")
  func readerSeesRollOver() throws {
    let fixture = try LedgerFixture()
    // Each block closes its segment.
    let writer = try LedgerWriter.open(
      fixture.directory, options: LedgerFixture.smallOptions(block: 2000, segment: 1))
    _ = try writer.append([fixture.draft(0)])
    let reader = try LogReader(fixture.directory)
    // The tail that the reader has open grows and becomes a block before the next refresh, like those after it.
    for number in 1..<40 { _ = try writer.append([fixture.draft(number)]) }
    try writer.close()
    try reader.refresh()
    #expect(reader.damage == nil && reader.head.size == 40)
  }

  @Test("A reader of few tails keeps its head until it is refreshed")
  func readerRests() throws {
    let fixture = try LedgerFixture()
    _ = try fixture.fillOneTail()
    let reader = try LogReader(fixture.directory)
    let writer = try LedgerWriter.open(fixture.directory)
    _ = try writer.append([fixture.draft(10)])
    try writer.close()
    try reader.closeSealedTails()
    expectEqual(reader.head.size, 10)
    try reader.refresh()
    expectEqual(reader.head.size, 11)
  }
}
