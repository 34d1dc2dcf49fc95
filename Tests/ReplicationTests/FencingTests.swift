// Two writers of one copy: only one continues, and the other appends nothing more.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite(.bounded) struct FencingTests {
  /// Takes over as `promote` does: a complete step of the next epoch.
  static func takeOver(_ rig: ReplicationRig) throws -> Step {
    let sequence = StepSequence(rig.content)
    let state = try #require(try sequence.state())
    var step = Step(
      number: state.newest.number + 1, epoch: state.newest.epoch + 1, writer: .random(),
      ledger: state.newest.ledger, atMs: Timestamp.now(), previous: state.newestSHA256,
      size: state.size, root: state.root)
    step.isComplete = true
    step.identity = state.identity
    step.segments = state.segments
    step.blocks = state.blocks
    step.checkpoints = state.checkpoints
    step.earlierFrames = state.frames
    try expectEqual(rig.content.create(step.key, .bytes(step.header)), .stored)
    return step
  }

  private static func isFenced(_ rig: ReplicationRig) -> Bool {
    if case .fenced = rig.replicator?.status.ending { true } else { false }
  }

  /// A copy of three events, with a fourth event's step sent but not yet stored or lost.
  private static func withStepUnderWay(_ fate: MemoryStore.Fate) throws -> ReplicationRig {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.copyAll()
    rig.store.setScript { $0.operation == .create ? fate : .happens }
    try rig.append(1)
    #expect(rig.store.waitForHeld(1))
    return rig
  }

  @Test func aWriterThatFindsAnotherEpochStopsAndSaysWho() throws {
    let rig = try ReplicationRig()
    let writer = try rig.openWriter()
    rig.options.onFenced = { error in writer.refuseAppends(error) }
    try rig.append(3)
    try rig.copyAll()
    let taken = try Self.takeOver(rig)
    try rig.append(1)
    #expect(rig.wait { writer.failure != nil })
    let error = #expect(throws: LedgerError.self) { try rig.append(1) }
    expectEqual(error?.kind, .standby)
    #expect(error?.cause.contains("step \(taken.number), epoch 2") == true)
    let note = try #require(try Standby(of: rig.directory))
    expectEqual(note.reason, .fenced)
    expectEqual(note.epoch, 2)
    expectEqual(rig.replicator?.status.mode, .fenced)
    #expect(rig.replicator?.status.ending?.description.contains("epoch 2") == true)
    try? rig.closeWriter()
    let refusal = #expect(throws: LedgerError.self) { try LedgerWriter.open(rig.directory) }
    expectEqual(refusal?.kind, .standby)
    try expectEqual(rig.check().size, 3)
  }

  @Test func aStartAfterATakeOverIsFenced() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.copyAll()
    rig.stop()
    _ = try Self.takeOver(rig)
    let opening = try rig.start().waitUntilOpen(limitMs: 120_000)
    guard case .ended(.fenced(let step)) = opening else {
      Issue.record("it is \(opening)")
      return
    }
    expectEqual(step.epoch, 2)
    #expect(try Standby(of: rig.directory) != nil)
  }

  @Test func aPutThatIsUnderWayDuringATakeOverIsRefused() throws {
    let rig = try Self.withStepUnderWay(.waits)
    _ = try Self.takeOver(rig)
    rig.store.clearScript()
    rig.store.release()
    #expect(rig.wait { Self.isFenced(rig) })
    try expectEqual(rig.check().epoch, 2)
  }

  @Test func aPutThatArrivesBeforeATakeOverIsPartOfIt() throws {
    let rig = try Self.withStepUnderWay(.isLate)
    // The process dies, but the put arrives.
    let store = rig.store
    rig.stop()
    store.release()
    let taken = try Self.takeOver(rig)
    expectEqual(taken.size, 4)
  }

  @Test func anAnswerThatWasLostIsRecognised() throws {
    let rig = try ReplicationRig()
    let count = Monitor(0)
    rig.script = { call in
      guard call.operation == .create else { return .happens }
      // Each first attempt is stored, but its response is lost.
      return count.withLock { count in
        count += 1
        return count % 2 == 1 ? .happensButFails(.unavailable) : .happens
      }
    }
    try rig.append(5)
    try rig.copyAll()
    try rig.append(5)
    try rig.copyAll()
    #expect(!Self.isFenced(rig))
    try rig.expectWhole()
  }

  @Test func aPutOfAnEarlierProcessThatArrivesLateIsTakenOver() throws {
    let rig = try Self.withStepUnderWay(.isLate)
    let late = rig.store
    rig.stop()
    // The next process reads the copy before the put arrives, and makes a step with the same number.
    try rig.append(1)
    rig.script = { call in
      if call.operation == .create { late.release() }
      return .happens
    }
    try rig.copyAll()
    #expect(!Self.isFenced(rig))
    try expectEqual(rig.check().size, 5)
    try rig.expectWhole()
  }

  @Test func ofTwoReplicatorsThatBeginACopyOneWins() throws {
    for _ in 0..<5 {
      let first = try ReplicationRig()
      try first.append(4)
      try first.closeWriter()
      let second = try ReplicationRig(first.content, copyOf: first)
      try first.start()
      try second.start()
      #expect(first.wait { Self.ended(first) || Self.ended(second) })
      let winner = Self.ended(first) ? second : first
      #expect(!Self.ended(winner))
      try winner.copyAll()
      #expect(Self.ended(first) != Self.ended(second))
      try winner.expectWhole()
      second.stop()
      first.stop()
    }
  }

  private static func ended(_ rig: ReplicationRig) -> Bool {
    rig.replicator?.status.ending != nil
  }

  @Test func aCopiedDirectoryAndItsOriginalNeverBothWin() throws {
    let first = try ReplicationRig()
    try first.append(3)
    try first.copyAll()
    try first.closeWriter()
    first.stop()
    let second = try ReplicationRig(first.content, copyOf: first)
    let firstWriter = try first.openWriter()
    let secondWriter = try second.openWriter()
    first.options.onFenced = { firstWriter.refuseAppends($0) }
    second.options.onFenced = { secondWriter.refuseAppends($0) }
    try first.start()
    try second.start()
    #expect(first.wait { first.replicator?.status.mode == .copying })
    #expect(second.wait { second.replicator?.status.mode == .copying })
    try first.append(1, byteCount: 50)
    try second.append(1, byteCount: 60)
    #expect(first.wait { Self.isFenced(first) || Self.isFenced(second) })
    let (winner, loser) = Self.isFenced(first) ? (second, first) : (first, second)
    #expect(!Self.isFenced(winner))
    let losing = try loser.openWriter()
    #expect(loser.wait { losing.failure != nil })
    #expect(throws: LedgerError.self) { try loser.append(1) }
    try winner.copyAll()
    try winner.expectWhole()
  }

  // MARK: Copies that cannot be continued

  private func refusal(_ rig: ReplicationRig) throws -> String {
    let opening = try rig.start().waitUntilOpen(limitMs: 120_000)
    guard case .ended(let ending) = opening else { return "\(opening)" }
    let cause = ending.description
    // A server may continue: nothing was taken over.
    #expect(try Standby(of: rig.directory) == nil)
    #expect(rig.refusals.withLock { $0.isEmpty })
    return cause
  }

  @Test func anEmptiedTargetIsRefused() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.copyAll()
    rig.stop()
    rig.content.objects = [:]
    #expect(try refusal(rig).contains("remove the folder 'replication'"))
    expectEqual(rig.content.keys, [])
  }

  @Test func aCopyOfAnotherLedgerIsRefused() throws {
    let other = try ReplicationRig()
    try other.copyAll()
    let rig = try ReplicationRig(other.content)
    #expect(try refusal(rig).contains("another ledger"))
  }

  @Test func aCopyThatThisDirectoryHasNotWrittenIsRefused() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.copyAll()
    rig.stop()
    try FileManager.default.removeItem(atPath: rig.directory.path + "/replication")
    #expect(try refusal(rig).contains("promote"))
  }

  @Test func aCopyThatHoldsMoreThanTheDiskIsNeverOverwritten() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.closeWriter()
    let earlier = try ReplicationRig(rig.content, copyOf: rig)
    try rig.append(2)
    try rig.copyAll()
    rig.stop()
    try FileManager.default.copyItem(
      atPath: rig.directory.path + "/replication",
      toPath: earlier.directory.path + "/replication")
    let before = rig.content.objects
    #expect(try refusal(earlier).contains("restore"))
    expectEqual(rig.content.objects, before)
  }

  @Test func aCopyOfOtherEventsIsRefused() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    try rig.closeWriter()
    let other = try ReplicationRig(rig.content, copyOf: rig)
    try rig.append(2)
    try rig.copyAll()
    rig.stop()
    try FileManager.default.copyItem(
      atPath: rig.directory.path + "/replication", toPath: other.directory.path + "/replication")
    try other.append(3, byteCount: 20)
    #expect(try refusal(other).contains("events that differ"))
  }

  @Test func aStoreThatIgnoresConditionsIsRefused() throws {
    let rig = try ReplicationRig()
    rig.options.probe = ReplicatorOptions().probe
    rig.content.ignoresConditions = true
    try rig.append(3)
    #expect(try refusal(rig).contains("If-None-Match"))
    #expect(rig.content.keys.allSatisfy { !$0.hasPrefix("steps/") })
  }
}
