// Segments are rewritten with redacted lines: what changes in them, and what never does.
import Base
import Foundation
import Glibc
import Ledger
import TestSupport
import Testing

/// Threads that append one event after the other, alone or queued.
private final class Appenders: Sendable {
  private struct State {
    var count = 0
    var failureCount = 0
    var mustStop = false
    var threads: [WorkerThread] = []
  }

  private let monitor = Monitor(State())

  init(_ writer: LedgerWriter, count: Int) throws {
    for number in 0..<count {
      let thread = try WorkerThread { [monitor] in
        while !monitor.withLock({ $0.mustStop }) {
          do {
            if number == 0 {
              _ = try writer.append([RedactionRig.draft(number)])
            } else {
              _ = try writer.wait(for: writer.submit([RedactionRig.draft(number)]))
            }
            monitor.withLock { $0.count += 1 }
          } catch {
            monitor.withLock { $0.failureCount += 1 }
          }
        }
      }
      monitor.withLock { $0.threads.append(thread) }
    }
  }

  func stop() -> (count: Int, failureCount: Int) {
    let threads = monitor.withLock { state in
      state.mustStop = true
      return state.threads
    }
    for thread in threads { thread.join() }
    return monitor.withLock { ($0.count, $0.failureCount) }
  }
}

@Suite("Rewriting segments", .bounded)
struct SegmentRewriteTests {
  private static let positions = [2, 9, 10, 26]

  private func prepared(_ count: Int = 30) throws -> (LedgerFixture, RedactionRig) {
    let fixture = try LedgerFixture()
    let rig = RedactionRig(fixture.directory)
    try rig.fill(count)
    return (fixture, rig)
  }

  /// A number of four or eight bytes in a member.
  private func number(_ member: some Collection<UInt8>, _ offset: Int, _ count: Int = 4) -> Int {
    member.dropFirst(offset).prefix(count).reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  @Test("Only blocks with redacted lines change, and in them only content, sizes and checksums")
  func members() throws {
    let (fixture, rig) = try prepared()
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    _ = try rig.open(writer)
    try writer.sealAll()
    let names = fixture.segmentNames
    let before = try names.map { try fixture.content($0) }
    let lines = try fixture.lines()
    let frontier = try LogReader(fixture.directory).head.frontier
    let redacted = try rig.redacted(Self.positions, by: 30)
    try rig.writeFile(redacted)
    let file = try #require(try RedactedLines.ifPresent(fixture.directory))
    var done: [Int] = []
    try writer.rewriteSegments(
      file,
      progress: {
        done.append($0); #expect($0 <= $1)
      })
    #expect(done == done.sorted() && !done.isEmpty)
    #expect(fixture.segmentNames == names && names.count > 3)
    var changedCount = 0
    var untouchedCount = 0
    for (index, name) in names.enumerated() {
      let after = try fixture.content(name)
      let old = try memberPlaces(before[index]).map { Array(before[index][$0]) }
      let new = try memberPlaces(after).map { Array(after[$0]) }
      expectEqual(old.count, new.count)
      for (old, new) in zip(old, new) {
        let first = number(old, 24, 8)
        let isConcerned =
          old[17] == 2
          && Self.positions.contains { (first..<first + number(old, 32, 8)).contains($0) }
        if old == new {
          #expect(!isConcerned)
          untouchedCount += 1
          continue
        }
        changedCount += 1
        // A block with redacted lines, or the closing member after one.
        #expect(isConcerned || old[17] == 3)
        let headerCount = 16 + number(old, 14, 2)
        let fields = isConcerned ? [20..<24, 40..<48] : [20..<24, 64..<72]
        for place in 0..<headerCount where !fields.contains(where: { $0.contains(place) }) {
          expectEqual(old[place], new[place], "byte \(place) of a header")
        }
      }
    }
    #expect(changedCount >= 4 && untouchedCount > 10)
    try RedactionFile.remove(from: fixture.directory)
    var expected = lines
    for (index, position) in Self.positions.enumerated() { expected[position] = redacted[index] }
    try expectEqual(fixture.lines(), expected)
    try expectEqual(LogReader(fixture.directory).head.frontier, frontier)
    // Any gzip tool reads it.
    let text = try shell("zcat log/*.jsonl.gz", in: fixture.path)
    #expect(text.output == expected.flatMap { $0 + [0x0A] } && text.status == 0)
    for name in names {
      let attributes = try FileManager.default.attributesOfItem(
        atPath: fixture.logPath + "/" + name)
      expectEqual(
        (attributes[.posixPermissions] as? NSNumber)?.intValue, (name == names.last ? 0o600 : 0o400)
      )
    }
    // A second run writes nothing.
    try rig.writeFile(redacted)
    let contents = try names.map { try fixture.content($0) }
    let numbers = try names.map { try inode(fixture, $0) }
    try writer.rewriteSegments(try #require(try RedactedLines.ifPresent(fixture.directory)))
    try expectEqual(names.map { try fixture.content($0) }, contents)
    try expectEqual(names.map { try inode(fixture, $0) }, numbers)
    try writer.close()
  }

  private func inode(_ fixture: LedgerFixture, _ name: String) throws -> Int? {
    let attributes = try FileManager.default.attributesOfItem(atPath: fixture.logPath + "/" + name)
    return (attributes[.systemFileNumber] as? NSNumber)?.intValue
  }

  @Test("Earlier heads and proofs hold, and the same proofs are made afterwards")
  func proofs() throws {
    let (fixture, rig) = try prepared()
    let key = try KeyStore(fixture.directory).create(isFurther: false)
    let directory = try LedgerDirectory.open(path: fixture.path)
    let store = CheckpointStore(directory)
    let old = try store.sign(try LogReader(directory), size: 14)
    let new = try store.sign(try LogReader(directory))
    func proofs() throws -> (inclusion: [[SHA256Digest]], consistency: [SHA256Digest]) {
      let reader = try LogReader(directory)
      return (
        try (0..<30).map { try TreeProof.inclusion(of: $0, in: 30, reader) },
        try TreeProof.consistency(from: 14, to: 30, reader)
      )
    }
    let before = try proofs()
    let lines = try fixture.lines()
    let erased = RedactionRig(directory, options: rig.options)
    try erased.erase(Self.positions)
    let after = try proofs()
    #expect(before == after)
    let reader = try LogReader(directory)
    for position in 0..<30 {
      let line = try reader.event(at: position)
      expectEqual(leafHash(line), leafHash(lines[position]))
      #expect(
        TreeProof.verifyInclusion(
          of: leafHash(line), at: position, size: 30, root: new.root, before.inclusion[position]))
    }
    #expect(
      TreeProof.verifyConsistency(
        from: 14, root: old.root, to: 30, root: new.root, before.consistency))
    try expectEqual(Checkpoint(new.bytes, keys: [key]).root, new.root)
    var report = try LogAudit(directory, rootsAt: store.sizes()).run()
    report.check(store, sizes: try store.sizes())
    #expect(report.isWhole && report.checkpointCount == 2 && report.redactedCount == 4)
  }

