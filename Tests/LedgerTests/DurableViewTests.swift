// What a reader may derive something from: never more than is on disk, whatever a failed sync left behind.
import Foundation
import Glibc
import Ledger
import TestSupport
import Testing

@Suite(.bounded) struct DurableViewTests {
  private func directory(_ storage: FaultyStorage) throws -> LedgerDirectory {
    try LedgerDirectory.open(path: "/ledger", storage: storage)
  }

  private func lock(_ fixture: LedgerFixture) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: fixture.path + "/lock"))
  }

  private func setLock(_ fixture: LedgerFixture, _ content: Data) throws {
    // Never replaced: processes lock the file by its inode number.
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: fixture.path + "/lock"))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: content)
    try file.close()
  }

  // MARK: Failed syncs

  @Test func whatAFailedSyncLeftIsNotTakenForDurableWhileTheWriterLives() throws {
    let storage = try CrashRig.newLedger()
    let directory = try directory(storage)
    let writer = try LedgerWriter.open(directory)
    for index in 0..<3 { _ = try writer.append([CrashRig.draft(index)]) }
    let early = try LogReader(directory, .durable)
    storage.setFaults(.init(failSync: 1))
    #expect(throws: LedgerError.self) { try writer.append([CrashRig.draft(3)]) }
    try expectEqual(LogReader(directory).head.size, 4, "the bytes are there to be seen")
    try early.refresh()
    let late = try LogReader(directory, .durable)
    for reader in [early, late] {
      expectEqual(reader.head.size, 3)
      #expect(reader.isLimited)
      expectEqual(reader.head.root, (try LogReader(directory).frontier(at: 3).root))
    }
    #expect(throws: LedgerError.self) { try writer.close() }
    try early.refresh()
    expectEqual(early.head.size, 4)
    for seed in 0..<20 as Range<UInt64> {
      try expectEqual(LogReader(self.directory(storage.afterCrash(seed: seed))).head.size, 4)
    }
  }

  @Test func aCheckpointIsNotOfWhatAFailedSyncLeft() throws {
    let storage = try CrashRig.newLedger()
    _ = try KeyStore(directory(storage)).create(isFurther: false)
    let directory = try directory(storage)
    let writer = try LedgerWriter.open(directory)
    for index in 0..<3 { _ = try writer.append([CrashRig.draft(index)]) }
    storage.setFaults(.init(failSync: 1))
    #expect(throws: LedgerError.self) { try writer.append([CrashRig.draft(3)]) }
    let reader = try LogReader(directory)
    expectEqual(reader.head.size, 4)
    let store = CheckpointStore(directory)
    try expectEqual(store.sign(reader).size, 3)
    #expect(throws: LedgerError.self) { try store.sign(reader, size: 4) }
    #expect(throws: LedgerError.self) { try writer.close() }
    try expectEqual(store.sign(try LogReader(directory)).size, 4)
    for seed in 0..<20 as Range<UInt64> {
      let later = try self.directory(storage.afterCrash(seed: seed))
      try expectEqual(LogReader(later).head.size, 4)
      try LedgerWriter.open(later).close()
    }
  }

  @Test(arguments: CrashWorkload.allCases)
  func whicheverSyncFailsNothingThatWasShownAsDurableIsLost(_ workload: CrashWorkload) throws {
    for failing in 1..<60 {
      let storage = try CrashRig.newLedger()
      let rig = CrashRig(workload)
      let directory = try directory(storage)
      storage.setFaults(.init(failSync: failing))
      guard let writer = try? LedgerWriter.open(directory, options: rig.options) else { continue }
      var acknowledged = 0
      while acknowledged < workload.eventCount {
        let end = acknowledged + workload.batchCount(at: acknowledged)
        guard (try? writer.append((acknowledged..<end).map(CrashRig.draft))) != nil else { break }
        acknowledged = end
      }
      let shown = try LogReader(directory, .durable).head.size
      #expect(shown >= acknowledged)
      for seed in 0..<4 as Range<UInt64> {
        let after = storage.afterCrash(seed: seed)
        #expect(try LogReader(self.directory(after), .durable).head.size >= shown)
        #expect(try rig.content(after).count >= shown)
      }
      try? writer.close()
      let settled = try LogReader(directory, .durable)
      #expect(!settled.isLimited)
      for seed in 0..<4 as Range<UInt64> {
        let after = storage.afterCrash(seed: seed)
        #expect(try rig.content(after).count >= settled.head.size)
        try rig.checkRecovered(after, settled.head.size, seed: seed)
      }
      if acknowledged == workload.eventCount, failing > storage.syncCount { break }
    }
  }

  @Test func aReaderWhoseOwnSyncFailsGivesNothing() throws {
    let storage = try CrashRig.newLedger()
    let directory = try directory(storage)
    let writer = try LedgerWriter.open(directory)
    _ = try writer.append([CrashRig.draft(0)])
    storage.setFaults(.init(failSync: 1))
    #expect(throws: LedgerError.self) { try writer.append([CrashRig.draft(1)]) }
    try? writer.close()
    storage.setFaults(.init(failSync: 1))
    #expect(throws: LedgerError.self) { try LogReader(directory, .durable) }
    try expectEqual(LogReader(directory, .durable).head.size, 2, "the next one writes all again")
    try expectEqual(LogReader(self.directory(storage.afterCrash(seed: 1))).head.size, 2)
  }

  @Test func aPositionThatCouldNotBePublishedIsPublishedWithoutAnotherAppend() throws {
    let storage = try CrashRig.newLedger()
    let directory = try directory(storage)
    let writer = try LedgerWriter.open(directory)
    storage.setFaults(.init(fullFiles: "/" + Format.lockName))
    _ = try writer.append([CrashRig.draft(0)])
    let reader = try LogReader(directory, .durable)
    expectEqual(reader.head.size, 0)
    storage.setFaults(.init())
    #expect(
      try eventually {
        try reader.refresh()
        return reader.head.size == 1
      })
    // An event appended while the writer waits to retry is published with it.
    storage.setFaults(.init(fullFiles: "/" + Format.lockName))
    _ = try writer.append([CrashRig.draft(1)])
    storage.setFaults(.init())
    _ = try writer.append([CrashRig.draft(2)])
    try reader.refresh()
    expectEqual(reader.head.size, 3)
    try writer.close()
  }

  // MARK: The cost

  @Test func besideAWriterNoReaderSyncs() throws {
    let storage = try CrashRig.newLedger()
    let directory = try directory(storage)
    let writer = try LedgerWriter.open(directory)
    let reader = try LogReader(directory, .durable)
    for index in 0..<5 {
      _ = try writer.append([CrashRig.draft(index)])
      let syncs = storage.syncCount
      try reader.refresh()
      expectEqual(reader.head.size, index + 1)
      try reader.syncTails()
      expectEqual(storage.syncCount, syncs)
    }
    try writer.close()
    let syncs = storage.syncCount
    try reader.refresh()
    try expectEqual(LogReader(directory, .durable).head.size, 5)
    expectEqual(storage.syncCount, syncs, "what a writer has closed is durable")
  }

  // MARK: The lock

  @Test func theLockSaysWhoHoldsItAndHowFarTheLogIsDurable() throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    _ = try writer.append([fixture.draft(0)])
    let lines = String(decoding: try lock(fixture), as: UTF8.self).split(separator: "\n")
    expectEqual(lines.count, 2)
    // The first line as older programs read it.
    expectEqual(Int(lines[0]), Int(getpid()))
    #expect(lines[1].hasPrefix("00000000000000000001 "))
    try writer.close()
    let closed = String(decoding: try lock(fixture), as: UTF8.self)
    expectEqual(closed, "0000000000\n\(lines[1])\n")
  }

  @Test(arguments: [
    "", "4999999\n", "0004999999\n", "0004999999\n00000000000000000002 00000000\n",
    "0004999999\n00000000000000000099 00000000\n", "x",
  ])
  func whatADeadWriterLeftIsMadeDurableByTheNextReader(_ content: String) throws {
    let fixture = try LedgerFixture()
    let writer = try LedgerWriter.open(fixture.directory)
    for index in 0..<3 { _ = try writer.append([fixture.draft(index)]) }
    try writer.close()
    let good = try lock(fixture)
    try setLock(fixture, Data(content.utf8))
    let reader = try LogReader(fixture.directory, .durable)
    #expect(reader.head.size == 3 && !reader.isLimited)
    try expectEqual(lock(fixture).suffix(30), good.suffix(30))
    try LedgerWriter.open(fixture.directory).close()
    try expectEqual(fixture.lines().count, 3)
  }

  @Test func aPositionBeyondTheLogIsNotBelieved() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(3)
    let longer = try LedgerFixture()
    try longer.fill(9)
    try setLock(fixture, try lock(longer))
    try expectEqual(LogReader(fixture.directory, .durable).head.size, 3)
    #expect(String(decoding: try lock(fixture), as: UTF8.self).contains("00000000000000000003 "))
  }

  @Test func readersAtOnceAndAWriterThatStartsDoNotShutEachOtherOut() async throws {
    let fixture = try LedgerFixture()
    let first = try LedgerWriter.open(fixture.directory)
    _ = try first.append([fixture.draft(0)])
    let stale = try lock(fixture)
    for index in 1..<20 { _ = try first.append([fixture.draft(index)]) }
    try first.close()
    let directory = fixture.directory
    for round in 0..<10 {
      // As if the process that wrote it were dead.
      try setLock(fixture, Data("0004999999\n".utf8) + stale.suffix(30))
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<6 {
          group.addTask { try LogReader(directory, .durable).head.size }
        }
        if round % 2 == 1 {
          group.addTask {
            let writer = try LedgerWriter.open(directory)
            defer { try? writer.close() }
            return writer.nextPosition
          }
        }
        for try await size in group { expectEqual(size, 20) }
      }
    }
  }

  @Test func aWriterWaitsForAReaderAndNotForAWriter() throws {
    let fixture = try LedgerFixture()
    try fixture.fill(1)
    let descriptor = open(fixture.path + "/lock", O_RDWR)
    defer { close(descriptor) }
    try #require(flock(descriptor, LOCK_EX) == 0)
    let directory = fixture.directory
    let opened = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      if let writer = try? LedgerWriter.open(directory) { try? writer.close() }
      opened.signal()
    }
    // The content names no process: a reader holds the lock.
    expectEqual(opened.wait(timeout: .now() + 0.05), .timedOut)
    flock(descriptor, LOCK_UN)
    expectEqual(opened.wait(timeout: .now() + 20), .success)
    try #require(flock(descriptor, LOCK_EX) == 0)
    try setLock(fixture, Data("0000000001\n".utf8))
    let error = #expect(throws: LedgerError.self) { try LedgerWriter.open(directory) }
    #expect(error?.kind == .locked && error?.cause == "locked by process 1")
  }

  @Test func besideAWriterOfAnOlderProgramAReaderSyncsByItself() throws {
    let storage = try CrashRig.newLedger()
    let directory = try directory(storage)
    let writer = try LedgerWriter.open(directory)
    _ = try writer.append([CrashRig.draft(0)])
    storage.setContent("/ledger/lock", Array("\(getpid())\n".utf8))
    let reader = try LogReader(directory, .durable)
    expectEqual(reader.head.size, 1)
    let syncs = storage.syncCount
    try reader.syncTails()
    #expect(storage.syncCount > syncs)
    try writer.close()
  }

  @Test func aLedgerThatMayOnlyBeReadIsReadAsItIs() throws {
    let storage = try CrashRig.newLedger()
    let directory = try directory(storage)
    let writer = try LedgerWriter.open(directory)
    _ = try writer.append([CrashRig.draft(0)])
    try writer.close()
    storage.setContent("/ledger/lock", [])
    storage.setFaults(.init(isReadOnly: true))
    let reader = try LogReader(directory, .durable)
    #expect(reader.head.size == 1 && !reader.isLimited)
    try reader.syncTails()
    storage.remove("/ledger/lock")
    try expectEqual(LogReader(directory, .durable).head.size, 1)
  }
}
