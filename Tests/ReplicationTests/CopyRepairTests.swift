// A writer repairs its copy after objects were lost.
import Base
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct CopyRepairTests {
  /// A copy with segments, blocks, frames of several steps, and a complete step after the first one.
  private func copied() throws -> ReplicationRig {
    let rig = try ReplicationRig(block: 1_500, segment: 6_000)
    rig.options.stepsBetweenComplete = 9
    for round in 0..<8 {
      try rig.append(4)
      try rig.copyAll()
      if round < 6 { try rig.seal() }
    }
    // The number of steps depends on which objects were deleted, and when.
    while try complete(rig).newest < complete(rig).complete + 2 {
      try rig.append(1)
      try rig.copyAll()
    }
    rig.stop(deadlineMs: 10_000)
    return rig
  }

  private func complete(_ rig: ReplicationRig) throws -> (complete: Int, newest: Int) {
    let state = try #require(try StepSequence(rig.content).state())
    return (state.newest.number - state.stepsSinceComplete, state.newest.number)
  }

  /// Expects that the copy, and a ledger restored from it, hold what is on disk, though in other tails.
  private func expectWhole(_ rig: ReplicationRig) throws {
    try rig.expectWhole(tails: false)
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    let report = try CopyRestore().run(from: RetryingStore(rig.content, limitMs: 500), to: path)
    let restored = try LedgerDirectory.open(path: path)
    let same = try root(of: restored) == root(of: rig.directory)
    #expect(same && report.missing.isEmpty)
    var options = rig.writerOptions
    options.ignoresStandby = true
    try LedgerWriter.open(restored, options: options).close()
    #expect(try isWhole(restored))
  }

  // MARK: Steps

  @Test(arguments: ObjectLoss.allCases)
  func aLostStepIsReplacedByACompleteOne(loss: ObjectLoss) throws {
    let rig = try copied()
    let whole = rig.content.objects
    let (complete, newest) = try complete(rig)
    #expect(complete > 0 && newest > complete + 1)
    let record = try #require(try ReplicationRecord(of: rig.directory))
    for number in complete...newest {
      rig.content.objects = whole
      try record.write(to: rig.directory)
      loss.happen(to: CopyLayout.stepKey(number), in: rig.content)
      try rig.copyAll()
      rig.stop()
      // A step that cannot be read counts as lost.
      if loss != .lost, loss != .emptied { rig.content.objects[CopyLayout.stepKey(number)] = nil }
      try expectWhole(rig)
      let since = try #require(try StepSequence(rig.content).state()).stepsSinceComplete
      #expect(since <= 1, "\(number)")
      #expect(rig.notices.withLock { $0.contains { $0.contains(CopyLayout.stepKey(number)) } })
    }
  }

  @Test func manyLostStepsAtOnceAreReplacedToo() throws {
    let rig = try copied()
    let (complete, newest) = try complete(rig)
    for number in complete..<newest { rig.content.objects[CopyLayout.stepKey(number)] = nil }
    try rig.append(3)
    try rig.copyAll()
    try expectWhole(rig)
  }

  @Test func anEarlierGapIsLeftAlone() throws {
    let rig = try copied()
    #expect(try complete(rig).complete > 1)
    rig.content.objects[CopyLayout.stepKey(1)] = nil
    let stepCount = rig.content.keys.count { $0.hasPrefix("steps/") }
    try rig.copyAll()
    #expect(rig.content.keys.count { $0.hasPrefix("steps/") } <= stepCount + 1)
    try rig.expectWhole()
  }

  @Test func allNewestStepsThatWereConfirmedAreMadeAgainInTheFreePlaces() throws {
    let rig = try copied()
    let (complete, newest) = try complete(rig)
    for number in complete...newest { rig.content.objects[CopyLayout.stepKey(number)] = nil }
    try rig.copyAll()
    try expectWhole(rig)
    let step = try #require(Step.parse(rig.content.objects[CopyLayout.stepKey(complete)] ?? []))
    #expect(step.step.isComplete)
  }

  @Test func aDamagedStepThatMayBeAnothersIsNotPassedOver() throws {
    let rig = try copied()
    let (_, newest) = try complete(rig)
    // An unreadable step that this writer never confirmed.
    rig.content.objects[CopyLayout.stepKey(newest + 1)] = [0x7B]
    let keys = rig.content.keys
    let replicator = try rig.start()
    guard case .ended(.refused(let cause)) = replicator.waitUntilOpen(limitMs: 120_000) else {
      Issue.record("it went on")
      return
    }
    #expect(cause.contains(CopyLayout.stepKey(newest + 1)))
    expectEqual(rig.content.keys, keys)
  }

  @Test func anotherWritersStepBehindAGapFencesAllTheSame() throws {
    let rig = try copied()
    let (_, newest) = try complete(rig)
    let state = try #require(try StepSequence(rig.content).state())
    let step = state.completeStep(epoch: 2, writer: .random(), atMs: 0)
    rig.content.objects[step.key] = step.header
    rig.content.objects[CopyLayout.stepKey(newest)] = nil
    let replicator = try rig.start()
    guard case .ended(.fenced) = replicator.waitUntilOpen(limitMs: 120_000) else {
      Issue.record("it went on")
      return
    }
  }

  @Test func aReaderThatKnewTheLostStepsGoesOnFromTheCompleteOne() throws {
    let rig = try copied()
    let newest = try complete(rig).newest
    let source = try #require(try CopySource(RetryingStore(rig.content, limitMs: 500)))
    rig.content.objects[CopyLayout.stepKey(newest)] = nil
    try rig.append(5)
    try rig.copyAll()
    #expect(try source.catchUp())
    expectEqual(source.state, (try StepSequence(rig.content).state()))
  }

  @Test func aDiskWithFewerEventsThanWereConfirmedIsRefusedThoughTheStepsAreLost() throws {
    let rig = try copied()
    let newest = try complete(rig).newest
    var record = try #require(try ReplicationRecord(of: rig.directory))
    record.size += 1
    try record.write(to: rig.directory)
    rig.content.objects[CopyLayout.stepKey(newest)] = nil
    let replicator = try rig.start()
    guard case .ended(.contradicted) = replicator.waitUntilOpen(limitMs: 120_000) else {
      Issue.record("it went on")
      return
    }
  }
}
