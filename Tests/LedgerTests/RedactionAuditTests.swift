// An audit accepts missing data only where an erasure lists it.
import Base
import Ledger
import TestSupport
import Testing

@Suite("Auditing redacted lines")
struct RedactionAuditTests {
  private static let count = 12
  private static let cause =
    "the event's data is missing, and no data.redacted event lists it so"

  private struct Prepared {
    let storage: FaultyStorage
    let rig: RedactionRig
    let writer: LedgerWriter
  }

  private func prepared() throws -> Prepared {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let rig = RedactionRig(directory)
    try rig.fill(Self.count)
    return Prepared(
      storage: storage, rig: rig,
      writer: try LedgerWriter.open(directory, options: rig.options))
  }

  /// Puts lines into the log without a listing, as a program with something to hide would.
  private func forge(_ lines: [[UInt8]], _ prepared: Prepared) throws {
    _ = try prepared.rig.directory.allowingRedactions()
    try prepared.writer.sealAll()
    try prepared.rig.writeFile(lines)
    let file = try #require(try RedactedLines.ifPresent(prepared.rig.directory))
    try prepared.writer.rewriteSegments(file)
    try RedactionFile.remove(from: prepared.rig.directory)
  }

  private func changed(_ line: [UInt8], _ old: String, _ new: String) -> [UInt8] {
    let text = String(decoding: line, as: UTF8.self)
    #expect(text.contains(old))
    return Array(text.replacing(old, with: new).utf8)
  }

