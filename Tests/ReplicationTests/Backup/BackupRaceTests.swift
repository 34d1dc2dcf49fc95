// Backups of a ledger that changes meanwhile, and backups that crash at every call.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct BackupRaceTests {
  private func line(_ path: String, _ position: Int) throws -> String {
    let reader = try LogReader(LedgerDirectory.open(path: path))
    return String(decoding: try reader.event(at: position), as: UTF8.self)
  }

  @Test func whatIsAppendedAndSealedMeanwhileDoesNoHarm() throws {
    let rig = try BackupRig()
    let ledger = try ReplicationRig(block: 1_500, segment: 5_000)
    try ledger.append(60)
    let report = try rig.backup(ledger.directory) { backup in
      backup.afterPart = { part in
        // Segments are closed, tails vanish.
        try ledger.append(part == .segments ? 60 : 20)
        try ledger.seal()
      }
    }
    #expect(report.manifest.size >= 60)
    let path = try rig.restore(report.name)
    #expect(try isWhole(LedgerDirectory.open(path: path)))
    expectEqual(
      try root(of: LedgerDirectory.open(path: path)),
      try root(of: ledger.directory, at: report.manifest.size))
  }

  @Test func threadsThatAppendAllTheTimeDoNoHarm() throws {
    let rig = try BackupRig()
    let ledger = try ReplicationRig(block: 1_500, segment: 5_000)
    try ledger.append(200)
    let writer = try ledger.openWriter()
    let isDone = Monitor(false)
    let acknowledged = Monitor(0)
    let threads = try (0..<2).map { _ in
      try WorkerThread.start {
        while !isDone.withLock({ $0 }) {
          guard let result = try? writer.append([ReplicationRig.draft(7)]) else { return }
          acknowledged.withLock { $0 = max($0, result.firstPosition + 1) }
        }
      }
    }
    for _ in 0..<8 {
      let known = acknowledged.withLock { $0 }
      let report = try rig.backup(ledger.directory)
      #expect(report.manifest.size >= max(known, 200))
      let path = try rig.restore(report.name)
      expectEqual(
        try root(of: LedgerDirectory.open(path: path)),
        try root(of: ledger.directory, at: report.manifest.size))
    }
    isDone.withLock { $0 = true }
    for thread in threads { thread.join() }
  }

  /// Segments that were copied before the erasure are copied again; once the tails were, the log is read again too.
  @Test(arguments: [(LedgerBackup.Part.small, 1), (.segments, 1), (.tails, 2)])
  func anErasureMeanwhileIsInTheBackup(_ moment: LedgerBackup.Part, times: Int) throws {
    let rig = try BackupRig()
    let ledger = try ReplicationRig(block: 1_500, segment: 5_000)
    try ledger.append(60)
    // The first one also changes ledger.json.
    try ledger.erase([5])
    var attempts = 0
    let report = try rig.backup(ledger.directory) { backup in
      backup.afterPart = { part in
        guard part == moment else { return }
        attempts += 1
        if attempts == 1 { try ledger.erase([0, 30, 59]) }
      }
    }
    expectEqual(attempts, times)
    let path = try rig.restore(report.name)
    for position in [0, 30, 59] { #expect(try !line(path, position).contains("\"who\"")) }
    #expect(try isWhole(LedgerDirectory.open(path: path)))
  }

  /// The backup begins while redacted lines are not in their segments yet, and the pass goes on.
  @Test(arguments: [nil, LedgerBackup.Part.small, .segments, .tails])
  func aBackupInThePassHoldsItsLines(_ end: LedgerBackup.Part?) throws {
    let rig = try BackupRig()
    let ledger = try ReplicationRig(block: 1_500, segment: 5_000)
    try ledger.append(60)
    try ledger.seal()
    // Committed, with the lines listed, and stopped there.
    struct Stop: Error {}
    _ = try? ledger.erase([0, 30, 59], afterListing: { throw Stop() })
    var attempts = 0
    var isFinished = false
    let report = try rig.backup(ledger.directory) { backup in
      backup.afterPart = { part in
        if part == .tails { attempts += 1 }
        guard part == end, !isFinished else { return }
        isFinished = true
        try ledger.finishErasure()
      }
    }
    expectEqual(attempts, end == nil ? 1 : 2)
    let path = try rig.restore(report.name)
    let restored = try LedgerDirectory.open(path: path)
    #expect(try isWhole(restored))
    expectEqual(try RedactionFile.exists(in: restored), end == nil)
    for position in [0, 30, 59] { #expect(try !line(path, position).contains("\"who\"")) }
  }

  @Test func aNewKeyMeanwhileMakesItBeginAgain() throws {
    let rig = try BackupRig()
    let ledger = try BackupRig.ledger(eventCount: 3)
    var isMade = false
    let report = try rig.backup(ledger.directory) { backup in
      backup.afterPart = { part in
        guard part == .segments, !isMade else { return }
        isMade = true
        _ = try KeyStore(ledger.directory).create(isFurther: true)
      }
    }
    let restored = try LedgerDirectory.open(path: try rig.restore(report.name))
    let keys = KeyStore(restored)
    expectEqual(try keys.publicKeys().count, 2)
    expectEqual(try keys.signingKey()?.verifierKey, try keys.publicKeys().last)
  }

  // MARK: Crashes

  private static let ledgerPath = "/ledger"
  private static let backupsPath = "/backups"

  /// A ledger with two closed segments and a tail, in memory.
  private static func storage(backups: Int = 0) throws -> FaultyStorage {
    let storage = FaultyStorage()
    try storage.makeDirectory(backupsPath, permissions: 0o700)
    let directory = try LedgerDirectory.create(
      path: ledgerPath, origin: "crash.example", storage: storage)
    try directory.root.replaceFile("config.json", with: Array("{}".utf8))
    for count in 0...backups {
      var options = WriterOptions()
      (options.blockByteCount, options.segmentByteCount) = (700, 1200)
      let writer = try LedgerWriter.open(directory, options: options)
      for index in 0..<8 { _ = try writer.append([ReplicationRig.draft(index)]) }
      try writer.sealAll()
      _ = try writer.append([ReplicationRig.draft(9)])
      try writer.close()
      if count < backups { try make(storage) }
    }
    return storage
  }

  private static func make(_ storage: FaultyStorage) throws {
    var backup = LedgerBackup()
    backup.storage = storage
    backup.nowMs = { 1_800_000_000_000 }
    _ = try backup.run(
      try LedgerDirectory.open(path: ledgerPath, storage: storage), into: backupsPath)
  }

  /// The events of each backup, all of which must be whole.
  private static func state(_ storage: FaultyStorage) throws -> String {
    let folder = try BackupFolder(path: backupsPath, storage: storage)
    return try folder.names().map { name in
      let backup = try folder.backup(name)
      let faults = try BackupCheck().faults(of: backup)
      if let fault = faults.first { throw fault }
      return "\(name): \(backup.manifest.size)"
    }.joined(separator: ", ")
  }

  private static let operations: [CrashedOperation] = [
    .init("the first backup", prepare: { try storage() }, run: make, state: state),
    .init("a second backup", prepare: { try storage(backups: 1) }, run: make, state: state),
    .init(
      "a restore", prepare: { try storage(backups: 1) },
      run: { storage in
        var restore = BackupRestore()
        restore.storage = storage
        _ = try restore.run(try restore.backup(at: backupsPath), to: "/restored")
      },
      state: { storage in
        guard let directory = try? LedgerDirectory.open(path: "/restored", storage: storage) else {
          return "nothing"
        }
        let report = try LogAudit(directory, workers: 0).run()
        if let finding = report.findings.first { throw CopyError.audit([finding]) }
        return "\(report.size) events"
      }),
  ]

  @Test(arguments: 0..<3)
  func aCrashAtEachCallLeavesTheOldBackupsOrTheNewOne(_ index: Int) throws {
    let result = try Self.operations[index].problems(seeds: 2)
    #expect(result.problems.isEmpty, "\(result.problems.prefix(5))")
    print("crash points tried: \(result.pointCount) (\(Self.operations[index].name))")
  }

  @Test func aFullDiskLeavesNothingAndTheNextBackupWorks() throws {
    let storage = try Self.storage(backups: 1)
    let before = try Self.state(storage)
    var faults = FaultyStorage.Faults()
    faults.fullFiles = Self.backupsPath
    storage.setFaults(faults)
    let error = #expect(throws: LedgerError.self) { try Self.make(storage) }
    expectEqual(error?.code, ENOSPC)
    storage.setFaults(.init())
    expectEqual(try Self.state(storage), before)
    expectEqual(
      try BackupFolder(path: Self.backupsPath, storage: storage).unfinishedNames(), [])
    try Self.make(storage)
    #expect(try Self.state(storage) != before)
  }
}
