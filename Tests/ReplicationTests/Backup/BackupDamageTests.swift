// Backups that someone has damaged: `--verify` and `restore` name the file, and nothing is restored.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct BackupDamageTests {
  /// A way to damage a file; the name of the file that must be named.
  enum Damage: String, CaseIterable {
    case removed, cut, extended, flipped, link, folder
  }

  private func apply(_ damage: Damage, _ path: String, _ random: inout SeededRandom) throws {
    var bytes = try SmallFile.read(path, byteCountMax: 1 << 20)
    chmod(path, 0o600)
    unlink(path)
    switch damage {
    case .removed: return
    case .cut: bytes.removeLast()
    case .extended: bytes.append(0)
    case .flipped:
      bytes[Int.random(in: bytes.indices, using: &random)] ^=
        1 << UInt8.random(in: 0..<8, using: &random)
    case .link:
      try Data(bytes).write(to: URL(filePath: path + ".else"))
      symlink(path + ".else", path)
      return
    case .folder:
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      return
    }
    try Data(bytes).write(to: URL(filePath: path))
    chmod(path, 0o600)
  }

  @Test(arguments: Damage.allCases)
  func eachFileIsMissedAndNamed(_ damage: Damage) throws {
    let rig = try BackupRig()
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    let ledger = try BackupRig.ledger()
    let report = try rig.backup(ledger.directory)
    let whole = rig.temporary.path("whole")
    try FileManager.default.moveItem(atPath: rig.path(report), toPath: whole)
    for name in report.manifest.files.map(\.path) + ["backup.json"] {
      let object = "\(report.name)/\(name)"
      try FileManager.default.copyItem(atPath: whole, toPath: rig.path(report))
      try apply(damage, "\(rig.path(report))/\(name)", &random)
      #expect(try rig.faults(report.name).contains(object), "\(damage) of \(name), seed \(seed)")
      let path = rig.temporary.path("none")
      let error = #expect(throws: CopyError.self, "\(damage) of \(name), seed \(seed)") {
        let restore = BackupRestore()
        _ = try restore.run(try restore.backup(at: rig.backups), to: path)
      }
      expectEqual(error?.exitCode, .corrupted)
      #expect(error?.lines(for: "restore").contains { $0.contains(object) } == true)
      #expect(!FileManager.default.fileExists(atPath: path + "/ledger.json"))
      try FileManager.default.removeItem(atPath: rig.path(report))
      try? FileManager.default.removeItem(atPath: path)
    }
  }

  @Test func allDamagedFilesAreNamedAtOnce() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let report = try rig.backup(ledger.directory)
    let names = report.manifest.files.map(\.path)
    for name in names { unlink("\(rig.path(report))/\(name)") }
    expectEqual(try rig.faults(report.name), names.map { "\(report.name)/\($0)" })
    let error = #expect(throws: CopyError.self) { try rig.restore(report.name) }
    expectEqual(error?.lines(for: "restore").count, names.count)
  }

  @Test(arguments: ["log/tail-00000000000000000040.log", "keys/added.key", "added"])
  func aFileThatWasAddedIsNamed(_ name: String) throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let report = try rig.backup(ledger.directory)
    try Data("x".utf8).write(to: URL(filePath: "\(rig.path(report))/\(name)"))
    expectEqual(try rig.faults(report.name), ["\(report.name)/\(name)"])
    #expect(throws: CopyError.self) { try rig.restore(report.name) }
  }

  /// A forger can write a manifest for what they made of the files: the log proves itself.
  @Test func aManifestOfFilesThatDoNotBelongTogetherIsRefused() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let first = try rig.backup(ledger.directory)
    try ledger.append(events(40..<60))
    let second = try rig.backup(ledger.directory)
    // The old manifest and all its files, but for the newer log's first closed segments: the same events.
    for name in first.manifest.files.map(\.path) + ["backup.json"] {
      let path = "\(rig.path(second))/\(name)"
      unlink(path)
      try FileManager.default.copyItem(atPath: "\(rig.path(first))/\(name)", toPath: path)
    }
    #expect(try !rig.faults(second.name).isEmpty)
    #expect(throws: CopyError.self) { try rig.restore(second.name) }
    expectEqual(try rig.faults(first.name), [])
  }

  /// The manifest with a change that its own SHA-256 covers.
  private func forge(_ path: String, _ text: String, _ replacement: String) throws {
    var manifest = String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self)
    let end = try #require(manifest.range(of: #","sha256":""#, options: .backwards))
    manifest = String(manifest[..<end.lowerBound])
    #expect(manifest.contains(text))
    manifest = manifest.replacing(text, with: replacement, maxReplacements: 1)
    let digest = Array(manifest.utf8).withUnsafeBytes { SHA256.hash($0) }
    try Data((manifest + #","sha256":"\#(digest.hex)"}"# + "\n").utf8)
      .write(to: URL(filePath: path))
  }

  @Test(arguments: [
    (#""heads""#, #""../heads""#), (#""heads""#, #""/tmp/heads""#), (#""heads""#, #""..""#),
    (#""heads""#, #""ledger.json""#), (#""heads""#, #""log/../heads""#),
    (#""heads""#, #""log/""#), (#""heads""#, #""identity.json""#),
    (#""version":1"#, #""version":2"#), (#""events":40"#, #""events":-1"#),
    (#""bytes":"#, #""bytes":9223372036854775807,"x":"#),
    (#""bytes":2,"#, #""bytes":9223372036854775807,"#),
    (#""made_at":"2"#, #""made_at":"x"#), (#"{"version""#, #"{ "version""#),
  ])
  func aForgedManifestLeadsNowhere(_ text: String, _ replacement: String) throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let report = try rig.backup(ledger.directory)
    try forge("\(rig.path(report))/backup.json", text, replacement)
    #expect(try !rig.faults(report.name).isEmpty)
    #expect(throws: CopyError.self) { try rig.restore(report.name) }
    #expect(!FileManager.default.fileExists(atPath: rig.temporary.path("heads")))
  }

  @Test(arguments: [true, false])
  func aForgedHeadIsNotThatOfTheLog(isRoot: Bool) throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let report = try rig.backup(ledger.directory)
    let root = Base64.text(report.manifest.root.bytes)
    let other = (root.first == "A" ? "B" : "A") + root.dropFirst()
    let path = "\(rig.path(report))/backup.json"
    if isRoot {
      try forge(path, root, other)
    } else {
      try forge(path, #""events":40"#, #""events":39"#)
    }
    #expect(try rig.faults(report.name).contains { $0.hasSuffix("/log") })
    #expect(throws: CopyError.self) { try rig.restore(report.name) }
  }

  @Test func aHeadThatWasKeptElsewhereMustBeOfTheseEvents() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let report = try rig.backup(ledger.directory)
    try ledger.append(events(40..<50))
    let directory = try ledger.directory.reread()
    let late = try CheckpointStore(directory).sign(try LogReader(directory))
    let early = try #require(try CheckpointStore(directory).checkpoint(size: 20))
    try rig.restore(report.name) {
      $0.givenHeads = { _ in [.init(name: "head", checkpoint: early)] }
    }
    let error = #expect(throws: CopyError.self) {
      try rig.restore(report.name) {
        $0.givenHeads = { _ in [.init(name: "head", checkpoint: late)] }
      }
    }
    #expect(error?.lines(for: "restore").first?.contains("head: missing") == true)
  }

  @Test func anInterruptedRestoreIsContinuedAlsoWithAnotherBackup() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger()
    let first = try rig.backup(ledger.directory)
    try ledger.append(events(40..<60))
    let second = try rig.backup(ledger.directory)
    struct Stop: Error {}
    let path = rig.temporary.path("ledger")
    for (name, limit) in [(second.name, 3), (first.name, 9), (second.name, Int.max)] {
      var restore = BackupRestore()
      var calls = 0
      restore.checkCancelled = {
        calls += 1
        if calls > limit { throw Stop() }
      }
      do {
        _ = try restore.run(try restore.backup(at: "\(rig.backups)/\(name)"), to: path)
        expectEqual(limit, Int.max)
      } catch is Stop {}
    }
    let restored = try LedgerDirectory.open(path: path)
    #expect(try isWhole(restored))
    expectEqual(try root(of: restored), try root(of: ledger.directory))
    // A ledger that is there, and a folder with anything else, are left alone.
    for other in [path, rig.temporary.path("")] {
      #expect(throws: LedgerError.self) {
        let restore = BackupRestore()
        _ = try restore.run(try restore.backup(at: rig.backups), to: other)
      }
    }
  }
}
