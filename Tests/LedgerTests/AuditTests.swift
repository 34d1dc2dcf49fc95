// The audit: a whole log passes; every kind of damage is found and named, and does not end the
// audit.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

extension LedgerFixture {
  func audit(rootsAt: [Int] = [], workers: Int = 2) throws -> AuditReport {
    try LogAudit(directory, rootsAt: rootsAt, workers: workers).run()
  }
}

private let first = "00000000000000000000.jsonl.gz"

@Suite("Audit of a log", .bounded)
struct AuditTests {
  @Test("A whole log has no finding, and its own root at every size", arguments: [0, 2])
  func whole(_ workers: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.fill(45)
    let writer = try LedgerWriter.open(fixture.directory)
    _ = try writer.append((45..<50).map { fixture.draft($0) })
    try writer.close()
    let lines = try fixture.lines()
    let leaves = lines.map(leafHash)
    let report = try fixture.audit(rootsAt: Array(-1...60), workers: workers)
    #expect(report.findings == [] && report.notes == [])
    #expect(report.eventCount == 50 && report.size == 50)
    expectEqual(report.frontier, naiveFrontier(lines))
    #expect(report.segmentCount == fixture.segmentNames.count && report.segmentCount > 3)
    #expect(report.tailCount == fixture.tailNames.count && report.tailCount > 0)
    expectEqual(report.roots.count, 51)
    for size in 0...50 { expectEqual(report.roots[size], naiveRoot(Array(leaves[..<size]))) }
    let byteCount = try fixture.names.reduce(0) { $0 + (try fixture.content($1).count) }
    expectEqual(report.byteCount, byteCount)
  }

  @Test("An empty ledger is whole")
  func empty() throws {
    let report = try LedgerFixture().audit(rootsAt: [0])
    #expect(report.isWhole && report.size == 0 && report.roots[0] == hash([]))
  }

