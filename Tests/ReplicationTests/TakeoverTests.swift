// A takeover with the replicator running: a ledger, its copy, and the ledger that takes over.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct TakeoverTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func restored(
    _ rig: ReplicationRig, at size: Int? = nil, as name: String = "restored"
  ) throws -> LedgerDirectory {
    var restore = CopyRestore()
    restore.size = size
    let path = temporary.path(name)
    _ = try restore.run(from: RetryingStore(MemoryStore(sharing: rig.content)), to: path)
    return try LedgerDirectory.open(path: path)
  }

  private func replicator(_ directory: LedgerDirectory, _ rig: ReplicationRig) throws -> Replicator
  {
    let replicator = Replicator(
      directory, MemoryStore(sharing: rig.content), options: rig.options)
    try replicator.start()
    return replicator
  }

  @Test func theReplicatorGoesOnWhereThePromotionEnds() throws {
    let rig = try ReplicationRig()
    try rig.append(30)
    try rig.copyAll()
    let directory = try restored(rig)
    try rig.append(5)
    try rig.copyAll()
    _ = try Promotion().run(directory, RetryingStore(MemoryStore(sharing: rig.content)))
    let replicator = try replicator(directory, rig)
    defer { replicator.stop(deadlineMs: 0) }
    let writer = try LedgerWriter.open(directory, options: rig.writerOptions)
    for index in 35..<70 { _ = try writer.append([ReplicationRig.draft(index)]) }
    try writer.sealAll()
    #expect(try replicator.copyAll(giveUpMs: 120_000))
    try writer.close()
    #expect(try replicator.copyAll(giveUpMs: 120_000))
    let second = try restored(rig, as: "second")
    try expectEqual(root(of: second), root(of: directory))
    try expectEqual(size(of: second), 70)
    #expect(try isWhole(second))
    // The old writer meets the new epoch.
    try rig.append(1)
    #expect(rig.wait { rig.refusals.withLock { !$0.isEmpty } })
    try expectEqual(Standby(of: rig.directory)?.reason, .fenced)
    let divergence = try #require(
      try Divergence.find(rig.directory, RetryingStore(MemoryStore(sharing: rig.content))))
    expectEqual(divergence.start, 35)
  }

  @Test(arguments: [3, 11, 24]) func afterAnyCutTheReplicatorGoesOn(position: Int) throws {
    let rig = try ReplicationRig()
    try rig.append(30)
    try rig.copyAll()
    let directory = try restored(rig, at: position)
    _ = try Promotion().run(directory, RetryingStore(MemoryStore(sharing: rig.content)))
    let replicator = try replicator(directory, rig)
    defer { replicator.stop(deadlineMs: 0) }
    let writer = try LedgerWriter.open(directory, options: rig.writerOptions)
    for index in 30..<50 { _ = try writer.append([ReplicationRig.draft(index)]) }
    try writer.close()
    #expect(try replicator.copyAll(giveUpMs: 120_000))
    let second = try restored(rig, as: "second")
    try expectEqual(root(of: second), root(of: directory))
    #expect(try isWhole(second))
  }

  @Test func whatAnErasureTookOutStaysOut() throws {
    let rig = try ReplicationRig()
    try rig.append(20)
    try rig.copyAll()
    try rig.erase([3, 15])
    try rig.append(2)
    try rig.copyAll()
    let directory = try restored(rig)
    #expect(try isWhole(directory))
    let report = try LogAudit(directory).run()
    expectEqual(report.redactedCount, 2)
    expectEqual(report.unredactedCount, 0)
    _ = try Promotion().run(directory, RetryingStore(MemoryStore(sharing: rig.content)))
    try expectEqual(LogAudit(directory).run().redactedCount, 2)
  }

  @Test func anErasureThatTheWriterHasOnlyBegunIsNamed() throws {
    let rig = try ReplicationRig()
    try rig.append(20)
    try rig.erase([3])
    try rig.append(2)
    let opening = DataRedacted.Opening(request: .random(), scope: .user, reason: "request")
    _ = try rig.openWriter().append([
      EventDraft(
        type: EventType.dataRedacted.rawValue, version: 1, data: DataRedacted.opening(opening).data)
    ])
    try rig.append(2)
    try rig.copyAll()
    let store = RetryingStore(MemoryStore(sharing: rig.content))
    let path = temporary.path("restored")
    let restored = try CopyRestore().run(from: store, to: path)
    expectEqual(restored.unfinishedErasures.map(\.position), [24])
    expectEqual(restored.unfinishedErasures.map(\.request), [opening.request])
    let promoted = try Promotion().run(try LedgerDirectory.open(path: path), store)
    expectEqual(promoted.unfinishedErasures, restored.unfinishedErasures)
  }

  @Test func aPositionBeforeTheProofOfARedactionIsRefusedWithTheNextThatWorks() throws {
    let rig = try ReplicationRig()
    try rig.append(20)
    try rig.erase([3, 15])
    try rig.append(4)
    try rig.copyAll()
    let size = try size(of: rig.directory)
    // The opening is at 20, the list at 21.
    for position in 0...size {
      let works = position <= 3 || position >= 22
      do {
        let directory = try restored(rig, at: position, as: "at-\(position)")
        #expect(works, "position \(position)")
        try expectEqual(root(of: directory), root(of: rig.directory, at: position))
        #expect(try isWhole(directory))
      } catch CopyError.refused(_, let cause) {
        #expect(!works, "position \(position)")
        #expect(cause.hasSuffix("is 22"), "\(cause)")
      }
    }
  }

  @Test(arguments: [true, false]) func anAuditSeesWhatAnErasureHasNotYetReached(isSealed: Bool)
    throws
  {
    let rig = try ReplicationRig()
    try rig.append(20)
    if isSealed { try rig.seal() }
    try rig.copyAll()
    rig.stop()
    try rig.erase([3])
    let report = try #require(
      try CopyAudit().run(rig.directory, RetryingStore(MemoryStore(sharing: rig.content))))
    expectEqual(report.faults, [])
    expectEqual(report.outdated.count, 1)
    expectEqual(report.lag, 2)
    try rig.copyAll()
    let later = try #require(
      try CopyAudit().run(rig.directory, RetryingStore(MemoryStore(sharing: rig.content))))
    #expect(later.isWhole)
    expectEqual(later.outdated, [])
    expectEqual(later.lag, 0)
  }
}
