// A copy that loses objects behind the writer's back: the loss is noticed and repaired, and nothing is acknowledged
// until then.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct CopySweepTests {
  /// A copy with segments, blocks, checkpoints, open work and frames of several steps.
  private func copied() throws -> ReplicationRig {
    let rig = try ReplicationRig(block: 600, segment: 2_000)
    rig.options.stepsBetweenComplete = 9
    _ = try KeyStore(rig.directory).create(isFurther: false)
    let webhooks = try rig.directory.root.madeFolder("webhooks")
    try webhooks.replaceFile("0a1b2c3d-0000-4000-8000-000000000000.json", with: Array("{}".utf8))
    for round in 0..<8 {
      try rig.append(4)
      try rig.copyAll()
      if round < 6 { try rig.seal() }
      if round == 3 {
        let directory = try LedgerDirectory.open(path: rig.directory.path)
        _ = try CheckpointStore(directory).sign(try LogReader(directory))
      }
    }
    // The number of steps depends on which objects were deleted, and when.
    while try state(rig).frames.count < 2 || state(rig).stepsSinceComplete < 2 {
      try rig.append(1)
      try rig.copyAll()
    }
    return rig
  }

  private func state(_ rig: ReplicationRig) throws -> CopyState {
    try #require(try StepSequence(rig.content).state())
  }

  private func expectRestorable(_ rig: ReplicationRig, _ what: String) throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    _ = try CopyRestore().run(from: RetryingStore(rig.content, limitMs: 500), to: path)
    let same = try root(of: LedgerDirectory.open(path: path)) == root(of: rig.directory)
    #expect(same, "\(what)")
  }

  // MARK: Findings of a sweep

  @Test(arguments: [ObjectLoss.lost, .emptied, .replaced])
  func whatIsMissingOrOfAnotherSizeIsStoredAgainByTheSweep(loss: ObjectLoss) throws {
    let rig = try copied()
    rig.stop(deadlineMs: 10_000)
    let first = try state(rig)
    #expect(!first.segments.isEmpty && !first.blocks.isEmpty && first.checkpoints.count == 1)
    #expect(first.work != nil && first.frames.count > 1)
    let keys = first.namedKeys.sorted() + first.frames.map { CopyLayout.stepKey($0.step) }
    for key in keys where rig.content.objects[key] != nil {
      let state = try state(rig)
      let isNamed = state.namedKeys.contains(key)
      guard isNamed || state.frames.contains(where: { CopyLayout.stepKey($0.step) == key }) else {
        continue
      }
      loss.happen(to: key, in: rig.content)
      rig.notices.withLock { $0 = [] }
      try rig.copyAll()
      let status = try #require(rig.replicator).status
      #expect(status.lostCount >= 1 && status.missingCount == 0, "\(key)")
      #expect(status.wholeAtMs != nil)
      #expect(rig.notices.withLock { $0.contains { $0.contains(key) } }, "\(key)")
      rig.stop(deadlineMs: 10_000)
      #expect(try ReplicationRecord(of: rig.directory)?.wholeAtMs != nil)
      if key.hasPrefix("steps/"), loss != .lost { rig.content.objects[key] = nil }
      try rig.expectWhole(tails: false)
      try expectRestorable(rig, key)
    }
  }

  @Test func whatARunningWriterLosesIsFoundByTheNextSweep() throws {
    let rig = try copied()
    rig.stop()
    rig.options.sweepMs = 20
    let replicator = try rig.start()
    let firsts = try state(rig)
    let keys = [
      try #require(firsts.segments.first).key, try #require(firsts.blocks.last).key,
      try #require(firsts.checkpoints.first).key, CopyLayout.identityKey(firsts.identity),
    ]
    for key in keys {
      rig.content.objects[key] = nil
      #expect(rig.wait { rig.content.objects[key] != nil }, "\(key)")
    }
    let newest = try state(rig).newest.number
    rig.content.objects[CopyLayout.stepKey(newest)] = nil
    #expect(
      rig.wait {
        let state = try? StepSequence(rig.content).state()
        return replicator.status.lostCount == keys.count + 1 && replicator.status.missingCount == 0
          && state.map { $0.newest.number >= newest } ?? false
      })
    try rig.append(3)
    rig.options.sweepMs = 3_600_000
    rig.stop(deadlineMs: 10_000)
    try rig.copyAll()
    try rig.expectWhole(tails: false)
  }

  @Test func lossesOfAStoreThatWasWholeBetweenThemDoNotAddUp() throws {
    let rig = try copied()
    rig.stop()
    rig.options.sweepMs = 20
    let replicator = try rig.start()
    let key = try #require(try state(rig).segments.first).key
    for round in 0..<5 {
      rig.content.objects[key] = nil
      let lostAtMs = Timestamp.now()
      let isWhole = rig.wait { (replicator.status.wholeAtMs ?? 0) > lostAtMs }
      #expect(isWhole && rig.content.objects[key] != nil, "\(round)")
    }
    #expect(replicator.status.lostCount >= 5)
    #expect(rig.notices.withLock { !$0.contains { $0.contains("does not keep") } })
  }

  @Test func aStoreThatLostEverythingButTheStepsGetsItAllAgain() throws {
    let rig = try copied()
    rig.stop(deadlineMs: 10_000)
    rig.content.objects = rig.content.objects.filter { $0.key.hasPrefix("steps/") }
    try rig.copyAll()
    try rig.expectWhole(tails: false)
    try expectRestorable(rig, "all")
  }

  @Test func aCheckpointThatIsOnNeitherSideIsLeftOut() throws {
    let rig = try copied()
    rig.stop(deadlineMs: 10_000)
    let checkpoint = try #require(try state(rig).checkpoints.first)
    rig.content.objects[checkpoint.key] = nil
    try FileManager.default.removeItem(
      atPath: rig.directory.path + "/checkpoints/" + CheckpointStore.leafName(size: checkpoint.size)
    )
    try rig.copyAll()
    try expectEqual(state(rig).checkpoints, [])
    try rig.expectWhole(tails: false)
  }

  @Test func aStoreThatKeepsNothingIsSaidToAndTriedNowAndThen() throws {
    let rig = try copied()
    rig.stop(deadlineMs: 10_000)
    let key = try #require(try state(rig).segments.first).key
    rig.content.objects[key] = nil
    // The store reports success, but loses the object.
    let content = rig.content
    rig.script = { call in
      if call.operation == .list { content.objects[key] = nil }
      return .happens
    }
    #expect(throws: LedgerError.self) { try rig.copyAll() }
    let status = try #require(rig.replicator).status
    #expect(status.error?.contains(key) == true)
    #expect(status.wholeAtMs.map { $0 > 0 } ?? true)
  }

  @Test func whatIsLostDuringAnErasureIsStoredAgainSinceTheErasureWaitsForTheCopy() throws {
    for losesStep in [false, true] {
      let rig = try copied()
      try rig.erase(
        [1, 30],
        committed: {
          rig.stop(deadlineMs: 10_000)
          let state = try state(rig)
          rig.content.objects[try #require(state.segments.first).key] = nil
          if let block = state.blocks.first { rig.content.objects[block.key] = nil }
          if losesStep { rig.content.objects[state.newest.key] = nil }
          let replicator = try rig.start()
          #expect(rig.wait { replicator.status.lostCount > 0 })
          let size = try LogReader(rig.directory).head.size
          try replicator.gate(limitMs: 120_000).waitUntilConfirmed(size)
        })
      try rig.copyAll()
      try rig.expectWhole(tails: false)
    }
  }

  // MARK: Contents

  @Test func whatIsFlippedIsFoundByReadingBack() throws {
    let rig = try copied()
    let state = try state(rig)
    let keys =
      state.namedKeys.sorted()
      + ((state.newest.number - state.stepsSinceComplete)...state.newest.number).map(
        CopyLayout.stepKey)
    rig.stop(deadlineMs: 10_000)
    let whole = rig.content.objects
    let record = try #require(try ReplicationRecord(of: rig.directory))
    for key in keys {
      rig.content.objects = whole
      try record.write(to: rig.directory)
      ObjectLoss.flipped.happen(to: key, in: rig.content)
      let replicator = try rig.start()
      #expect(try replicator.copyAll(verifying: 1, giveUpMs: 120_000))
      #expect(replicator.status.lostCount >= 1, "\(key)")
      if key.hasPrefix("steps/") {
        // Steps are read when replication starts.
        rig.content.objects[key] = nil
      } else {
        #expect(replicator.status.verifiedCount > keys.count / 2)
        expectEqual(rig.content.objects[key], whole[key], "\(key)")
      }
      rig.stop(deadlineMs: 10_000)
      try rig.expectWhole(tails: false)
    }
  }

  @Test func aSampleReadsAPart() throws {
    let rig = try copied()
    let replicator = try #require(rig.replicator)
    #expect(try replicator.copyAll(verifying: 0.000_001, giveUpMs: 120_000))
    #expect(replicator.status.verifiedCount < 5)
    #expect(try replicator.copyAll(verifying: 1, giveUpMs: 120_000))
    let all = replicator.status.verifiedCount
    #expect(all > 8)
    expectEqual(replicator.status.lostCount, 0)
  }

  // MARK: Acknowledgements

  @Test func nothingIsAcknowledgedWhileKnownObjectsAreMissing() throws {
    let rig = try copied()
    rig.stop(deadlineMs: 10_000)
    let lost = try #require(try state(rig).segments.first).key
    rig.content.objects[lost] = nil
    rig.script = { $0.operation == .put && $0.key == lost ? .waits : .happens }
    let replicator = try rig.start()
    #expect(rig.wait { replicator.status.missingCount == 1 })
    try rig.append(1)
    let size = try LogReader(rig.directory).head.size
    let gate = replicator.gate(limitMs: 100)
    do {
      try gate.waitUntilConfirmed(size)
      Issue.record("it was acknowledged")
    } catch { expectEqual(error.kind, .unconfirmed) }
    #expect(rig.wait { replicator.status.confirmedSize >= size })
    rig.store.release()
    try replicator.gate(limitMs: 120_000).waitUntilConfirmed(size)
    #expect(rig.content.objects[lost] != nil)
  }
}