  private func expectTampered(_ prepared: Prepared, at positions: [Position]) throws {
    for workers in [0, 2] {
      let report = try LogAudit(prepared.rig.directory, workers: workers).run()
      expectEqual(report.findings.map(\.damage.position), positions)
      #expect(
        report.findings.allSatisfy { $0.damage.verdict == .tampered && $0.cause == Self.cause })
      #expect(report.findings.allSatisfy { $0.damage.block != nil })
      expectEqual(report.eventCount, report.size)
    }
  }

  @Test("Redactions that an erasure lists are right, and are counted")
  func listed() throws {
    let log = try prepared()
    let erasure = try log.rig.erase([1, 2, 8], with: log.writer)
    try log.writer.close()
    for workers in [0, 2] {
      let report = try LogAudit(log.rig.directory, workers: workers).run()
      #expect(report.isWhole && report.isTreeCertain && report.notes == [])
      #expect(report.redactedCount == 3 && report.unredactedCount == 0)
      let found = try #require(report.erasures.first)
      #expect(report.erasures.count == 1 && report.furtherErasureCount == 0)
      #expect(found.position == erasure && found.scope == .user && found.reason == "request")
      #expect(found.listedCount == 3 && found.redactedCount == 3)
      #expect(found.supersededCount == 0 && found.unredactedCount == 0)
    }
    // Reading past damage delivers redacted lines as they are.
    var redacted: [Position] = []
    let salvage = try LogSalvage(log.rig.directory).run {
      if $0.isRedacted { redacted.append($0.position) }
    }
    #expect(redacted == [1, 2, 8] && salvage.leftOut == [])
  }

  @Test("A line that merely lacks its data was tampered with")
  func unlisted() throws {
    let log = try prepared()
    let opening = try log.rig.open(log.writer)
    try forge(try log.rig.redacted([1, 9], by: opening), log)
    try log.writer.close()
    try expectTampered(log, at: [1, 9])
  }

  @Test(
    "A line with other data, another salt or another erasure than listed was tampered with",
    arguments: 0..<3)
  func otherContent(_ change: Int) throws {
    let log = try prepared()
    let erasure = try log.rig.erase([1, 2], with: log.writer)
    let line = try LogReader(log.rig.directory).event(at: 1)
    let forged: [UInt8]
    switch change {
    case 0: forged = changed(line, "\"kept\":{\"n\":1}", "\"kept\":{\"n\":2}")
    case 1:
      let salt = try line.withUnsafeBytes { try #require(EventLine($0)).saltText.map { $0 } }
      let other =
        [salt[0] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")] + salt[1...]
      forged = changed(
        line, String(decoding: salt, as: UTF8.self), String(decoding: other, as: UTF8.self))
    default: forged = changed(line, "\"by\":\(erasure)", "\"by\":\(erasure + 1)")
    }
    try forge([forged], log)
    try log.writer.close()
    try expectTampered(log, at: [1])
  }

  @Test("A listing counts only for the erasure that the line names, and only if that was opened")
  func notOpened() throws {
    let log = try prepared()
    let first = try log.rig.open(log.writer)
    let lines = try log.rig.redacted([3], by: first + 1)
    let digest = try lines[0].withUnsafeBytes {
      try #require(EventLine($0)).contentDigest(SHA256())
    }
    func listing(_ erasure: Position) -> EventDraft {
      RedactionRig.draft(
        .listing(
          .init(
            erasure: erasure, part: 1, partCount: 1, reason: "request",
            lines: [.init(position: 3, digest: digest)])))
    }
    // The position that the line names holds a listing, not an opening.
    _ = try log.writer.append([listing(first)])
    _ = try log.writer.append([listing(first + 1)])
    try forge(lines, log)
    try log.writer.close()
    try expectTampered(log, at: [3])
  }

  @Test("A line that is redacted twice counts for the later erasure, and only with its listing")
  func twice() throws {
    let log = try prepared()
    let first = try log.rig.erase([1, 2], with: log.writer)
    let second = try log.rig.erase([2, 5], with: log.writer)
    let report = try log.rig.audit()
    #expect(report.isWhole && report.redactedCount == 3)
    expectEqual(report.erasures.map(\.position), [first, second])
    expectEqual(report.erasures.map(\.redactedCount), [1, 2])
    expectEqual(report.erasures.map(\.supersededCount), [1, 0])
    expectEqual(report.erasures.map(\.listedCount), [2, 2])
    let third = try log.rig.open(log.writer)
    try forge(try log.rig.redacted([2], by: third), log)
    try log.writer.close()
    try expectTampered(log, at: [2])
  }

  @Test(
    "A listed line that still has its data is counted; in an erasure in progress it is not")
  func unredacted() throws {
    let log = try prepared()
    let backup = log.storage.paths.filter { $0.hasSuffix(".jsonl.gz") }
    let erasure = try log.rig.open(log.writer)
    try log.writer.sealAll()
    let contents = Dictionary(
      uniqueKeysWithValues: log.storage.paths.filter { $0.hasSuffix(".jsonl.gz") }
        .map { ($0, log.storage.content($0)) })
    try log.rig.writeFile(try log.rig.redacted([1, 2], by: erasure))
    let lines = try #require(try RedactedLines.ifPresent(log.rig.directory))
    _ = try log.writer.append([try log.rig.list(lines, by: erasure)])
    let progress = try log.rig.audit()
    #expect(progress.isWhole && progress.unredactedCount == 0)
    expectEqual(
      progress.notes,
      [
        "erasures/lines holds 2 redacted lines of an erasure in progress: they are shown instead of "
          + "those in the log"
      ])
    try log.writer.rewriteSegments(lines)
    try RedactionFile.remove(from: log.rig.directory)
    try log.writer.close()
    try expectEqual(log.rig.audit().redactedCount, 2)
    // The first segment is restored from a backup.
    let path = try #require(backup.first)
    log.storage.setContent(path, contents[path] ?? [])
    let report = try log.rig.audit()
    #expect(report.isWhole && report.unredactedCount == 2 && report.firstUnredacted == 1)
    expectEqual(report.erasures.first?.unredactedCount, 2)
    expectEqual(
      report.notes,
      [
        "2 events still hold data that the erasure at \(erasure) took out; run "
          + "'ledgerctl redact --again'"
      ])
  }

  @Test("Damage that may hide the listing is not called tampering")
  func hiddenListing() throws {
    let log = try prepared()
    let erasure = try log.rig.erase([1, 2], with: log.writer)
    try log.writer.sealAll()
    try log.writer.close()
    let path = try #require(log.storage.paths.last { $0.hasSuffix(".jsonl.gz") })
    var content = log.storage.content(path)
    let block = try memberPlaces(content).last { content[$0.lowerBound + 17] == 2 }
    content[try #require(block).upperBound - 20] ^= 1
    log.storage.setContent(path, content)
    let report = try log.rig.audit()
    #expect(report.findings.count >= 2 && erasure > 2)
    #expect(report.findings.allSatisfy { $0.damage.verdict != .tampered })
  }
}