  @Test("A ledger without its log's folder is a finding, not a failure")
  func noFolder() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(3)
    try FileManager.default.removeItem(atPath: fixture.logPath)
    let report = try fixture.audit()
    #expect(report.findings.map(\.damage.verdict) == [.missing] && report.size == 0)
  }

  @Test(
    "Of a badly damaged log, a thousand findings and notes are kept and the others counted")
  func thoroughDamage() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(3)
    for number in 0..<1100 {
      let name = "\(fixture.logPath)/\(String(repeating: "0", count: 14))\(100_000 + number)"
      try Data("x".utf8).write(to: URL(fileURLWithPath: name + ".jsonl.gz"))
      try Data("x".utf8).write(to: URL(fileURLWithPath: name + ".new"))
    }
    let report = try fixture.audit()
    expectEqual(report.findings.count, AuditReport.findingCountMax)
    #expect(report.furtherFindingCount >= 100)
    expectEqual(report.notes.count, AuditReport.findingCountMax + 1)
    #expect(report.notes.last?.hasPrefix("and 1") == true)
  }

  @Test("Every damaged block is reported with its location; the blocks between are read")
  func severalBlocks() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60, options: LedgerFixture.smallOptions(block: 1000, segment: 1 << 20))
    let whole = try fixture.audit(workers: 0)
    #expect(whole.isWhole && whole.segmentCount == 1 && whole.blockCount > 8)
    let members = try memberPlaces(fixture.content(first))
    var changed = try fixture.content(first)
    let damaged = [2, 3, 6]
    for index in damaged { changed[members[index].upperBound - 20] ^= 0x10 }
    try fixture.write(changed, to: first)
    for workers in [0, 2] {
      let report = try fixture.audit(workers: workers)
      expectEqual(report.findings.map(\.damage.verdict), [.corrupt, .corrupt, .corrupt])
      // The opening member is the first; blocks are counted from 0.
      expectEqual(report.findings.map(\.damage.block), damaged.map { $0 - 1 })
      let lost = report.findings.map { ($0.endPosition ?? 0) - ($0.damage.position ?? 0) }
      #expect(lost.allSatisfy { $0 > 0 })
      expectEqual(report.eventCount, 60 - lost.reduce(0, +))
      #expect(report.blockCount == whole.blockCount - 3 && report.size == 60)
      expectEqual(report.frontier, whole.frontier)
    }
  }

  @Test("A last block with the right CRC-32 whose content does not inflate is reported")
  func forgedLastBlock() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60, options: LedgerFixture.smallOptions(block: 1000, segment: 1 << 20))
    for name in fixture.tailNames { try fixture.remove(name) }
    var content = try fixture.content(first)
    let members = try memberPlaces(content)
    let last = try #require(members.last)
    content[last.upperBound - 20] ^= 0x10
    // The CRC covers every byte of the member but the four that hold it.
    let checksum = crc32(
      content[last].enumerated().filter { !(20..<24 ~= $0.offset) }.map(\.element))
    for place in 0..<4 {
      content[last.lowerBound + 20 + place] = UInt8(truncatingIfNeeded: checksum >> (8 * place))
    }
    try fixture.write(content, to: first)
    for workers in [0, 2] {
      let report = try fixture.audit(workers: workers)
      expectEqual(report.findings.map(\.damage.verdict), [.corrupt])
      expectEqual(report.findings.map(\.damage.block), [members.count - 2])
    }
  }

  @Test(
    "A damaged header costs its own block and no other",
    arguments: [0, 4, 10, 14, 24, 32, 33, 37, 40, 41, 44, 49])
  func damagedHeader(_ offset: Int) throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60, options: LedgerFixture.smallOptions(block: 1000, segment: 1 << 20))
    let whole = try fixture.audit()
    let members = try memberPlaces(fixture.content(first))
    var changed = try fixture.content(first)
    changed[members[3].lowerBound + offset] ^= 1
    try fixture.write(changed, to: first)
    let report = try fixture.audit()
    #expect(!report.isWhole && report.size == 60)
    expectEqual(report.blockCount, whole.blockCount - 1)
    let finding = try #require(report.findings.first)
    #expect(finding.damage.block == 2 && finding.damage.verdict == .corrupt)
    if let end = finding.endPosition {
      expectEqual(report.eventCount, 60 - (end - (finding.damage.position ?? 0)))
    }
  }

  @Test("Segments that are missing, emptied, another log's or doubled are reported")
  func segments() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    let other = try LedgerFixture()
    try other.fill(60)
    let names = fixture.segmentNames
    for (index, name) in names.enumerated() where index < names.count - 1 {
      let content = try fixture.content(name)
      func verdicts(_ change: String) throws -> [LedgerError.Verdict] {
        let report = try fixture.audit()
        expectEqual(report.size, 60, "segment \(index) \(change)")
        #expect(report.eventCount > 0, "segment \(index) \(change)")
        return report.findings.map(\.damage.verdict)
      }
      try fixture.remove(name)
      try expectEqual(verdicts("removed").first, .missing)
      try fixture.write([], to: name)
      try expectEqual(verdicts("emptied").first, .corrupt)
      try fixture.write(try other.content(name), to: name)
      try expectEqual(verdicts("another's").first, .tampered)
      try fixture.write(try fixture.content(names[index == 0 ? 1 : index - 1]), to: name)
      try expectEqual(verdicts("duplicated").first, .tampered)
      try fixture.write(content, to: name)
    }
    #expect(try fixture.audit().isWhole)
  }

  @Test("Blocks that are missing, doubled or swapped are reported")
  func blocks() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60, options: LedgerFixture.smallOptions(block: 1000, segment: 1 << 20))
    let content = try fixture.content(first)
    let members = try memberPlaces(content).map { Array(content[$0]) }
    func findings(_ members: [[UInt8]]) throws -> [LedgerError.Verdict] {
      try fixture.write(Array(members.joined()), to: first)
      let report = try fixture.audit()
      expectEqual(report.size, 60)
      return report.findings.map(\.damage.verdict)
    }
    try expectEqual(findings(members), [])
    var changed = members
    changed.remove(at: 3)
    try expectEqual(findings(changed), [.missing])
    changed = members
    changed.insert(members[3], at: 4)
    try expectEqual(findings(changed), [.tampered])
    changed = members
    changed.swapAt(3, 4)
    try expectEqual(findings(changed), [.missing, .tampered])
  }

  @Test("A tail's damaged frame is reported; the frames after it are read")
  func tails() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let name = try #require(fixture.tailNames.first)
    var bytes = frames.map(\.bytes)
    bytes[3][60] ^= 1
    try fixture.write(Array(bytes.joined()), to: name)
    let report = try fixture.audit()
    expectEqual(report.findings.map(\.damage.verdict), [.corrupt])
    #expect(report.findings[0].damage.position == 3 && report.findings[0].endPosition == 4)
    #expect(report.eventCount == 9 && report.size == 10)
    // At the very end, this is what a crash leaves.
    bytes = frames.map(\.bytes)
    bytes[9][60] ^= 1
    try fixture.write(Array(bytes.joined()), to: name)
    let torn = try fixture.audit()
    #expect(torn.isWhole && torn.size == 9 && torn.notes.count == 1)
  }

  @Test("A whole frame whose events are older than those before it is found by audit and writer")
  func olderFrame() throws {
    func frames(_ fixture: LedgerFixture, atMs timeMs: Int64) throws -> [[UInt8]] {
      var options = WriterOptions()
      options.clock = { timeMs }
      try fixture.fill(3, options: options)
      return FrameBytes.split(try fixture.content(tailName(0))).map(\.bytes)
    }
    let fixture = try LedgerFixture()
    var bytes = try frames(fixture, atMs: 2_000_000)
    bytes[1] = try frames(LedgerFixture(), atMs: 1_999_999)[1]
    try fixture.write(Array(bytes.joined()), to: tailName(0))
    let finding = try #require(fixture.audit().findings.first)
    #expect(finding.damage.position == 1 && finding.damage.verdict == .tampered, "\(finding)")
    try expectEqual(fixture.writerError()?.damage?.position, 1)
  }

  @Test("More bytes at a tail's end than a frame can have are not an interrupted write")
  func overlongTail() throws {
    let fixture = try LedgerFixture()
    let frames = try fixture.fillOneTail()
    let name = try #require(fixture.tailNames.first)
    let whole = Array(frames.map(\.bytes).joined())
    try fixture.write(whole + Array(repeating: 0, count: 40 << 20), to: name)
    let report = try fixture.audit()
    expectEqual(report.findings.map(\.damage.verdict), [.corrupt])
    #expect(report.findings[0].damage.position == 10 && report.eventCount == 10)
    try expectEqual(LogReader(fixture.directory).damage?.damage?.verdict, .corrupt)
  }

  @Test("An unreadable tail that a block covers is a finding, and the audit continues")
  func unreadableCoveredTail() throws {
    let fixture = try LedgerFixture()
    _ = try fixture.fillOneBlock()
    // Something that cannot be read as a file.
    let path = fixture.path + "/log/tail-00000000000000000000.log"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let report = try fixture.audit()
    expectEqual(report.findings.map(\.damage.verdict), [.unreadable])
    expectEqual(report.eventCount, 10)
  }

  @Test("Leftovers of a crash are notes, not findings")
  func leftovers() throws {
    let fixture = try LedgerFixture()
    let empty = try fixture.content(first)
    let frames = try fixture.fillOneBlock()
    let name = "tail-00000000000000000000.log"
    try fixture.write(Array(frames.map(\.bytes).joined()), to: name)
    try fixture.write([1], to: "tail-00000000000000000010.log.new")
    var report = try fixture.audit()
    #expect(report.isWhole && report.size == 10 && report.notes.count == 2)
    let whole = try fixture.content(first)
    for length in stride(from: empty.count + 1, to: whole.count, by: 29) {
      try fixture.write(Array(whole[..<length]), to: first)
      report = try fixture.audit()
      #expect(report.isWhole && report.size == 10 && report.notes.count == 2, "\(length)")
    }
    try fixture.remove(name)
    try expectEqual(fixture.audit().findings.map(\.damage.verdict), [.missing])
  }

  @Test("A writer at work does not look like damage")
  func besideAWriter() throws {
    let fixture = try LedgerFixture()
    let path = fixture.path
    let isDone = Monitor(false)
    let thread = Thread {
      defer { isDone.withLock { $0 = true } }
      guard let directory = try? LedgerDirectory.open(path: path),
        let writer = try? LedgerWriter.open(
          directory, options: LedgerFixture.smallOptions(block: 2000, segment: 6000))
      else { return }
      for index in 0..<600 {
        let data = Array("{\"n\":\(index)}".utf8)
        _ = try? writer.append([EventDraft(type: "test.happened", version: 1, data: data)])
      }
      try? writer.close()
    }
    thread.start()
    var size = 0
    var auditCount = 0
    var isLast = false
    while !isLast || auditCount < 3 {
      // The audit after the writer's end sees everything.
      isLast = isDone.withLock { $0 }
      let report = try fixture.audit(workers: auditCount % 3)
      expectEqual(report.findings, [], "audit \(auditCount)")
      #expect(report.size >= size && report.eventCount == report.size)
      size = report.size
      auditCount += 1
    }
    #expect(size == 600 && fixture.segmentNames.count > 3)
  }

  @Test("A consistent forgery of one event is found by the tree")
  func forgedEvent() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(6, options: LedgerFixture.smallOptions(block: 1, segment: 1 << 20))
    let report = try fixture.audit(rootsAt: [6])
    // The whole history rewritten with one figure changed: it agrees with itself.
    let forged = try LedgerDirectory.create(
      path: fixture.path + "-forged", origin: "receipts.example/test",
      id: fixture.directory.identity.id)
    defer { try? FileManager.default.removeItem(atPath: forged.path) }
    let writer = try LedgerWriter.open(
      forged, options: LedgerFixture.smallOptions(block: 1, segment: 1 << 20))
    for index in 0..<6 { _ = try writer.append([fixture.draft(index == 3 ? 33 : index)]) }
    try writer.close()
    let content = try fixture.content(first)
    let other = Array(
      try Data(contentsOf: URL(fileURLWithPath: forged.path + "/log/" + first)))
    let places = try memberPlaces(content)
    let otherPlaces = try memberPlaces(other)
    var mixed = Array(content[..<places[4].lowerBound])
    mixed += other[otherPlaces[4]]
    mixed += content[places[4].upperBound...]
    try fixture.write(mixed, to: first)
    let found = try fixture.audit(rootsAt: [6]).findings
    #expect(found.map(\.damage.verdict).contains(.tampered))
    expectEqual(found.first?.damage.position, 3)
    // A replaced log agrees with itself: only a signature reveals it.
    for name in fixture.tailNames { try fixture.remove(name) }
    for name in try FileManager.default.contentsOfDirectory(atPath: forged.path + "/log") {
      let file = try Data(contentsOf: URL(fileURLWithPath: forged.path + "/log/" + name))
      try fixture.write(Array(file), to: name)
    }
    let replaced = try fixture.audit(rootsAt: [6])
    #expect(replaced.isWhole && replaced.roots[6] != report.roots[6])
  }

  @Test("A kept checkpoint beyond the end, of another history, or altered is a finding")
  func checkpoints() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(10, options: WriterOptions())
    _ = try KeyStore(fixture.directory).create(isFurther: false)
    let directory = try LedgerDirectory.open(path: fixture.path)
    let store = CheckpointStore(directory)
    for size in [0, 4, 10] { _ = try store.sign(try LogReader(directory), size: size) }
    func findings() throws -> [AuditFinding] {
      let sizes = try store.sizes()
      var report = try LogAudit(directory, rootsAt: sizes).run()
      #expect(report.isWhole)
      report.check(store, sizes: sizes)
      return report.findings
    }
    try expectEqual(findings(), [])
    let name = try #require(fixture.tailNames.first)
    let frames = FrameBytes.split(try fixture.content(name))
    try fixture.write(Array(frames[..<7].map(\.bytes).joined()), to: name)
    let cut = try findings()
    expectEqual(cut.map(\.damage.verdict), [.missing])
    #expect(cut[0].damage.position == 7 && cut[0].endPosition == 10)
    try fixture.write(Array(frames.map(\.bytes).joined()), to: name)
    let path = fixture.path + "/" + CheckpointStore.fileName(size: 4)
    let note = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    for place in stride(from: 0, to: note.count, by: 11) {
      var changed = note
      changed[place] ^= 1
      try Data(changed).write(to: URL(fileURLWithPath: path))
      try expectEqual(findings().count, 1, "byte \(place)")
    }
  }
}

