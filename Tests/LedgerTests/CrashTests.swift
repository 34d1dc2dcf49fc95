// A crash at every call, failed calls, a full disk: acknowledged events are there, in order, once.
import Base
import Glibc
import Ledger
import TestSupport
import Testing

@Suite("Crashes and failing storage", .bounded)
struct CrashTests {
  @Test(
    "A crash at every call loses nothing that was acknowledged", arguments: CrashWorkload.allCases)
  func everyCall(_ workload: CrashWorkload) throws {
    let rig = CrashRig(workload)
    let whole = try CrashRig.newLedger()
    whole.setFaults(.init())
    try expectEqual(rig.work(whole), workload.eventCount)
    let callCount = whole.callCount
    try expectEqual(rig.content(whole).count, workload.eventCount)
    var count = 0
    for call in 1...callCount + 1 {
      for seed in 0...CrashRig.seedCount {
        let storage = try CrashRig.newLedger()
        storage.setFaults(.init(crashAtCall: call))
        let acknowledged = (try? rig.work(storage)) ?? 0
        storage.setFaults(.init())
        // Seed 0: only the process died, and the next one sees what no sync has confirmed.
        let after = seed == 0 ? storage : storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        try rig.checkRecovered(after, acknowledged, seed: seed)
        count += 1
      }
    }
    CrashRig.tell(count, "every call, \(workload)")
  }

  @Test("A crash at every call of the recovery after a crash", arguments: 0..<6 as Range<UInt64>)
  func duringRecovery(_ seed: UInt64) throws {
    var count = 0
    for round in 0..<CrashRig.seedCount { count += try crashInRecovery(seed + 6 * round) }
    CrashRig.tell(count, "recovery, \(seed)")
  }

  private func crashInRecovery(_ seed: UInt64) throws -> Int {
    var random = SeededRandom(seed: seed)
    let rig = CrashRig(.rollOver)
    let storage = try CrashRig.newLedger()
    storage.setFaults(.init(crashAtCall: Int.random(in: 60...200, using: &random)))
    let acknowledged = (try? rig.work(storage)) ?? 0
    for call in 1...60 {
      let after = storage.afterCrash(seed: seed)
      after.setFaults(.init(crashAtCall: call))
      let more = max(acknowledged, (try? rig.work(after)) ?? 0)
      after.setFaults(.init())
      try rig.checkRecovered(after.afterCrash(seed: random.next()), more, seed: seed)
    }
    return 60
  }

  @Test("A call that fails at any place loses nothing", arguments: [EIO, ENOSPC, EMFILE])
  func everyFailure(_ code: Int32) throws {
    let rig = CrashRig(.rollOver)
    let whole = try CrashRig.newLedger()
    whole.setFaults(.init())
    try expectEqual(rig.work(whole), rig.workload.eventCount)
    let callCount = whole.callCount
    var count = 0
    for call in 1...callCount {
      for seed in 0...CrashRig.seedCount {
        let storage = try CrashRig.newLedger()
        storage.setFaults(.init(failCall: .init(ordinal: call, code: code)))
        let acknowledged = (try? rig.work(storage)) ?? 0
        storage.setFaults(.init())
        let after = seed == 0 ? storage : storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        try rig.checkRecovered(after, acknowledged, seed: seed)
        count += 1
      }
    }
    CrashRig.tell(count, "failing calls, \(code)")
  }

  @Test("Crashes, failures and interruptions in any order", arguments: 0..<20 as Range<UInt64>)
  func randomRuns(_ argument: UInt64) throws {
    var count = 0
    for round in 0..<CrashRig.seedCount {
      var random = SeededRandom(seed: argument &+ round << 16)
      let rig = CrashRig(
        random.pick(CrashWorkload.allCases),
        options: LedgerFixture.smallOptions(
          block: Int.random(in: 1...3000, using: &random),
          segment: Int.random(in: 1...4000, using: &random)))
      var storage = try CrashRig.newLedger()
      var acknowledged = 0
      for _ in 0..<6 {
        var faults = FaultyStorage.Faults(isFlaky: random.chance(percent: 30))
        let call = Int.random(in: 1...250, using: &random)
        switch random.below(3) {
        case 0: faults.crashAtCall = call
        case 1: faults.failCall = .init(ordinal: call, code: random.pick([EIO, ENOSPC, EDQUOT]))
        default: faults.failSync = 1 + call % 25
        }
        storage.setFaults(faults)
        acknowledged = max(acknowledged, (try? rig.work(storage)) ?? 0)
        storage.setFaults(.init())
        if random.chance(percent: 60) { storage = storage.afterCrash(seed: random.next()) }
        count += 1
      }
      try rig.checkRecovered(storage, acknowledged, seed: random.next())
    }
    CrashRig.tell(count, "random runs, \(argument)")
  }