@Suite(.bounded) struct CopyMarkTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func store() throws -> String {
    let path = temporary.path("copy")
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return path
  }

  private func replicator(_ rig: ReplicationRig, _ path: String) throws -> Replicator {
    let replicator = Replicator(rig.directory, DirectoryStore(path: path), options: rig.options)
    try replicator.start()
    return replicator
  }

  private func copyAll(_ rig: ReplicationRig, _ path: String) throws {
    let replicator = try replicator(rig, path)
    defer { replicator.stop(deadlineMs: 10_000) }
    #expect(try replicator.copyAll(giveUpMs: 120_000))
  }

  @Test func anUnmountedDiskIsAwayAndNothingIsWrittenInItsPlace() throws {
    let rig = try ReplicationRig()
    let path = try store()
    try rig.append(5)
    let replicator = try replicator(rig, path)
    #expect(try replicator.copyAll(giveUpMs: 120_000))
    #expect(try ReplicationRecord(of: rig.directory)?.copy != nil)
    try FileManager.default.moveItem(atPath: path, toPath: path + "-away")
    _ = try store()
    try rig.append(5)
    #expect(rig.wait { replicator.status.error?.contains("mounted") == true })
    #expect(throws: LedgerError.self) {
      try replicator.gate(limitMs: 50).waitUntilConfirmed(10)
    }
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: path), [])
    // The store is back.
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: path + "-away", toPath: path)
    try replicator.gate(limitMs: 120_000).waitUntilConfirmed(10)
    replicator.stop(deadlineMs: 10_000)
    #expect(
      try CopyAudit().run(rig.directory, RetryingStore(DirectoryStore(path: path)))?.isWhole == true
    )
  }

  @Test func aServerThatStartsWithoutTheDiskWaitsForIt() throws {
    let rig = try ReplicationRig()
    let path = try store()
    try rig.append(5)
    try copyAll(rig, path)
    try FileManager.default.moveItem(atPath: path, toPath: path + "-away")
    _ = try store()
    let replicator = try replicator(rig, path)
    #expect(rig.wait { replicator.status.error?.contains("mounted") == true })
    guard case .notYet = replicator.waitUntilOpen(limitMs: 20) else {
      Issue.record("it went on")
      return
    }
    try expectEqual(FileManager.default.contentsOfDirectory(atPath: path), [])
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: path + "-away", toPath: path)
    expectEqual(replicator.waitUntilOpen(limitMs: 120_000), .copying)
    replicator.stop(deadlineMs: 10_000)
  }

  @Test(arguments: [true, false])
  func aLostMarkIsMadeAgain(isOld: Bool) throws {
    let rig = try ReplicationRig()
    let path = try store()
    try rig.append(5)
    try copyAll(rig, path)
    try FileManager.default.removeItem(atPath: path + "/copy-id")
    var record = try #require(try ReplicationRecord(of: rig.directory))
    let mark = record.copy
    if isOld {
      record.copy = nil
      try record.write(to: rig.directory)
    }
    try rig.append(5)
    try copyAll(rig, path)
    let found = try DirectoryStore(path: path).mark()
    let known = try ReplicationRecord(of: rig.directory)?.copy
    #expect(found != nil && found == known)
    #expect(isOld || found == mark)
  }

  @Test func aMarkThatIsLostWhileAWriterRunsIsMadeAgain() throws {
    let rig = try ReplicationRig()
    let path = try store()
    try rig.append(5)
    let replicator = try replicator(rig, path)
    #expect(try replicator.copyAll(giveUpMs: 120_000))
    try FileManager.default.removeItem(atPath: path + "/copy-id")
    try rig.append(5)
    try replicator.gate(limitMs: 120_000).waitUntilConfirmed(10)
    let found = try DirectoryStore(path: path).mark()
    #expect(found != nil)
    replicator.stop(deadlineMs: 10_000)
  }

  @Test func anotherCopyInThePlaceIsAwayToo() throws {
    let (rig, other) = (try ReplicationRig(), try ReplicationRig())
    let path = try store()
    try rig.append(5)
    try copyAll(rig, path)
    try FileManager.default.moveItem(atPath: path, toPath: path + "-away")
    _ = try store()
    try copyAll(other, path)
    let replicator = try replicator(rig, path)
    #expect(rig.wait { replicator.status.error?.contains("another copy") == true })
    replicator.stop(deadlineMs: 0)
  }

  @Test func aLedgerThatTakesOverKnowsTheMark() throws {
    let rig = try ReplicationRig()
    let path = try store()
    try rig.append(5)
    try copyAll(rig, path)
    let store = RetryingStore(DirectoryStore(path: path), limitMs: 500)
    _ = try CopyRestore().run(from: store, to: temporary.path("restored"))
    let restored = try LedgerDirectory.open(path: temporary.path("restored"))
    _ = try Promotion().run(restored, RetryingStore(DirectoryStore(path: path), limitMs: 500))
    let (new, old) = (
      try ReplicationRecord(of: restored)?.copy, try ReplicationRecord(of: rig.directory)?.copy
    )
    #expect(new != nil && new == old)
  }
}
