// Stores that are unreachable, slow or full, or refuse: the ledger keeps running, and the copy
// catches up.
import Base
import Foundation
import Glibc
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct OutageTests {
  @Test(arguments: [
    ObjectStoreError.Kind.unavailable, .denied, .noBucket, .full, .unexpected,
  ])
  func whatTheStoreRefusesIsTriedAgainAndSaidOnce(_ kind: ObjectStoreError.Kind) throws {
    let rig = try ReplicationRig()
    rig.script = { _ in .fails(kind) }
    try rig.append(3)
    try rig.start()
    #expect(rig.wait { rig.store.calls.count > 10 })
    let status = try #require(rig.replicator?.status)
    expectEqual(status.mode, .opening)
    #expect(status.unreachableSinceMs != nil)
    #expect(status.error != nil)
    rig.store.clearScript()
    try rig.copyAll()
    #expect(rig.replicator?.status.error == nil)
    #expect(rig.replicator?.status.unreachableSinceMs == nil)
    let notices = rig.notices.withLock { $0 }
    expectEqual(notices.count, 2)
    #expect(notices.last?.contains("again") == true)
    try rig.expectWhole()
  }

  @Test func afterAnOutageBlocksAreCopiedAndNotFrames() throws {
    let rig = try ReplicationRig(block: 1_500, segment: 1_000_000)
    try rig.append(2)
    try rig.copyAll()
    rig.store.setScript { _ in .fails(.unavailable) }
    try rig.append(60)
    try rig.seal()
    try rig.append(2)
    #expect(rig.wait { rig.replicator?.status.unreachableSinceMs != nil })
    #expect(rig.wait { rig.replicator?.status.lagCount == 62 })
    #expect((rig.replicator?.status.lagMs() ?? -1) >= 0)
    rig.store.clearScript()
    try rig.copyAll()
    let check = try rig.check()
    #expect(check.stepsWithFrames.count <= 2)
    expectEqual(rig.replicator?.status.lagCount, 0)
    expectEqual(rig.replicator?.status.lagMs(), 0)
    try rig.expectWhole()
  }

  @Test func theLagGrowsWhileTheStoreIsAway() throws {
    let rig = try ReplicationRig()
    try rig.append(2)
    try rig.copyAll()
    rig.store.setScript { _ in .fails(.unavailable) }
    try rig.append(1, byteCount: 1_000)
    #expect(rig.wait { rig.replicator?.status.lagCount == 1 })
    #expect(rig.wait { rig.replicator?.status.unreachableSinceMs != nil })
    try rig.append(20, byteCount: 1_000)
    #expect(rig.wait { rig.replicator?.status.lagCount == 21 })
    #expect(rig.wait { (rig.replicator?.status.lagBytes ?? 0) > 20_000 })
  }

  @Test func afterAnOutageWholeSegmentsAreCopied() throws {
    let rig = try ReplicationRig()
    try rig.append(7)
    try rig.copyAll()
    rig.stop()
    try rig.append(80)
    try rig.seal()
    try rig.copyAll()
    let check = try rig.check()
    #expect(check.segments.count >= 3)
    try rig.expectWhole()
  }

  @Test func stoppingDoesNotWaitForAStoreThatDoesNotAnswer() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.copyAll()
    rig.store.setScript { call in call.operation == .create ? .waits : .happens }
    try rig.append(1)
    #expect(rig.store.waitForHeld(1))
    rig.stop(deadlineMs: 20)
    // Unconfirmed events are copied after the next start.
    try rig.copyAll()
    try expectEqual(rig.check().size, 4)
    try rig.expectWhole()
  }

  @Test func aFullStoreDoesNotStopTheLedger() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.copyAll()
    rig.content.byteCountMax = rig.content.byteCount + 10
    try rig.append(20)
    #expect(rig.wait { rig.replicator?.status.error?.contains("full") == true })
    try expectEqual(rig.check().size, 3)
    rig.content.byteCountMax = .max
    try rig.copyAll()
    try rig.expectWhole()
  }

  @Test func deletionsThatAreRefusedAreTriedLaterAndHinderNothing() throws {
    let rig = try ReplicationRig(block: 1_000_000)
    rig.script = { call in call.operation == .delete ? .fails(.denied) : .happens }
    try rig.append(3)
    try rig.copyAll()
    _ = try KeyStore(rig.directory.reread()).create(isFurther: false)
    try rig.copyAll()
    #expect(rig.wait { (rig.replicator?.status.replacedCount ?? 0) > 0 })
    #expect(rig.replicator?.status.unreachableSinceMs == nil)
    #expect(rig.replicator?.status.error != nil)
    try rig.append(1)
    try rig.copyAll()
    try expectEqual(rig.check().size, 4)
    try expectEqual(rig.check().unnamedKeys.count, 1)
    rig.store.clearScript()
    #expect(rig.wait { rig.replicator?.status.replacedCount == 0 })
    try rig.expectWhole()
  }

  @Test func aStartFindsWhatAnEarlierProcessCouldNotDelete() throws {
    let rig = try ReplicationRig(block: 1_000_000)
    try rig.append(3)
    try rig.copyAll()
    rig.store.setScript { call in
      call.operation == .delete || call.operation == .put && call.key.hasPrefix("steps/")
        ? .fails(.denied) : .happens
    }
    _ = try KeyStore(rig.directory.reread()).create(isFurther: false)
    try rig.seal()
    try rig.copyAll()
    var check = try rig.check()
    #expect(!check.unnamedKeys.isEmpty)
    #expect(!check.supersededSteps.isEmpty)
    rig.stop()
    // Keys that do not have the form of a copy's keys belong to somebody else.
    rig.content.objects["blocks/notes.txt"] = [1]
    rig.content.objects["other/00000000000000000000"] = [2]
    rig.content.objects[
      "blocks/00000000000000000000-\(String(repeating: "a", count: 64)).jsonl.gz"] = [3]
    try rig.copyAll()
    expectEqual(rig.content.objects["blocks/notes.txt"], [1])
    expectEqual(rig.content.objects["other/00000000000000000000"], [2])
    rig.content.objects["blocks/notes.txt"] = nil
    rig.content.objects["other/00000000000000000000"] = nil
    check = try rig.check()
    expectEqual(check.unnamedKeys, [])
    try rig.expectWhole()
  }

  @Test func aRestartReadsNoSegmentAgainWhoseDigestIsKnown() throws {
    let rig = try ReplicationRig()
    try rig.append(60)
    try rig.seal()
    try rig.copyAll()
    rig.stop()
    let path = rig.directory.path + "/replication/segments"
    let known = try String(contentsOfFile: path, encoding: .utf8)
    expectEqual(known.split(separator: "\n").count, (try rig.check()).segments.count)
    try rig.copyAll()
    #expect(rig.store.calls.allSatisfy { $0.operation != .put })
    rig.stop()
    // Without the file, digests are computed, and nothing is stored again.
    try FileManager.default.removeItem(atPath: path)
    try rig.copyAll()
    #expect(rig.store.calls.allSatisfy { $0.operation != .put })
    rig.stop()
    #expect(try String(contentsOfFile: path, encoding: .utf8).isEmpty == false)
  }
}
