// A tail that outlived its block: it is removed if the block holds its events; otherwise the block is written again.
import Base
import Glibc
import Ledger
import TestSupport
import Testing

/// A log on failing storage with a block for each event, and the tails from which the blocks were made.
struct BlocksAndTails {
  static let count = 6
  static let logPath = "/ledger/log/"
  let storage: FaultyStorage
  let options: WriterOptions
  /// The tails' bytes, by their first positions.
  let tails: [[UInt8]]
  /// The segments' bytes, by their paths.
  let segments: [String: [UInt8]]

  /// - Parameter segment: where segments roll.
  init(segment: Int = 1 << 20) throws {
    storage = try CrashRig.newLedger()
    options = LedgerFixture.smallOptions(block: 1, segment: segment)
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    // While the disk has no room for blocks, the tails stay.
    storage.setFaults(.init(fullFiles: ".jsonl.gz"))
    let writer = try LedgerWriter.open(directory, options: options)
    for index in 0..<Self.count { _ = try writer.append([CrashRig.draft(index)]) }
    try writer.close()
    storage.setFaults(.init())
    tails = (0..<Self.count).map { [storage] in storage.content(Self.tailPath($0)) }
    try LedgerWriter.open(directory, options: options).close()
    let paths = storage.paths.filter { $0.hasSuffix(".jsonl.gz") }
    segments = Dictionary(
      uniqueKeysWithValues: paths.map { [storage] in ($0, storage.content($0)) })
    #expect(storage.paths.allSatisfy { !$0.contains("tail-") })
  }

  static func tailPath(_ first: Int) -> String {
    logPath + "tail-" + String(repeating: "0", count: 19) + "\(first).log"
  }

  static func segmentPath(_ first: Int) -> String {
    logPath + String(repeating: "0", count: 19) + "\(first).jsonl.gz"
  }

  /// Where a block of the first segment begins and ends, by its gzip members.
  func block(_ index: Int) -> Range<Int> {
    let bytes = segments[Self.segmentPath(0)] ?? []
    let start: [UInt8] = [0x1F, 0x8B, 8, 4, 0, 0, 0, 0, 0, 255]
    var starts = (0..<max(0, bytes.count - start.count)).filter {
      bytes[$0..<$0 + start.count].elementsEqual(start)
    }
    starts.append(bytes.count)
    return starts[index + 1]..<starts[index + 2]
  }

  /// The log as it was sealed, on new storage, with these tails and these bits flipped.
  func copy(tails indices: [Int], flipping bits: [(offset: Int, bit: UInt8)] = []) -> FaultyStorage
  {
    let copy = storage.afterCrash(seed: 1)
    for (path, content) in segments { copy.place(path, content) }
    for index in indices { copy.place(Self.tailPath(index), tails[index]) }
    var first = segments[Self.segmentPath(0)] ?? []
    for (offset, bit) in bits { first[offset] ^= 1 << bit }
    copy.place(Self.segmentPath(0), first)
    return copy
  }

  /// Opens for writing and closes.
  func recover(_ storage: FaultyStorage) throws(LedgerError) -> RecoveryReport {
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: options)
    try writer.close()
    return writer.recovery
  }

  /// Expects the log as it was before the damage, byte for byte, without tails.
  func checkWhole(_ storage: FaultyStorage, _ comment: Comment? = nil) throws {
    #expect(storage.paths.allSatisfy { !$0.contains("tail-") }, comment)
    for (path, content) in segments { expectEqual(storage.content(path), content, comment) }
    try expectEqual(
      CrashRig(.sealing).content(storage), (0..<Self.count).map(CrashRig.data), comment)
    // The rewritten blocks are on disk.
    let later = storage.afterCrash(seed: 2)
    for (path, content) in segments { expectEqual(later.content(path), content, comment) }
  }

  /// Expects that opening fails with exit code 20 and changes nothing.
  @discardableResult
  func checkRefused(
    _ storage: FaultyStorage, _ comment: Comment? = nil
  ) throws -> LedgerError? {
    let before = storage.paths.map { storage.content($0) }
    let error = #expect(throws: LedgerError.self, comment) { try recover(storage) }
    expectEqual(error?.exitCode, .corrupted, comment)
    expectEqual(storage.paths.filter { $0 != "/ledger/lock" }.count, before.count - 1, comment)
    for (path, content) in zip(storage.paths, before) where path != "/ledger/lock" {
      expectEqual(storage.content(path), content, comment)
    }
    return error
  }
}

@Suite("Tails that blocks cover")
struct CoveredTailTests {
  @Test(
    "A damaged block whose tail is there is written again, wherever it is",
    arguments: 0..<BlocksAndTails.count)
  func repaired(_ index: Int) throws {
    let log = try BlocksAndTails()
    let damaged = log.copy(tails: [index], flipping: [(log.block(index).upperBound - 20, 3)])
    let report = try log.recover(damaged)
    if index == BlocksAndTails.count - 1 {
      // The last block is cut off like an unfinished one, and sealed again.
      #expect(report.tornMember != nil)
    } else {
      expectEqual(
        report.repairedBlocks,
        [
          .init(
            file: "log/00000000000000000000.jsonl.gz", block: index,
            tail: "log/tail-0000000000000000000\(index).log")
        ])
      expectEqual(report.notes.count, 2)
    }
    try log.checkWhole(damaged)
    #expect(try log.recover(damaged).notes.isEmpty)
  }

  @Test("Several adjacent damaged blocks are written again")
  func severalRepaired() throws {
    let log = try BlocksAndTails()
    let damaged = log.copy(
      tails: Array(0..<BlocksAndTails.count),
      flipping: [1, 2, 4].map { (log.block($0).upperBound - 15, 0) })
    let report = try log.recover(damaged)
    expectEqual(report.repairedBlocks.map(\.block), [1, 2, 4])
    expectEqual(report.coveredTails.count, BlocksAndTails.count)
    try log.checkWhole(damaged)
  }