/// CRC-32 as in gzip, bit by bit.
private func crc32(_ bytes: [UInt8]) -> UInt32 {
  var remainder: UInt32 = 0xFFFF_FFFF
  for byte in bytes {
    remainder ^= UInt32(byte)
    for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 1 ? 0xEDB8_8320 : 0) }
  }
  return ~remainder
}

@Suite("Audit: every flipped bit", .bounded)
struct AuditBitFlipTests {
  @Test("Every flipped bit of a closed segment is noticed")
  func sealed() throws {
    let storage = FaultyStorage()
    let directory = try LedgerDirectory.create(
      path: "/ledger", origin: "receipts.example/flip", storage: storage)
    let writer = try LedgerWriter.open(
      directory, options: LedgerFixture.smallOptions(block: 1, segment: 1))
    for index in 0..<5 {
      _ = try writer.append([
        EventDraft(type: "test.happened", version: 1, data: Array("{\"n\":\(index)}".utf8))
      ])
    }
    try writer.close()
    let segments = storage.paths.filter { $0.hasSuffix(".jsonl.gz") }
    // All but the newest are closed, and each holds one block.
    try #require(segments.count >= 4)
    #expect(try LogAudit(directory, workers: 0).run().isWhole)
    var flipCount = 0
    for path in segments.dropLast().prefix(3) {
      let content = storage.content(path)
      for place in content.indices {
        for bit in 0..<8 {
          var changed = content
          changed[place] ^= 1 << bit
          storage.setContent(path, changed)
          let report = try LogAudit(directory, workers: 0).run()
          flipCount += 1
          #expect(!report.isWhole, "\(path), byte \(place), bit \(bit)")
        }
      }
      storage.setContent(path, content)
    }
    #expect(flipCount > 10_000)
    #expect(try LogAudit(directory, workers: 0).run().isWhole)
  }

