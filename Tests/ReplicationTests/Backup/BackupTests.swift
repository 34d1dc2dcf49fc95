// Backups of a ledger at rest: what they hold, share and refuse.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct BackupTests {
  private func inode(_ path: String) throws -> UInt64 {
    try #require(
      try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64)
  }

  private func mode(_ path: String) throws -> Int {
    try #require(
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
  }

  private func segments(_ report: LedgerBackup.Report) -> [String] {
    report.manifest.files.map(\.path).filter { $0.hasSuffix(".jsonl.gz") }
  }

  @Test(arguments: [0, 1, 3, 40, 43])
  func aRestoredLedgerIsTheOriginal(eventCount: Int) throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: eventCount)
    let report = try rig.backup(ledger.directory)
    expectEqual(report.manifest.size, eventCount)
    expectEqual(try rig.names, [report.name])
    expectEqual(try rig.faults(report.name), [])
    let path = try rig.restore(report.name)
    let restored = try LedgerDirectory.open(path: path)
    #expect(try isWhole(restored))
    expectEqual(try root(of: restored), try root(of: ledger.directory))
    // The writer closes its newest tail as frames of another file at most.
    let (original, copy) = (try BackupRig.files(of: ledger.path), try BackupRig.files(of: path))
    expectEqual(
      copy.filter { !$0.key.hasPrefix("log/tail") },
      original.filter { !$0.key.hasPrefix("log/tail") })
    // It can be written to at once, and nothing but the ledger is left.
    let writer = try LedgerWriter.open(restored)
    _ = try writer.append([
      EventDraft(type: "test.event", version: 1, data: Array("{}".utf8))
    ])
    try writer.close()
    expectEqual(try size(of: restored), eventCount + 1)
    #expect(!FileManager.default.fileExists(atPath: path + "/backup.json"))
    for name in ["", "/log", "/keys"] { expectEqual(try mode(path + name), 0o700) }
    for name in ["config.json", "ledger.json", "heads"] {
      expectEqual(try mode("\(path)/\(name)"), 0o600)
    }
  }

  @Test func closedSegmentsAreSharedBetweenBackupsAndNeverWithTheLedger() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: 40)
    let first = try rig.backup(ledger.directory)
    try ledger.append(events(40..<60))
    let second = try rig.backup(ledger.directory)
    #expect(segments(first).count > 2 && segments(second).count > segments(first).count)
    let closed = Set(segments(first).dropLast())
    for path in segments(second) {
      let own = try inode("\(rig.path(second))/\(path)")
      let isShared = closed.contains(path)
      if segments(first).contains(path) {
        expectEqual(try inode("\(rig.path(first))/\(path)") == own, isShared, "\(path)")
      }
      #expect(try inode("\(ledger.path)/\(path)") != own)
    }
    expectEqual(second.sharedWith, first.name)
    #expect(second.sharedByteCount > 0)
    let entries = try BackupListing(BackupFolder(path: rig.backups)).entries
    expectEqual(entries.map(\.name), [first.name, second.name])
    #expect(entries.allSatisfy { $0.fault == nil })
    expectEqual(
      entries[1].ownByteCount, second.manifest.byteCount - second.sharedByteCount)
    // Each stands for itself.
    try FileManager.default.removeItem(atPath: rig.path(first))
    expectEqual(try rig.faults(second.name), [])
    try rig.restore(second.name)
  }

  @Test(arguments: ["altered", "cut", "writable", "gone"])
  func aSegmentThatIsNoLongerTheSameIsCopied(_ change: String) throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let first = try rig.backup(ledger.directory)
    let path = "\(rig.path(first))/\(segments(first)[0])"
    var bytes = try SmallFile.read(path, byteCountMax: 1 << 20)
    chmod(path, 0o600)
    switch change {
    case "altered": bytes[bytes.count / 2] ^= 1
    case "cut": bytes.removeLast()
    default: break
    }
    if change == "gone" { unlink(path) } else { try Data(bytes).write(to: URL(filePath: path)) }
    if change != "writable" { chmod(path, 0o400) }
    let second = try rig.backup(ledger.directory)
    expectEqual(try rig.faults(second.name), [])
    try rig.restore(second.name)
    if change != "gone" {
      #expect(try inode(path) != inode("\(rig.path(second))/\(segments(second)[0])"))
    }
  }

  @Test func anErasureMakesTheChangedSegmentsNewFiles() throws {
    let rig = try BackupRig()
    let ledger = try ReplicationRig(block: 1_500, segment: 5_000)
    try ledger.append(60)
    try ledger.seal()
    let first = try rig.backup(ledger.directory)
    try ledger.erase([0])
    let second = try rig.backup(ledger.directory)
    let closed = segments(first).dropLast()
    let kept = try closed.filter {
      try inode("\(rig.path(first))/\($0)") == inode("\(rig.path(second))/\($0)")
    }
    expectEqual(kept, Array(closed.dropFirst()))
    let path = try rig.restore(second.name)
    let line = try LogReader(LedgerDirectory.open(path: path)).event(at: 0)
    #expect(!String(decoding: line, as: UTF8.self).contains("\"who\""))
    // The older one holds what was erased, and its log does not know of the erasure.
    let old = try LogReader(LedgerDirectory.open(path: try rig.restore(first.name))).event(at: 0)
    #expect(String(decoding: old, as: UTF8.self).contains("\"who\""))
  }

  @Test func twoOfOneSecondHaveTwoNames() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: 3)
    let names = try (0..<3).map { _ in
      try rig.backup(ledger.directory) { $0.nowMs = { 1_800_000_000_999 } }.name
    }
    expectEqual(names, ["2027-01-15T080000Z", "2027-01-15T080001Z", "2027-01-15T080002Z"])
    #expect(names.allSatisfy(BackupName.isOne))
  }

  @Test func aRestoredLedgerOnStandbyStaysOnStandby() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: 3)
    try Standby(reason: .fenced, step: 3, epoch: 2).write(to: ledger.directory)
    let path = try rig.restore(try rig.backup(ledger.directory).name)
    expectEqual(try Standby(of: LedgerDirectory.open(path: path))?.reason, .fenced)
  }

  // MARK: Refusals

  @Test func aSecondBackupAtTheSameTimeIsRefused() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: 3)
    _ = try rig.backup(ledger.directory) {
      $0.afterPart = { part in
        guard part == .small else { return }
        let error = #expect(throws: LedgerError.self) { try rig.backup(ledger.directory) }
        expectEqual(error?.kind, .locked)
      }
    }
    expectEqual(try rig.names.count, 1)
  }

  @Test func anotherLedgersBackupsAreLeftAlone() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: 3)
    _ = try rig.backup(ledger.directory)
    let other = try LedgerFixture(id: 2)
    #expect(throws: CopyError.self) { try rig.backup(other.directory) }
    expectEqual(try rig.names.count, 1)
  }

  @Test func aDamagedLedgerIsNotBackedUp() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let path = "\(ledger.path)/log/\(Format.segmentName(0))"
    var bytes = try SmallFile.read(path, byteCountMax: 1 << 20)
    // In a block, which opening the log does not read.
    bytes[bytes.count / 2] ^= 1
    chmod(path, 0o600)
    try Data(bytes).write(to: URL(filePath: path))
    let error = #expect(throws: (any Error).self) { try rig.backup(ledger.directory) }
    expectEqual(error.map { ($0 as? any ReportableError)?.exitCode }, .corrupted)
    expectEqual(try rig.names, [])
  }

  @Test func linksAndFoldersOfOthersAreRefused() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: 3)
    let elsewhere = rig.temporary.path("elsewhere")
    try FileManager.default.createDirectory(
      atPath: elsewhere, withIntermediateDirectories: false)
    try Data("precious".utf8).write(to: URL(filePath: elsewhere + "/file"))
    // An unfinished backup that is a link: what it leads to is not removed.
    symlink(elsewhere, rig.backups + "/.2026-01-01T000000Z.partial")
    #expect(throws: LedgerError.self) { try rig.backup(ledger.directory) }
    expectEqual(try FileManager.default.contentsOfDirectory(atPath: elsewhere), ["file"])
    unlink(rig.backups + "/.2026-01-01T000000Z.partial")
    // So is one in it: only the link goes.
    let unfinished = rig.backups + "/.2026-01-01T000000Z.partial"
    try FileManager.default.createDirectory(
      atPath: unfinished, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    symlink(elsewhere, unfinished + "/log")
    _ = try rig.backup(ledger.directory)
    expectEqual(try FileManager.default.contentsOfDirectory(atPath: elsewhere), ["file"])
    symlink(elsewhere, rig.backups + "/2026-01-01T000000Z")
    let listing = try BackupListing(BackupFolder(path: rig.backups))
    expectEqual(listing.entries.map { $0.fault != nil }, [true, false])
    // The lock is a link, the folder is writable by all.
    unlink(rig.backups + "/.lock")
    symlink(elsewhere + "/file", rig.backups + "/.lock")
    #expect(throws: LedgerError.self) { try rig.backup(ledger.directory) }
    unlink(rig.backups + "/.lock")
    chmod(rig.backups, 0o777)
    #expect(throws: LedgerError.self) { try rig.backup(ledger.directory) }
  }
}
