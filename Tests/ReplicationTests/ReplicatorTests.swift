// What a replicator puts into a store as a ledger grows, and what it deletes.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct ReplicatorTests {
  @Test func anEmptyLedgerGivesACompleteStepWithItsIdentity() throws {
    let rig = try ReplicationRig()
    try rig.copyAll()
    let check = try rig.check()
    expectEqual(check.stepCount, 1)
    expectEqual(check.completeSteps, [0])
    expectEqual(check.size, 0)
    try rig.expectWhole()
    let record = try #require(try ReplicationRecord(of: rig.directory))
    expectEqual(record.epoch, 1)
  }

  @Test func aFilledLedgerIsCopiedInSegmentsBlocksAndFrames() throws {
    let rig = try ReplicationRig()
    try rig.append(60)
    try rig.seal()
    try rig.append(4)
    try rig.copyAll()
    let check = try rig.check()
    #expect(check.segments.count >= 2)
    #expect(!check.blocks.isEmpty)
    expectEqual(check.frames.last?.end, 64)
    try rig.expectWhole()
  }

  @Test func framesComeFirstThenBlocksThenSegments() throws {
    let rig = try ReplicationRig(block: 10_000, segment: 14_000)
    try rig.append(5)
    try rig.copyAll()
    var check = try rig.check()
    expectEqual(check.frames.map(\.end), [5])
    try rig.append(3)
    try rig.copyAll()
    check = try rig.check()
    expectEqual(check.frames.map(\.first), [0, 5])
    expectEqual(check.frames.map(\.tail), [0, 0])
    try rig.expectWhole()

    try rig.seal()
    try rig.copyAll()
    check = try rig.check()
    expectEqual(check.blocks.map(\.end), [8])
    #expect(check.frames.isEmpty)
    #expect(check.segments.isEmpty)
    try rig.expectWhole()

    for _ in 0..<12 {
      try rig.append(20)
      try rig.seal()
    }
    try rig.copyAll()
    check = try rig.check()
    #expect(check.segments.count >= 2)
    try rig.expectWhole()
  }

  @Test func nothingIsDeletedBeforeWhatReplacesItWasReadBack() throws {
    let rig = try ReplicationRig()
    let reads = Monitor<Set<String>>([])
    let problems = Monitor<[String]>([])
    rig.script = { [content = rig.content] call in
      switch call.operation {
      case .read: reads.withLock { _ = $0.insert(call.key) }
      case .delete:
        // An object that no step has ever named may be deleted at once.
        let digest = call.key.split(separator: "-").last?.prefix(64) ?? ""
        let isNamed = content.objects.contains { key, bytes in
          key.hasPrefix("steps/") && String(decoding: bytes, as: UTF8.self).contains(digest)
        }
        if isNamed, reads.withLock({ $0.isEmpty }) {
          problems.withLock { $0.append(call.key) }
        }
      default: break
      }
      return .happens
    }
    try rig.append(6)
    try rig.copyAll()
    #expect(rig.store.calls.allSatisfy { $0.operation != .delete })
    try rig.append(60)
    try rig.seal()
    try rig.copyAll()
    expectEqual(problems.withLock { $0 }, [])
    let deleted = rig.store.calls.filter { $0.operation == .delete }.map(\.key)
    #expect(deleted.allSatisfy { $0.hasPrefix("blocks/") })
    #expect(rig.store.calls.allSatisfy { $0.operation != .delete || !$0.key.hasPrefix("steps/") })
    try rig.expectWhole()
  }

  @Test func anObjectThatTheStoreDamagedIsStoredAgain() throws {
    let rig = try ReplicationRig(block: 10_000, segment: 100_000)
    try rig.append(10)
    try rig.copyAll()
    let isCutOff = Monitor(false)
    rig.store.setScript { [content = rig.content] call in
      // The store keeps half of the block.
      if call.operation == .read, call.key.hasPrefix("blocks/") {
        let isFirst = isCutOff.withLock { flag in
          defer { flag = true }
          return !flag
        }
        if isFirst { content.objects[call.key]?.removeLast(10) }
      }
      return .happens
    }
    try rig.seal()
    try rig.copyAll()
    #expect(isCutOff.withLock { $0 })
    try rig.expectWhole()
  }

  @Test func aStepIsMadeAfterTheDelayOrWhenMuchWaits() throws {
    let rig = try ReplicationRig(block: 1 << 20, segment: 10 << 20)
    rig.options.delayMs = 3_600_000
    rig.options.waitingByteCount = 5_000
    try rig.start()
    #expect(rig.wait { rig.replicator?.status.step == 0 })
    try rig.append(2)
    #expect(rig.wait { rig.replicator?.status.lagCount == 2 })
    // It has looked twice without making a step.
    try rig.append(1)
    #expect(rig.wait { rig.replicator?.status.lagCount == 3 })
    try expectEqual(rig.check().stepCount, 1)
    #expect((rig.replicator?.status.lagBytes ?? 0) > 200)
    try rig.append(20, byteCount: 400)
    #expect(rig.wait { (rig.replicator?.status.confirmedSize ?? 0) >= 12 })
  }

  @Test func stoppingConfirmsWhatIsOnDisk() throws {
    let rig = try ReplicationRig()
    rig.options.delayMs = 3_600_000
    try rig.start()
    try rig.append(3)
    rig.stop(deadlineMs: 120_000)
    try expectEqual(rig.check().size, 3)
    try expectEqual(ReplicationRecord(of: rig.directory)?.size, 3)
  }

  @Test func eachStepAfterSomeIsComplete() throws {
    let rig = try ReplicationRig(block: 3_000, segment: 5_000)
    rig.options.stepsBetweenComplete = 4
    try rig.start()
    for count in 1...30 {
      try rig.append(1)
      #expect(rig.wait { (rig.replicator?.status.confirmedSize ?? 0) >= count })
      if count % 10 == 0 { try rig.seal() }
    }
    try rig.copyAll()
    let complete = try rig.check().completeSteps
    for (step, next) in zip(complete, complete.dropFirst()) { #expect(next - step <= 4) }
    #expect(complete.count >= 5)
    try rig.expectWhole()
  }

  @Test func newCheckpointsAndANewIdentityAreCopied() throws {
    let rig = try ReplicationRig()
    try rig.append(5)
    try rig.copyAll()
    _ = try KeyStore(rig.directory.reread()).create(isFurther: false)
    let reader = try LogReader(rig.directory, .durable)
    _ = try CheckpointStore(rig.directory.reread()).sign(reader)
    try rig.copyAll()
    var check = try rig.check()
    expectEqual(check.checkpoints.keys.sorted(), [5])
    try rig.expectWhole()
    try rig.append(2)
    try reader.refresh()
    _ = try CheckpointStore(rig.directory.reread()).sign(reader)
    try rig.copyAll()
    check = try rig.check()
    expectEqual(check.checkpoints.keys.sorted(), [5, 7])
    try rig.expectWhole()
  }

  @Test func aSecondReplicatorOfTheSameLedgerIsRefused() throws {
    let rig = try ReplicationRig()
    try rig.start()
    let second = Replicator(
      try LedgerDirectory.open(path: rig.directory.path), MemoryStore(sharing: rig.content),
      options: rig.options)
    let error = #expect(throws: LedgerError.self) { try second.start() }
    expectEqual(error?.kind, .locked)
  }
}