  @Test("A closed segment cut at any length is noticed, and the others are read")
  func cut() throws {
    let storage = FaultyStorage()
    let directory = try LedgerDirectory.create(
      path: "/ledger", origin: "receipts.example/flip", storage: storage)
    let writer = try LedgerWriter.open(
      directory, options: LedgerFixture.smallOptions(block: 1, segment: 1))
    for index in 0..<5 {
      _ = try writer.append([
        EventDraft(type: "test.happened", version: 1, data: Array("{\"n\":\(index)}".utf8))
      ])
    }
    try writer.close()
    let segments = storage.paths.filter { $0.hasSuffix(".jsonl.gz") }
    let content = storage.content(segments[1])
    for length in content.indices {
      storage.setContent(segments[1], Array(content[..<length]))
      let report = try LogAudit(directory, workers: 0).run()
      #expect(!report.isWhole && report.size == 5, "length \(length)")
      #expect(report.eventCount >= 4)
    }
  }

  @Test("An unreadable file is reported, and the others are read")
  func unreadable() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(60)
    let name = fixture.segmentNames[1]
    let count = try fixture.audit().eventCount
    try fixture.remove(name)
    // A directory can be opened, but not read.
    try FileManager.default.createDirectory(
      atPath: fixture.logPath + "/" + name, withIntermediateDirectories: false)
    let report = try fixture.audit()
    expectEqual(report.findings.first?.damage.verdict, .unreadable)
    expectEqual(report.findings.first?.damage.file, "log/" + name)
    #expect(report.size == 60 && report.eventCount < count && report.eventCount > 0)
  }
}
