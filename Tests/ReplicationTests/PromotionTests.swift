// Taking over a copy: from a restored ledger, from a ledger that was cut off, against a running writer, and after
// crashes.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite struct PromotionTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func restored(
    _ store: MemoryStore, at size: Int? = nil, as name: String = "restored",
    storage: any Storage = PosixStorage()
  ) throws -> LedgerDirectory {
    let path = storage is PosixStorage ? temporary.path(name) : "/\(name)"
    var restore = CopyRestore()
    (restore.size, restore.storage, restore.threadCount) = (size, storage, 1)
    _ = try restore.run(from: RetryingStore(store, limitMs: 500), to: path)
    return try LedgerDirectory.open(path: path, storage: storage)
  }

  @discardableResult
  private func promote(
    _ directory: LedgerDirectory, _ store: MemoryStore
  ) throws -> Promotion.Report {
    var promotion = Promotion()
    promotion.threadCount = 1
    return try promotion.run(directory, RetryingStore(store, limitMs: 500))
  }

  private func newest(_ store: MemoryStore) throws -> CopyState {
    try #require(try StepSequence(store).state())
  }

  /// A ledger, its copy, and the ledger that continues it.
  private func copied(_ eventCount: Int = 27) throws -> (LedgerFixture, MemoryStore, TestCopy) {
    let ledger = try filledLedger(eventCount: eventCount)
    let store = MemoryStore()
    let copy = TestCopy(of: ledger.directory, in: store)
    try copy.copyAll()
    return (ledger, store, copy)
  }

  /// Sends the old writer's next step, whose put hangs in the network until the returned store releases it.
  private func storeWithStepUnderWay(
    of ledger: LedgerFixture, _ copy: TestCopy, _ store: MemoryStore
  ) throws -> MemoryStore {
    let stale = MemoryStore(sharing: store)
    stale.setScript { $0.key.hasPrefix("steps/") && $0.operation == .create ? .isLate : .happens }
    let zombie = TestCopy(of: ledger.directory, in: stale, writer: copy.writer, after: copy.state)
    #expect(throws: ObjectStoreError.self) { try zombie.copyFrames() }
    return stale
  }

  // MARK: Accepted

  @Test func aRestoredLedgerBeginsAnEpochAndMayAppend() throws {
    let (_, store, copy) = try copied()
    let directory = try restored(store)
    let before = try newest(store)
    let report = try promote(directory, store)
    let after = try newest(store)
    expectEqual(report.step, after.newest)
    expectEqual(report.previous.writer, copy.writer)
    expectEqual(report.localSize, 27)
    expectEqual(after.newest.number, before.newest.number + 1)
    expectEqual(after.newest.epoch, 2)
    #expect(after.newest.isComplete)
    #expect(after.segments == before.segments && after.blocks == before.blocks)
    expectEqual(after.frames, before.frames)
    try expectEqual(
      ReplicationRecord(of: directory), ReplicationRecord(after.newest, sha256: after.newestSHA256))
    #expect(try Standby(of: directory) == nil)
    let writer = try LedgerWriter.open(directory)
    expectEqual(writer.nextPosition, 27)
    try writer.close()
  }

  @Test func whatTheWriterCopiedMeanwhileIsFetched() throws {
    let (ledger, store, copy) = try copied(10)
    let directory = try restored(store)
    try ledger.append(events(10..<40))
    try copy.copyAll()
    try ledger.append(events(40..<42))
    try copy.copyFrames()
    try promote(directory, store)
    try expectEqual(files(of: directory.path), files(of: ledger.path))
    #expect(try isWhole(directory))
  }

  @Test(arguments: [0, 1, 7, 12, 26])
  func aLedgerThatWasRestoredUpToAPositionCatchesUp(position: Int) throws {
    let (ledger, store, _) = try copied()
    let directory = try restored(store, at: position)
    let report = try promote(directory, store)
    expectEqual(report.localSize, position)
    try expectEqual(files(of: directory.path), files(of: ledger.path))
    #expect(try isWhole(directory))
  }

  @Test func oneThatWasCutOffAndHoldsNothingAloneTakesOverAgain() throws {
    let (ledger, store, copy) = try copied()
    let state = try #require(copy.state)
    try ReplicationRecord(state.newest, sha256: state.newestSHA256).write(to: ledger.directory)
    let other = try restored(store)
    try promote(other, store)
    let writer = try LedgerWriter.open(other)
    for event in events(27..<33) { _ = try writer.append(event.drafts) }
    try writer.close()
    let record = try #require(try ReplicationRecord(of: other))
    let second = TestCopy(
      of: other, in: store, writer: record.writer, epoch: 2, after: try newest(store))
    try second.copyAll()
    try Standby(reason: .fenced, step: 3, epoch: 2).write(to: ledger.directory)
    let report = try promote(ledger.directory, store)
    expectEqual(report.localSize, 27)
    expectEqual(report.step.epoch, 3)
    try expectEqual(root(of: ledger.directory), root(of: other))
    #expect(try isWhole(ledger.directory))
    #expect(throws: TestCopy.Failure.self) { try second.write { _ in nil } }
  }

  @Test func checkpointsKeysAndFormatAreTakenOver() throws {
    let (ledger, store, copy) = try copied(10)
    let directory = try restored(store)
    _ = try KeyStore(ledger.directory).create(isFurther: false)
    let signed = try LedgerDirectory.open(path: ledger.path)
    _ = try CheckpointStore(signed).sign(try LogReader(signed))
    try copy.copyFiles()
    try promote(directory, store)
    let promoted = try directory.reread()
    expectEqual(promoted.identity, signed.identity)
    try expectEqual(CheckpointStore(promoted).sizes(), [10])
    try expectEqual(SignedHeads(of: promoted), SignedHeads(of: signed))
  }

  // MARK: Refused

  @Test func aLedgerWithEventsOfItsOwnIsRefused() throws {
    let (ledger, store, _) = try copied()
    let other = try restored(store)
    try promote(other, store)
    try ledger.append(events(100..<103))
    let before = try files(of: ledger.path)
    #expect(throws: CopyError.diverged(store: store.name, local: 30, copied: 27)) {
      try promote(ledger.directory, store)
    }
    try expectEqual(root(of: ledger.directory), root(of: ledger.directory))
    try expectEqual(
      files(of: ledger.path).filter { $0.key.hasPrefix("log/0") },
      before.filter { $0.key.hasPrefix("log/0") })
    try expectEqual(newest(store).newest.epoch, 2)
  }

  @Test func otherEventsAtTheSamePositionsAreRefused() throws {
    let (ledger, store, _) = try copied()
    let other = try restored(store)
    try promote(other, store)
    let writer = try LedgerWriter.open(other)
    for event in events(200..<220) { _ = try writer.append(event.drafts) }
    try writer.close()
    let record = try #require(try ReplicationRecord(of: other))
    try TestCopy(of: other, in: store, writer: record.writer, epoch: 2, after: try newest(store))
      .copyAll()
    try ledger.append(events(100..<103))
    #expect(throws: CopyError.diverged(store: store.name, local: 30, copied: 47)) {
      try promote(ledger.directory, store)
    }
    try expectEqual(size(of: ledger.directory), 30)
    #expect(try isWhole(ledger.directory))
    // Nothing is left behind, and a second attempt is refused too.
    let second = #expect(throws: CopyError.self) { try promote(ledger.directory, store) }
    expectEqual(second?.exitCode, .standby)
  }

  @Test func anotherLedgersCopyIsRefused() throws {
    let (_, store, _) = try copied()
    let other = try LedgerFixture(id: 2)
    #expect(throws: CopyError.otherLedger(store: store.name)) {
      try promote(other.directory, store)
    }
    #expect(throws: CopyError.noCopy(store: "memory://test")) {
      try promote(other.directory, MemoryStore())
    }
  }

  @Test func aLedgerThatIsServedIsRefused() throws {
    let (ledger, store, _) = try copied()
    let writer = try LedgerWriter.open(ledger.directory)
    defer { try? writer.close() }
    #expect(throws: LedgerError.self) { try promote(ledger.directory, store) }
    #expect(try Standby(of: ledger.directory) == nil)
  }

  @Test func aCopyThatIsNotWholeIsRefused() throws {
    let (ledger, store, copy) = try copied(10)
    let directory = try restored(store)
    try ledger.append(events(10..<40))
    try copy.copyAll()
    let segment = try #require(copy.state?.segments.last)
    store.objects[segment.key] = nil
    let error = #expect(throws: CopyError.self) { try promote(directory, store) }
    expectEqual(error?.exitCode, .corrupted)
    try expectEqual(newest(store).newest.epoch, 1)
    #expect(try Standby(of: directory) != nil)
  }

  // MARK: Repetition

  @Test func promotingTwiceDoesNothingMore() throws {
    let (_, store, _) = try copied()
    let directory = try restored(store)
    try promote(directory, store)
    let before = try newest(store)
    let report = try promote(directory, store)
    #expect(report.wasOwner)
    try expectEqual(newest(store), before)
  }

  @Test func afterEveryFailureOfTheStoreTheSameCommandEndsWhole() throws {
    let (ledger, store, copy) = try copied(10)
    let objects = store.objects
    try ledger.append(events(10..<24))
    try copy.copyAll()
    let later = store.objects
    let counted = MemoryStore()
    counted.objects = objects
    let first = try restored(counted, as: "counted")
    counted.objects = later
    counted.forgetCalls()
    try promote(first, counted)
    let callCount = counted.calls.count
    #expect(callCount > 10)
    for call in 0..<callCount {
      for isLost in [false, true] {
        let fresh = MemoryStore()
        fresh.objects = objects
        let directory = try restored(fresh, as: "\(call)-\(isLost)")
        fresh.objects = later
        fresh.forgetCalls()
        let failing = call
        fresh.setScript {
          if $0.index != failing { return .happens }
          return isLost ? .happensButFails(.denied) : .fails(.denied)
        }
        _ = try? promote(directory, fresh)
        fresh.clearScript()
        try promote(directory, fresh)
        let state = try newest(fresh)
        expectEqual(state.newest.epoch, 2, "call \(call)")
        try expectEqual(ReplicationRecord(of: directory)?.writer, state.newest.writer)
        #expect(try Standby(of: directory) == nil)
        try expectEqual(files(of: directory.path), files(of: ledger.path), "call \(call)")
      }
    }
  }

  @Test func afterACrashAtAnyCallOfTheDiskTheSameCommandEndsWhole() throws {
    let (ledger, store, copy) = try copied(10)
    let objects = store.objects
    try ledger.append(events(10..<24))
    try copy.copyAll()
    let later = store.objects
    let current = Monitor(MemoryStore())
    let operation = CrashedOperation(
      "promote",
      prepare: {
        let fresh = MemoryStore()
        fresh.objects = objects
        let storage = FaultyStorage()
        var restore = CopyRestore()
        (restore.storage, restore.threadCount) = (storage, 1)
        _ = try restore.run(from: RetryingStore(fresh), to: "/ledger")
        fresh.objects = later
        current.withLock { $0 = fresh }
        return storage
      },
      run: { storage in
        let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
        var promotion = Promotion()
        promotion.threadCount = 1
        _ = try promotion.run(directory, RetryingStore(current.withLock { $0 }))
      },
      state: { storage in
        let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
        if try Standby(of: directory) != nil { return "standby" }
        let report = try LogAudit(directory, workers: 0).run()
        let record = try ReplicationRecord(of: directory)
        return "\(report.isWhole) \(report.size) \(record?.epoch ?? 0)"
      })
    let (problems, pointCount) = try operation.problems(seeds: 1)
    expectEqual(problems, [])
    #expect(pointCount > 50)
  }

  // MARK: A running writer

  @Test func aStepThatTheWriterMakesFirstIsReadBeforeTakingOver() throws {
    let (ledger, store, copy) = try copied()
    let directory = try restored(store)
    let promoter = MemoryStore(sharing: store)
    let count = Monitor(0)
    let moves = Monitor({ (number: Int) throws in
      try ledger.append(events(100 + number..<101 + number))
      try copy.copyFrames()
    })
    promoter.setScript { call in
      guard call.operation == .create, call.key.hasPrefix("steps/") else { return .happens }
      let number = count.withLock { count in
        count += 1
        return count
      }
      // Often enough that the last attempts take the step before the events.
      if number <= 7 { try? moves.withLock { try $0(number) } }
      return .happens
    }
    let report = try promote(directory, promoter)
    expectEqual(report.step.size, 34)
    try expectEqual(root(of: directory), root(of: ledger.directory))
    #expect(try isWhole(directory))
    #expect(throws: TestCopy.Failure.self) { try copy.write { _ in nil } }
  }

  @Test func aPutUnderWayThatArrivesAfterThePromotionIsRefused() throws {
    let (ledger, store, copy) = try copied()
    let directory = try restored(store)
    try ledger.append(events(27..<28))
    let stale = try storeWithStepUnderWay(of: ledger, copy, store)
    try promote(directory, store)
    expectEqual(stale.release(), [.exists])
    try expectEqual(newest(store).newest.epoch, 2)
    try expectEqual(newest(store).size, 27)
  }

  @Test func aPutUnderWayThatArrivesBeforeThePromotionIsRead() throws {
    let (ledger, store, copy) = try copied()
    let directory = try restored(store)
    try ledger.append(events(27..<28))
    let stale = try storeWithStepUnderWay(of: ledger, copy, store)
    let promoter = MemoryStore(sharing: store)
    promoter.setScript { call in
      if call.operation == .create { stale.release() }
      return .happens
    }
    let report = try promote(directory, promoter)
    expectEqual(report.step.size, 28)
    try expectEqual(root(of: directory), root(of: ledger.directory))
  }

  @Test func ofTwoThatPromoteAtOnceOneIsTold() throws {
    let (_, store, _) = try copied()
    let (first, second) = (try restored(store, as: "a"), try restored(store, as: "b"))
    let promoter = MemoryStore(sharing: store)
    let other = Monitor({ () throws in
      var promotion = Promotion()
      promotion.threadCount = 1
      _ = try promotion.run(second, RetryingStore(store))
    })
    promoter.setScript { call in
      if call.operation == .create { try? other.withLock { try $0() } }
      return .happens
    }
    let error = #expect(throws: CopyError.self) { try promote(first, promoter) }
    expectEqual(error?.exitCode, .standby)
    #expect(try Standby(of: first) != nil)
    #expect(try Standby(of: second) == nil)
    try expectEqual(newest(store).newest.epoch, 2)
  }
}