  @Test("A block in a closed segment is written again, and the segment stays closed")
  func closedSegment() throws {
    // Each block has a segment of its own.
    let log = try BlocksAndTails(segment: 1)
    expectEqual(log.segments.count, BlocksAndTails.count)
    let damaged = log.copy(tails: [0, 1], flipping: [(log.block(0).upperBound - 20, 1)])
    let report = try log.recover(damaged)
    expectEqual(report.repairedBlocks.map(\.file), ["log/00000000000000000000.jsonl.gz"])
    try log.checkWhole(damaged)
  }

  @Test("Every bit of a block: it is restored as it was, or the log is refused and left alone")
  func everyBit() throws {
    let log = try BlocksAndTails()
    var repairedCount = 0
    for offset in log.block(2) {
      let damaged = log.copy(tails: [2], flipping: [(offset, UInt8(offset % 8))])
      if let report = try? log.recover(damaged) {
        expectEqual(report.repairedBlocks.count, 1, "byte \(offset)")
        try log.checkWhole(damaged, "byte \(offset)")
        repairedCount += 1
      } else {
        try log.checkRefused(damaged, "byte \(offset)")
        expectEqual(damaged.content(BlocksAndTails.tailPath(2)), log.tails[2])
      }
    }
    // Only bits of the header are refused, since it locates the next block.
    #expect(repairedCount > log.block(2).count / 2)
  }

  @Test("A block and a tail that are both damaged are left alone")
  func bothDamaged() throws {
    let log = try BlocksAndTails()
    let damaged = log.copy(tails: [0, 2], flipping: [(log.block(2).upperBound - 20, 1)])
    var tail = log.tails[2]
    tail[tail.count / 2] ^= 1
    damaged.place(BlocksAndTails.tailPath(2), tail)
    let error = try log.checkRefused(damaged)
    #expect(error?.damage?.verdict == .corrupt && error?.damage?.block == 2)
    #expect(error?.cause.contains("does not hold all of its events") == true)
  }

  @Test("A tail that is damaged, cut or empty is removed if its block is whole", arguments: 0..<3)
  func damagedTail(_ change: Int) throws {
    let log = try BlocksAndTails()
    let damaged = log.copy(tails: [2])
    var tail = log.tails[2]
    switch change {
    case 0: tail[tail.count / 2] ^= 1
    case 1: tail.removeLast(3)
    default: tail = []
    }
    damaged.place(BlocksAndTails.tailPath(2), tail)
    try expectEqual(log.recover(damaged).coveredTails.count, 1)
    try log.checkWhole(damaged)
  }

  @Test("A whole tail that holds other events than its whole block is left alone")
  func otherEvents() throws {
    let log = try BlocksAndTails()
    // The same data with other salts and times.
    let other = try BlocksAndTails()
    let damaged = log.copy(tails: [])
    damaged.place(BlocksAndTails.tailPath(2), other.tails[2])
    let error = try log.checkRefused(damaged)
    #expect(error?.damage?.verdict == .tampered && error?.damage?.block == 2)
  }

  @Test("A block that the medium cannot read is refused, and its tail stays")
  func unreadable() throws {
    let log = try BlocksAndTails()
    let damaged = log.copy(tails: [2])
    let end = log.block(2).upperBound
    damaged.setFaults(.init(unreadable: [BlocksAndTails.segmentPath(0): end - 20..<end]))
    let error = #expect(throws: LedgerError.self) { try log.recover(damaged) }
    #expect(error?.damage?.verdict == .unreadable && error?.damage?.block == 2)
    expectEqual(damaged.content(BlocksAndTails.tailPath(2)), log.tails[2])
  }

  @Test("A crash at every call while blocks are written again loses nothing")
  func crashes() throws {
    let log = try BlocksAndTails()
    func damaged() -> FaultyStorage {
      log.copy(
        tails: [1, 2, 3], flipping: [1, 3].map { (log.block($0).upperBound - 20, 5) })
    }
    let whole = damaged()
    whole.setFaults(.init())
    _ = try log.recover(whole)
    var count = 0
    for call in 1...whole.callCount {
      for seed in 0...CrashRig.seedCount {
        let storage = damaged()
        storage.setFaults(.init(crashAtCall: call))
        _ = try? log.recover(storage)
        storage.setFaults(.init())
        let after = seed == 0 ? storage : storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        _ = try log.recover(after)
        try log.checkWhole(after, "call \(call)")
        count += 1
      }
    }
    CrashRig.tell(count, "blocks written anew")
  }

  @Test("Tails that became blocks do not come back after a power cut, once the writer is closed")
  func namesSynced() throws {
    let log = try BlocksAndTails()
    for seed in 0..<8 as Range<UInt64> {
      #expect(log.storage.afterCrash(seed: seed).paths.allSatisfy { !$0.contains("tail-") })
    }
  }

  @Test("An audit advises keeping a tail whose block is damaged")
  func audited() throws {
    let log = try BlocksAndTails()
    let damaged = log.copy(tails: [1, 2], flipping: [(log.block(2).upperBound - 20, 1)])
    let directory = try LedgerDirectory.open(path: "/ledger", storage: damaged)
    let report = try LogAudit(directory, workers: 0).run()
    expectEqual(report.findings.count, 1)
    expectEqual(report.notes.count, 2)
    #expect(report.notes.first?.contains("is sealed already") == true)
    #expect(report.notes.last?.contains("keep this file") == true)
  }
}