  @Test(
    "A failed sync is never acknowledged or retried, and ends the writer", arguments: 1...20)
  func failedSync(_ ordinal: Int) throws {
    let rig = CrashRig(.rollOver)
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: rig.options)
    storage.setFaults(.init(failSync: ordinal))
    var acknowledged = 0
    var failure: LedgerError?
    for index in 0..<rig.workload.eventCount {
      do throws(LedgerError) {
        _ = try writer.append([CrashRig.draft(index)])
        // A failed writer acknowledges nothing more.
        #expect(failure == nil)
        acknowledged += 1
      } catch {
        if let failure { expectEqual(error, failure) }
        failure = error
      }
    }
    do { try writer.close() } catch { failure = error }
    if storage.syncCount >= ordinal {
      #expect(failure?.kind == .inputOutput && failure?.operation == "sync")
    }
    storage.setFaults(.init())
    // Bytes that the sync dropped still read as if they had been written. First the next process continues from them,
    // then the power is cut.
    try rig.checkRecovered(
      storage.afterCrash(seed: UInt64(ordinal)), acknowledged, seed: UInt64(ordinal))
    try rig.checkRecovered(storage, acknowledged, seed: UInt64(ordinal))
  }

  @Test("On a full disk an append is refused, and goes through once there is room")
  func fullDisk() throws {
    let rig = CrashRig(.appendAlone)
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory)
    for index in 0..<6 {
      storage.setFaults(.init(isFull: true))
      let error = #expect(throws: LedgerError.self) { try writer.append([CrashRig.draft(index)]) }
      #expect(error?.kind == .inputOutput && error?.operation == "write")
      expectEqual(error?.cause, systemErrorText(ENOSPC))
      expectEqual(writer.nextPosition, index)
      storage.setFaults(.init())
      try expectEqual(rig.content(storage).count, index)
      _ = try writer.append([CrashRig.draft(index)])
    }
    try writer.close()
    try expectEqual(rig.content(storage), (0..<6).map(CrashRig.data))
  }

  @Test("A disk that fills up while blocks are sealed loses nothing that was acknowledged")
  func fullWhileSealing() throws {
    let rig = CrashRig(.sealing)
    for place in 0..<rig.workload.eventCount {
      let storage = try CrashRig.newLedger()
      let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
      let writer = try LedgerWriter.open(directory, options: rig.options)
      var acknowledged = 0
      for index in 0..<rig.workload.eventCount {
        if index == place { storage.setFaults(.init(isFull: true)) }
        guard (try? writer.append([CrashRig.draft(index)])) != nil else { break }
        acknowledged += 1
      }
      // All acknowledged events are in the tails, so closing reports nothing.
      #expect(throws: Never.self) { try writer.close() }
      #expect(try rig.content(storage).count >= acknowledged)
      storage.setFaults(.init())
      try rig.checkRecovered(storage, acknowledged, seed: UInt64(place))
    }
  }

  @Test("On a read-only file system a log can be read, and a writer is refused with the reason")
  func readOnly() throws {
    let rig = CrashRig(.rollOver)
    let storage = try CrashRig.newLedger()
    try expectEqual(rig.work(storage), rig.workload.eventCount)
    storage.setFaults(.init(isReadOnly: true))
    try expectEqual(rig.content(storage).count, rig.workload.eventCount)
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    #expect(try LogAudit(directory, workers: 0).run().isWhole)
    let error = #expect(throws: LedgerError.self) { try LedgerWriter.open(directory) }
    expectEqual(error?.kind, .inputOutput)
    expectEqual(error?.cause, systemErrorText(EROFS))
  }

  /// Files that the disk has no room for, and the workload that meets them: a block in its segment, a segment's closing
  /// member, a new segment.
  private static let fullFiles: [(CrashWorkload, String)] = [
    (.sealing, ".jsonl.gz"), (.rollOver, ".jsonl.gz"), (.rollOver, ".jsonl.gz.new"),
  ]

  @Test(
    "A block or segment that a full disk refuses is written once there is room",
    arguments: fullFiles)
  func fullDiskWhileSealing(_ workload: CrashWorkload, _ files: String) throws {
    let rig = CrashRig(workload)
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    var options = rig.options
    options.unsealedTailCountMax = 3
    let writer = try LedgerWriter.open(directory, options: options)
    func draft(_ index: Int) -> EventDraft {
      EventDraft(type: "test.crash", version: 1, data: Array(CrashRig.data(index).utf8))
    }
    storage.setFaults(.init(fullFiles: files))
    var count = 0
    // Tails wait to be sealed until the limit is reached.
    let error = #expect(throws: LedgerError.self) {
      while count < 40 {
        _ = try writer.append([draft(count)])
        count += 1
      }
    }
    #expect(error?.operation == "write" && error?.cause == systemErrorText(ENOSPC))
    #expect(writer.failure == nil && (1..<40).contains(count))
    storage.setFaults(.init())
    try expectEqual(rig.content(storage).count, count)
    #expect(eventually { (try? writer.append([draft(count)])) != nil })
    try writer.close()
    try expectEqual(rig.content(storage), (0...count).map(CrashRig.data))
  }

  @Test(
    "A call that the system refuses before writing anything ends nothing",
    arguments: [EMFILE, ENFILE, ENOMEM, EACCES, EIO])
  func refusedCall(_ code: Int32) throws {
    let rig = CrashRig(.rollOver)
    let whole = try CrashRig.newLedger()
    whole.setFaults(.init())
    _ = try rig.work(whole)
    for call in 1...whole.callCount {
      let storage = try CrashRig.newLedger()
      let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
      let writer = try LedgerWriter.open(directory, options: rig.options)
      storage.setFaults(.init(failCall: .init(ordinal: call, code: code)))
      var acknowledged: [String] = []
      for index in 0..<rig.workload.eventCount {
        guard (try? writer.append([CrashRig.draft(index)])) != nil else { continue }
        acknowledged.append(CrashRig.data(index))
      }
      let failure = writer.failure
      try? writer.close()
      if let failure {
        // An unreadable tail is damage, whatever error the system gives.
        #expect(
          failure.operation == "sync" || failure.operation == "write" && code == EIO
            || failure.damage?.verdict == .unreadable, "\(failure)")
      } else {
        #expect(acknowledged.count >= rig.workload.eventCount - 1, "call \(call)")
      }
      storage.setFaults(.init())
      let found = try rig.content(storage)
      #expect(Set(acknowledged).subtracting(found).isEmpty, "call \(call)")
    }
  }

  @Test("A shortage of descriptors refuses appends and blocks only as long as it lasts")
  func noDescriptors() throws {
    let rig = CrashRig(.rollOver)
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: rig.options)
    var count = 0
    for _ in 0..<3 {
      storage.setFaults(.init(openFilesMax: 1))
      var error: LedgerError?
      while error == nil, count < 60 {
        do throws(LedgerError) {
          _ = try writer.append([CrashRig.draft(count)])
          count += 1
        } catch let refusal { error = refusal }
      }
      #expect(error?.cause == systemErrorText(EMFILE) && writer.failure == nil)
      storage.setFaults(.init())
      _ = try writer.append([CrashRig.draft(count)])
      count += 1
    }
    try writer.close()
    try expectEqual(rig.content(storage), (0..<count).map(CrashRig.data))
  }

  @Test("A failed write of the device ends the writer: that write is never retried")
  func writeFailure() throws {
    let rig = CrashRig(.rollOver)
    let whole = try CrashRig.newLedger()
    whole.setFaults(.init())
    _ = try rig.work(whole)
    var endedCount = 0
    for call in 1...whole.callCount {
      let storage = try CrashRig.newLedger()
      let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
      let writer = try LedgerWriter.open(directory, options: rig.options)
      storage.setFaults(.init(failCall: .init(ordinal: call, code: EIO)))
      var failures: [LedgerError] = []
      for index in 0..<rig.workload.eventCount {
        let draft = EventDraft(
          type: "test.crash", version: 1, data: Array(CrashRig.data(index).utf8))
        do throws(LedgerError) { _ = try writer.append([draft]) } catch { failures.append(error) }
      }
      if let first = failures.first, first.isOfDevice, first.operation == "write" {
        endedCount += 1
        expectEqual(writer.failure, first, "call \(call)")
        // Every later append is refused, even though the device would accept it.
        #expect(failures.allSatisfy { $0 == first })
      }
      try? writer.close()
    }
    #expect(endedCount > 0)
  }

  @Test("Interrupted calls, short reads and short writes make no difference")
  func flaky() throws {
    let rig = CrashRig(.rollOver)
    // Several rounds, so that the first calls are interrupted too.
    for _ in 0..<20 {
      let storage = try CrashRig.newLedger()
      storage.setFaults(.init(isFlaky: true))
      try expectEqual(rig.work(storage), rig.workload.eventCount)
      for _ in 0..<20 { _ = try LedgerDirectory.open(path: "/ledger", storage: storage) }
      try expectEqual(rig.content(storage), (0..<rig.workload.eventCount).map(CrashRig.data))
    }
  }

  @Test("A crash at every call while a ledger is made: it exists, or can be made again")
  func creation() throws {
    let whole = try CrashRig.newLedger()
    var count = 0
    for call in 1...whole.callCount + 1 {
      for seed in 0...CrashRig.seedCount {
        let storage = FaultyStorage()
        storage.setFaults(.init(crashAtCall: call))
        let isThere =
          (try? LedgerDirectory.create(path: "/ledger", origin: "crash.example", storage: storage))
          != nil
        storage.setFaults(.init())
        let after = seed == 0 ? storage : storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        if (try? LedgerDirectory.open(path: "/ledger", storage: after)) == nil {
          #expect(!isThere, "call \(call)")
          _ = try LedgerDirectory.create(path: "/ledger", origin: "crash.example", storage: after)
        }
        let rig = CrashRig(.appendAlone)
        try expectEqual(rig.work(after), rig.workload.eventCount)
        count += 1
      }
    }
    CrashRig.tell(count, "creation")
  }

  @Test("A crash at every call while a head is signed: no kept checkpoint outlives its events")
  func checkpoints() throws {
    let rig = CrashRig(.rollOver)
    func prepared() throws -> FaultyStorage {
      let storage = try CrashRig.newLedger()
      try expectEqual(rig.work(storage), rig.workload.eventCount)
      let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
      _ = try KeyStore(directory).create(isFurther: false)
      storage.setFaults(.init())
      return storage
    }
    func sign(_ storage: FaultyStorage) throws -> Checkpoint {
      let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
      return try CheckpointStore(directory).sign(try LogReader(directory))
    }
    let whole = try prepared()
    let root = try sign(whole).root
    var count = 0
    for call in 1...whole.callCount + 1 {
      let storage = try prepared()
      storage.setFaults(.init(crashAtCall: call))
      let isSigned = (try? sign(storage)) != nil
      storage.setFaults(.init())
      for seed in 1...CrashRig.seedCount {
        let after = storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        let directory = try LedgerDirectory.open(path: "/ledger", storage: after)
        let store = CheckpointStore(directory)
        let sizes = try store.sizes()
        #expect(sizes == [rig.workload.eventCount] || sizes == [] && !isSigned, "call \(call)")
        var report = try LogAudit(directory, rootsAt: sizes, workers: 0).run()
        report.check(store, sizes: sizes)
        #expect(report.isWhole, "call \(call)")
        let again = try sign(after)
        expectEqual(again.size, rig.workload.eventCount)
        if sizes != [] { try expectEqual(store.checkpoint(size: again.size)?.root, again.root) }
        count += 1
      }
    }
    expectEqual(root.bytes.count, 32)
    CrashRig.tell(count, "checkpoints")
  }
}
