// Ledgers with all that a backup holds, backups of them, and what a restored one must be.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

/// A folder of backups, removed with the value.
struct BackupRig {
  static let app = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
  static let request = "00000000-0000-4000-8000-000000000001"

  let temporary: TemporaryDirectory
  let backups: String
  /// The second after which backups are named; each is made a minute after the one before.
  private let clock = Clock()

  init() throws {
    temporary = try TemporaryDirectory()
    backups = temporary.path("backups")
    try FileManager.default.createDirectory(
      atPath: backups, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  private final class Clock {
    var ms = Int64(1_800_000_000_000)
    func next() -> Int64 {
      ms += 60_000
      return ms
    }
  }

  func backup(
    _ directory: LedgerDirectory, _ change: (inout LedgerBackup) -> Void = { _ in }
  ) throws -> LedgerBackup.Report {
    var backup = LedgerBackup()
    backup.nowMs = { [clock] in clock.next() }
    change(&backup)
    return try backup.run(directory, into: backups)
  }

  func path(_ report: LedgerBackup.Report) -> String { "\(backups)/\(report.name)" }

  /// The names in the folder but that of the lock.
  var names: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: backups).filter { $0 != ".lock" }.sorted()
    }
  }

  /// Restores a backup, and returns the path of the ledger.
  @discardableResult
  func restore(_ name: String, _ change: (inout BackupRestore) -> Void = { _ in }) throws -> String
  {
    let path = temporary.path("restored-\(UUID().uuidString)")
    var restore = BackupRestore()
    change(&restore)
    _ = try restore.run(try restore.backup(at: "\(backups)/\(name)"), to: path)
    return path
  }

  /// The objects that `--verify` names.
  func faults(_ name: String) throws -> [String] {
    do {
      return try BackupCheck().faults(of: BackupFolder(path: backups).backup(name)).map(\.object)
    } catch CopyError.faults(let faults) { return faults.map(\.object) }
  }

  // MARK: Ledgers

  /// A ledger with closed segments, blocks, a tail, a key and two checkpoints, a configuration, and open work.
  static func ledger(eventCount: Int = 40) throws -> LedgerFixture {
    let ledger = try filledLedger(eventCount: eventCount)
    let directory = ledger.directory
    _ = try KeyStore(directory).create(isFurther: false)
    let store = CheckpointStore(try directory.reread())
    for size in [eventCount / 2, eventCount] {
      _ = try store.sign(try LogReader(directory), size: size)
    }
    func write(_ folder: String, _ name: String, _ text: String) throws {
      try directory.root.madeFolder(folder).replaceFile(name, with: Array(text.utf8))
    }
    try directory.root.replaceFile("config.json", with: Array("{}".utf8))
    try write("webhooks", "\(app).json", #"{"next":"3.0","waiting":[]}"#)
    try write("erasures", "\(request).json", #"{"id":"\#(request)","state":"done"}"#)
    // None of these belongs to a backup.
    try write("webhooks", "\(app).json.new", "half of it")
    try write("erasures", "lines.new", "half of it")
    try write("keys", "lock", "")
    try write("log", "left.new", "half of it")
    try write("projections", "1.sqlite", "rows")
    return ledger
  }

  /// The files of a ledger that a backup holds, by path.
  static func files(of path: String) throws -> [String: [UInt8]] {
    let folders = ["log", "checkpoints", "keys", "webhooks", "erasures"]
    var found = try ReplicationTests.files(of: path, in: folders)
    found["config.json"] = try SmallFile.read("\(path)/config.json", byteCountMax: 1 << 20)
    return found.filter { !$0.key.hasSuffix(".new") && !$0.key.hasSuffix("lock") }
  }
}