  @Test("Every event is put into a block at once, while others append")
  func sealAll() throws {
    let fixture = try LedgerFixture()
    var options = WriterOptions()
    options.sealingRestMs = 3_600_000
    options.sealingDelayMs = 3_600_000
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    try expectEqual(writer.sealAll(), 0)
    let appenders = try Appenders(writer, count: 3)
    for _ in 0..<12 {
      let result = try writer.append([RedactionRig.draft(0)])
      let end = try writer.sealAll()
      #expect(end > result.firstPosition)
      let tails = fixture.tailNames.compactMap { Int($0.dropFirst(5).prefix(20)) }
      #expect(tails.allSatisfy { $0 >= end })
    }
    let (count, failureCount) = appenders.stop()
    let end = try writer.sealAll()
    #expect(failureCount == 0 && end == count + 12 && fixture.tailNames == [])
    try expectEqual(writer.sealAll(), end)
    try writer.close()
    #expect(throws: LedgerError.self) { try writer.sealAll() }
    try expectEqual(fixture.lines().count, end)
    #expect(try LogAudit(fixture.directory).run().isWhole)
  }

  @Test(
    "A disk without room for blocks ends the wait for them, and it succeeds once there is room")
  func sealAllStalled() throws {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: WriterOptions())
    for index in 0..<5 { _ = try writer.append([RedactionRig.draft(index)]) }
    storage.setFaults(.init(fullFiles: ".jsonl.gz"))
    for _ in 0..<2 {
      let error = #expect(throws: LedgerError.self) { try writer.sealAll() }
      expectEqual(error?.cause, systemErrorText(ENOSPC))
    }
    _ = try writer.append([RedactionRig.draft(5)])
    storage.setFaults(.init())
    try expectEqual(writer.sealAll(), 6)
    storage.setFaults(.init(failSync: 1))
    _ = try? writer.append([RedactionRig.draft(6)])
    #expect(throws: LedgerError.self) { try writer.sealAll() }
    try? writer.close()
  }

  @Test(
    "The newest segment is rewritten repeatedly while others append and blocks are sealed",
    arguments: [false, true])
  func whileAppending(isRewrittenEarly: Bool) throws {
    let fixture = try LedgerFixture()
    let rig = RedactionRig(
      fixture.directory, options: LedgerFixture.smallOptions(block: 3000, segment: 9000),
      isRewrittenEarly: isRewrittenEarly)
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    for index in 0..<200 { _ = try writer.append([RedactionRig.draft(index)]) }
    let appenders = try Appenders(writer, count: 2)
    var erased: [Position] = []
    for round in 0..<8 {
      let end = try writer.sealAll()
      let reader = try LogReader(fixture.directory)
      let positions = try [round, 20 + 7 * round, end - 2 - round, end - 1].filter {
        try reader.event(at: $0).withUnsafeBytes { EventLine($0)?.hasType("test.person") == true }
      }
      erased += positions
      try rig.erase(positions, with: writer)
      #expect(try rig.isFree(erased))
    }
    #expect(appenders.stop().failureCount == 0 && writer.failure == nil)
    try writer.close()
    #expect(fixture.segmentNames.count > 1)
    let report = try LogAudit(fixture.directory).run()
    #expect(report.isWhole && report.notes == [], "\(report.findings) \(report.notes)")
    #expect(report.redactedCount == Set(erased).count && report.erasures.count == 8)
    try expectEqual(fixture.lines().count, report.size)
  }

  @Test("A forbidden rewrite is refused before anything is written")
  func refused() throws {
    let (fixture, rig) = try prepared()
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    try writer.sealAll()
    try rig.writeFile(try rig.redacted([2], by: 40))
    let lines = try #require(try RedactedLines.ifPresent(fixture.directory))
    let before = try fixture.segmentNames.map { try fixture.content($0) }
    // The format version is still 1.
    let version = #expect(throws: LedgerError.self) { try writer.rewriteSegments(lines) }
    expectEqual(version?.kind, .invalidInput)
    _ = try fixture.directory.allowingRedactions()
    let stopped = #expect(throws: LedgerError.self) {
      try writer.rewriteSegments(lines, isCancelled: { true })
    }
    expectEqual(stopped?.kind, .closed)
    try expectEqual(fixture.segmentNames.map { try fixture.content($0) }, before)
    #expect(fixture.names.allSatisfy { !$0.hasSuffix(".new") })
    // A position that is only in a tail.
    let position = try writer.append([RedactionRig.draft(1)]).firstPosition
    try RedactionFile.remove(from: fixture.directory)
    try rig.writeFile(try rig.redacted([position], by: 40))
    let tail = try #require(try RedactedLines.ifPresent(fixture.directory))
    let early = #expect(throws: LedgerError.self) { try writer.rewriteSegments(tail) }
    expectEqual(early?.cause, "position \(position) is not in a block yet")
    try expectEqual(fixture.segmentNames.map { try fixture.content($0) }, before)
    try writer.sealAll()
    try writer.rewriteSegments(tail)
    try writer.close()
    #expect(throws: LedgerError.self) { try writer.rewriteSegments(tail) }
  }

  @Test("A damaged block that would be rewritten is reported, and its segment stays as it is")
  func damaged() throws {
    let (fixture, rig) = try prepared()
    _ = try fixture.directory.allowingRedactions()
    try rig.writeFile(try rig.redacted([2, 9], by: 40))
    let name = fixture.segmentNames[0]
    var content = try fixture.content(name)
    let block = try memberPlaces(content)[1]
    content[block.upperBound - 20] ^= 1
    try fixture.write(content, to: name)
    let writer = try LedgerWriter.open(fixture.directory, options: rig.options)
    try writer.sealAll()
    let lines = try #require(try RedactedLines.ifPresent(fixture.directory))
    let error = #expect(throws: LedgerError.self) { try writer.rewriteSegments(lines) }
    #expect(error?.damage?.verdict == .corrupt && error?.damage?.block == 0)
    try expectEqual(fixture.content(name), content)
    #expect(writer.failure == nil && fixture.names.allSatisfy { !$0.hasSuffix(".new") })
    try writer.close()
  }

  @Test("A tail that outlived its block loses against the redacted block, and is removed")
  func coveredTail() throws {
    let log = try BlocksAndTails()
    let storage = log.storage
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let rig = RedactionRig(directory, options: log.options)
    try rig.erase([1, 4])
    for index in [1, 2, 4] { storage.place(BlocksAndTails.tailPath(index), log.tails[index]) }
    let writer = try LedgerWriter.open(directory, options: log.options)
    expectEqual(writer.recovery.coveredTails.count, 3)
    try writer.close()
    #expect(try rig.audit().isWhole)
    #expect(try LogReader(directory).event(at: 1).contains(UInt8(ascii: "r")))
    #expect(storage.paths.allSatisfy { !$0.contains("tail-0000000000000000000\(1)") })
    // A tail of other events is still a contradiction.
    let other = String(decoding: log.tails[2], as: UTF8.self)
      .replacingOccurrences(of: "\"salt\":\"", with: "\"salt\":\"")
    storage.place(BlocksAndTails.tailPath(2), Array(other.utf8))
    try LedgerWriter.open(directory, options: log.options).close()
  }
}
