// Appends that wait for the copy in mode `sync`.
import Base
import Glibc
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct ReplicationGateTests {
  private func rig(limitMs: Int64) throws -> ReplicationRig {
    let rig = try ReplicationRig()
    rig.options.delayMs = 3_600_000
    try rig.copyAll()
    let replicator = try #require(rig.replicator)
    rig.writerOptions.confirmation = replicator.gate(limitMs: limitMs)
    return rig
  }

  @Test func anAppendReturnsWhenItsEventsAreInTheCopy() throws {
    let rig = try rig(limitMs: 120_000)
    for count in 1...20 {
      try rig.append(1)
      #expect(try rig.check().size >= count)
    }
    try rig.closeWriter()
  }

  @Test func whatIsNotConfirmedInTimeIsOnDiskAndCopiedLater() throws {
    let rig = try rig(limitMs: 50)
    rig.store.setScript { call in
      call.operation == .create ? .fails(.unavailable) : .happens
    }
    let error = #expect(throws: LedgerError.self) { try rig.append(1) }
    expectEqual(error?.kind, .unconfirmed)
    // After the store has been unreachable for that long, appends fail without waiting.
    let sinceMs = MonotonicClock.nowMs()
    #expect(rig.wait { MonotonicClock.nowMs() - sinceMs > 50 })
    let next = #expect(throws: LedgerError.self) { try rig.append(1) }
    expectEqual(next?.kind, .unconfirmed)
    try expectEqual(LogReader(rig.directory).head.size, 2)
    rig.store.clearScript()
    #expect(rig.wait { rig.replicator?.status.confirmedSize == 2 })
    try rig.append(1)
    try expectEqual(rig.check().size, 3)
  }

  @Test func afterATakeOverAppendsAreRefused() throws {
    let rig = try rig(limitMs: 120_000)
    try rig.append(1)
    _ = try FencingTests.takeOver(rig)
    let error = #expect(throws: LedgerError.self) { try rig.append(1) }
    expectEqual(error?.kind, .standby)
    try expectEqual(rig.check().size, 1)
  }

  @Test func commitsThatWaitShareAStep() throws {
    let rig = try rig(limitMs: 120_000)
    // Each submission is a commit of its own, and all stay in one tail.
    rig.writerOptions.groupByteCount = 1
    rig.writerOptions.blockByteCount = 1 << 20
    let writer = try rig.openWriter()
    rig.store.setScript { $0.operation == .create ? .fails(.unavailable) : .happens }
    let tickets = try (0..<20).map { try writer.submit([ReplicationRig.draft($0)]) }
    #expect(rig.wait { writer.nextPosition == 20 }, "the disk does not wait for the copy")
    let before = try #require(rig.replicator?.status.step)
    rig.store.clearScript()
    for ticket in tickets { _ = try writer.wait(for: ticket) }
    try expectEqual(rig.check().size, 20)
    // The replicator may have made some steps from the first frames alone.
    #expect(try #require(rig.replicator?.status.step) < before + 10)
    try rig.closeWriter()
  }

  @Test func whatWaitsWhenTheWriterClosesIsResolved() throws {
    let rig = try rig(limitMs: 50)
    rig.writerOptions.groupByteCount = 1
    let writer = try rig.openWriter()
    rig.store.setScript { $0.operation == .create ? .fails(.unavailable) : .happens }
    let tickets = try (0..<5).map { try writer.submit([ReplicationRig.draft($0)]) }
    try rig.closeWriter()
    for ticket in tickets {
      let error = #expect(throws: LedgerError.self) { try writer.wait(for: ticket) }
      expectEqual(error?.kind, .unconfirmed)
    }
    try expectEqual(LogReader(rig.directory).head.size, 5)
  }

  @Test func manyThreadsShareSteps() throws {
    let rig = try rig(limitMs: 120_000)
    let writer = try rig.openWriter()
    let failures = Monitor(0)
    let threads = try (0..<8).map { index in
      try WorkerThread.start {
        for count in 0..<10 {
          do { _ = try writer.append([ReplicationRig.draft(index * 100 + count)]) } catch {
            failures.withLock { $0 += 1 }
          }
        }
      }
    }
    for thread in threads { thread.join() }
    expectEqual(failures.withLock { $0 }, 0)
    try expectEqual(rig.check().size, 80)
  }
}
