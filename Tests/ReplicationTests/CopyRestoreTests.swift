// Restoring a ledger from a copy.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite struct CopyRestoreTests {
  private func restored(
    _ store: MemoryStore, to path: String, _ change: (inout CopyRestore) -> Void = { _ in }
  ) throws -> CopyRestore.Report {
    var restore = CopyRestore()
    change(&restore)
    return try restore.run(from: RetryingStore(store, limitMs: 500), to: path)
  }

  private func copied(
    _ ledger: LedgerFixture, _ body: (TestCopy) throws -> Void = { try $0.copyAll() }
  ) throws -> (MemoryStore, TestCopy) {
    let store = MemoryStore()
    let copy = TestCopy(of: ledger.directory, in: store)
    try body(copy)
    return (store, copy)
  }

  // MARK: The whole copy

  @Test(arguments: [0, 1, 3, 40, 43])
  func isTheOriginalByteForByte(eventCount: Int) throws {
    let ledger = try filledLedger(eventCount: eventCount)
    let (store, _) = try copied(ledger)
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    let report = try restored(store, to: path)
    expectEqual(report.size, eventCount)
    try expectEqual(files(of: path), files(of: ledger.path))
    let directory = try LedgerDirectory.open(path: path)
    #expect(try isWhole(directory))
    try expectEqual(root(of: directory), root(of: ledger.directory))
    #expect(throws: LedgerError.self) { try LedgerWriter.open(directory) }
    try expectEqual(Standby(of: directory)?.reason, .restored)
    #expect(try ReplicationRecord(of: directory) == nil)
  }

  @Test func aCopyThatGrewStepByStepGivesTheSame() throws {
    let ledger = try filledLedger(eventCount: 0)
    let (store, copy) = try copied(ledger)
    for round in 0..<12 {
      try ledger.append(events(round * 4..<round * 4 + 3))
      try copy.copyFrames(perStep: 2)
      if round % 3 == 2 { try copy.copyFiles(complete: round == 5) }
    }
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    _ = try restored(store, to: path)
    let directory = try LedgerDirectory.open(path: path)
    #expect(try isWhole(directory))
    try expectEqual(root(of: directory), root(of: ledger.directory))
    try expectEqual(size(of: directory), size(of: ledger.directory))
  }

  @Test func checkpointsAndHeadsComeToo() throws {
    let ledger = try filledLedger(eventCount: 9)
    _ = try KeyStore(ledger.directory).create(isFurther: false)
    let directory = try LedgerDirectory.open(path: ledger.path)
    let checkpoints = CheckpointStore(directory)
    let first = try checkpoints.sign(try LogReader(directory))
    try ledger.append(events(9..<20))
    _ = try checkpoints.sign(try LogReader(directory))
    let store = MemoryStore()
    try TestCopy(of: directory, in: store).copyAll()
    let temporary = try TemporaryDirectory()
    let report = try restored(store, to: temporary.path("all"))
    expectEqual(report.checkpointCount, 2)
    try expectEqual(files(of: temporary.path("all")), files(of: ledger.path))
    let earlier = try restored(store, to: temporary.path("earlier")) { $0.size = 12 }
    expectEqual(earlier.checkpointCount, 1)
    let restored = try LedgerDirectory.open(path: temporary.path("earlier"))
    try expectEqual(SignedHeads(of: restored), SignedHeads(count: 1, size: 9, root: first.root))
  }

  // MARK: Up to a position

  @Test func everyPositionGivesTheRootOfTheOriginal() throws {
    let ledger = try filledLedger(eventCount: 27)
    let (store, _) = try copied(ledger)
    let temporary = try TemporaryDirectory()
    for position in 0...27 {
      let path = temporary.path("at-\(position)")
      let report = try restored(store, to: path) { $0.size = position }
      let directory = try LedgerDirectory.open(path: path)
      expectEqual(report.size, position)
      try expectEqual(size(of: directory), position)
      #expect(try isWhole(directory), "position \(position)")
      try expectEqual(
        root(of: directory), root(of: ledger.directory, at: position), "position \(position)")
      var options = WriterOptions()
      options.ignoresStandby = true
      try LedgerWriter.open(directory, options: options).close()
    }
  }

  @Test func framesAreCutAtAnEvent() throws {
    let ledger = try LedgerFixture(blockByteCount: 1 << 20)
    _ = try ledger.append(drafts: events(0..<5).flatMap(\.drafts))
    _ = try ledger.append(drafts: events(5..<9).flatMap(\.drafts))
    let (store, _) = try copied(ledger)
    let temporary = try TemporaryDirectory()
    for position in 0...9 {
      let path = temporary.path("at-\(position)")
      _ = try restored(store, to: path) { $0.size = position }
      let directory = try LedgerDirectory.open(path: path)
      try expectEqual(
        root(of: directory), root(of: ledger.directory, at: position), "position \(position)")
      #expect(try isWhole(directory))
    }
  }

  @Test func beyondTheEndIsRefused() throws {
    let (store, _) = try copied(try filledLedger(eventCount: 3))
    let temporary = try TemporaryDirectory()
    let error = #expect(throws: CopyError.self) {
      try restored(store, to: temporary.path("restored")) { $0.size = 4 }
    }
    expectEqual(error?.exitCode, .failed)
  }

  @Test func anotherRunWithAnotherPositionUsesWhatIsThere() throws {
    let ledger = try filledLedger(eventCount: 27)
    let (store, copy) = try copied(ledger)
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    let last = try #require(copy.state?.frames.last)
    let lost = store.objects[CopyLayout.stepKey(last.step)]
    let header = try #require(Step.parse(lost ?? [])?.step.header)
    store.objects[CopyLayout.stepKey(last.step)] = header
    let error = #expect(throws: CopyError.self) { try restored(store, to: path) }
    expectEqual(error?.exitCode, .corrupted)
    #expect(throws: LedgerError.self) { try LedgerDirectory.open(path: path) }
    let report = try restored(store, to: path) { $0.size = 10 }
    #expect(report.fetched.objects <= 1)
    let directory = try LedgerDirectory.open(path: path)
    try expectEqual(root(of: directory), root(of: ledger.directory, at: 10))
    #expect(try isWhole(directory))
  }

  // MARK: Directories

  @Test func aDirectoryWithOtherThingsIsRefused() throws {
    let ledger = try filledLedger(eventCount: 3)
    let (store, _) = try copied(ledger)
    let temporary = try TemporaryDirectory()
    let path = temporary.path("full")
    try FileManager.default.createDirectory(
      atPath: path + "/log", withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    #expect(throws: LedgerError.self) { try restored(store, to: path) }
    #expect(throws: LedgerError.self) { try restored(store, to: ledger.path) }
  }

  @Test func anEmptyStoreHasNoCopy() throws {
    let temporary = try TemporaryDirectory()
    #expect(throws: CopyError.noCopy(store: "memory://test")) {
      try restored(MemoryStore(), to: temporary.path("restored"))
    }
    #expect(!FileManager.default.fileExists(atPath: temporary.path("restored")))
  }

  // MARK: Damage

  @Test func eachObjectThatIsMissingDamagedOrCutIsNamed() throws {
    let ledger = try filledLedger(eventCount: 27)
    let (store, copy) = try copied(ledger)
    copy.deletesReplaced = false
    let state = try #require(copy.state)
    let needed =
      state.segments.map(\.key) + state.blocks.map(\.key) + [CopyLayout.identityKey(state.identity)]
      + state.frames.map { CopyLayout.stepKey($0.step) }
    #expect(Set(needed).count > 5)
    let temporary = try TemporaryDirectory()
    for (index, key) in needed.enumerated() {
      let whole = try #require(store.objects[key])
      for damaged in [nil, Array(whole.dropLast()), [0] + whole.dropFirst(), whole + [0]] {
        // Without its newest step, a copy looks like a copy with fewer events.
        store.objects[key] = damaged ?? (key.hasPrefix("steps/") ? [] : nil)
        let path = temporary.path("\(index)-\(damaged?.count ?? 0)-\(damaged?.first ?? 1)")
        do {
          _ = try restored(store, to: path)
          Issue.record("\(key) was not missed")
        } catch CopyError.faults(let faults) {
          #expect(faults.contains { $0.object == key }, "\(key): \(faults)")
        }
        #expect(throws: LedgerError.self) { try LedgerDirectory.open(path: path) }
      }
      store.objects[key] = whole
    }
  }

  @Test func allFaultsAreNamedAtOnce() throws {
    let (store, copy) = try copied(try filledLedger(eventCount: 27))
    let state = try #require(copy.state)
    let lost = [state.segments[0].key, state.segments[2].key]
    for key in lost { store.objects[key] = nil }
    let temporary = try TemporaryDirectory()
    do {
      _ = try restored(store, to: temporary.path("restored"))
      Issue.record("nothing was missed")
    } catch CopyError.faults(let faults) { expectEqual(faults.map(\.object), lost) }
  }

  @Test func ofADamagedCopyTheEventsBeforeTheFaultAreRestoredOnRequest() throws {
    let ledger = try filledLedger(eventCount: 27)
    let (store, copy) = try copied(ledger)
    let state = try #require(copy.state)
    let segment = state.segments[2]
    store.objects[segment.key] = nil
    store.objects[try #require(state.segments.last).key] = nil
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    let report = try restored(store, to: path) { $0.isPartial = true }
    expectEqual(report.size, segment.first)
    expectEqual(report.missing.count, 2)
    let directory = try LedgerDirectory.open(path: path)
    try expectEqual(root(of: directory), root(of: ledger.directory, at: segment.first))
    #expect(try isWhole(directory))
  }

  @Test func ofDamagedStepsTheNewestReadableIsRestoredOnRequest() throws {
    let ledger = try filledLedger(eventCount: 5)
    let (store, copy) = try copied(ledger)
    copy.deletesReplaced = false
    try ledger.append(events(5..<6))
    try copy.copyFrames()
    store.objects[try #require(copy.state).newest.key] = [1, 2, 3]
    let temporary = try TemporaryDirectory()
    let error = #expect(throws: CopyError.self) { try restored(store, to: temporary.path("a")) }
    expectEqual(error?.exitCode, .corrupted)
    let report = try restored(store, to: temporary.path("b")) { $0.isPartial = true }
    expectEqual(report.size, 5)
    expectEqual(report.missing.count, 1)
  }

  @Test func aRootThatIsNotThatOfTheEventsIsFound() throws {
    let ledger = try filledLedger(eventCount: 5)
    let (store, copy) = try copied(ledger)
    let state = try #require(copy.state)
    var step = state.completeStep(epoch: 2, writer: .random(), atMs: 0)
    step.size = state.size
    step.root = digest([1])
    // Only a new copy can claim this: a step of the same size has the same root.
    let forged = MemoryStore()
    forged.objects = store.objects.filter { !$0.key.hasPrefix("steps/") }
    step.number = 0
    step.previous = Step.noDigest
    step.earlierFrames = []
    step.blocks = state.blocks
    step.size = state.blocksEnd
    forged.objects[CopyLayout.stepKey(0)] = step.header
    let temporary = try TemporaryDirectory()
    let error = #expect(throws: CopyError.self) {
      try restored(forged, to: temporary.path("restored"))
    }
    expectEqual(error?.exitCode, .corrupted)
  }

  // MARK: A running writer

  @Test func objectsThatTheWriterReplacesMeanwhileAreReadAsNewerStepsNameThem() throws {
    let ledger = try filledLedger(eventCount: 3)
    let (store, copy) = try copied(ledger) {
      try $0.copyAll()
      try ledger.append(events(3..<9))
      try $0.copyFrames()
    }
    // Between reading the steps and reading the objects, frames become blocks and blocks segments.
    let reader = MemoryStore(sharing: store)
    let hasMoved = Monitor(false)
    let moving = Monitor({ () throws in
      try ledger.append(events(9..<20))
      try copy.copyAll()
    })
    let move = moving
    reader.setScript { call in
      if call.operation == .read || call.operation == .get && call.key.hasPrefix("identity/") {
        let isFirst = hasMoved.withLock { moved in
          defer { moved = true }
          return !moved
        }
        if isFirst { try? move.withLock { try $0() } }
      }
      return .happens
    }
    let temporary = try TemporaryDirectory()
    let path = temporary.path("restored")
    let report = try restored(reader, to: path) { $0.threadCount = 1 }
    expectEqual(report.size, 20)
    let directory = try LedgerDirectory.open(path: path)
    #expect(try isWhole(directory))
    try expectEqual(root(of: directory), root(of: ledger.directory))
  }

  @Test func failuresThatPassAreRepeated() throws {
    let ledger = try filledLedger(eventCount: 27)
    let (store, _) = try copied(ledger)
    let seen = Monitor(Set<String>())
    store.setScript { call in
      let isFirst = seen.withLock { $0.insert("\(call.operation.rawValue) \(call.key)").inserted }
      return isFirst ? .fails(.unavailable) : .happens
    }
    let temporary = try TemporaryDirectory()
    let restore = CopyRestore()
    _ = try restore.run(
      from: RetryingStore(store, limitMs: 120_000), to: temporary.path("restored"))
    try expectEqual(files(of: temporary.path("restored")), files(of: ledger.path))
  }

  @Test(arguments: [ObjectStoreError.Kind.denied, .unavailable, .noBucket])
  func aStoreThatDoesNotAnswerEndsTheRestore(kind: ObjectStoreError.Kind) throws {
    let (store, _) = try copied(try filledLedger(eventCount: 27))
    store.setScript { $0.operation == .read ? .fails(kind) : .happens }
    let temporary = try TemporaryDirectory()
    #expect(throws: CopyError.self) { try restored(store, to: temporary.path("restored")) }
    #expect(throws: LedgerError.self) {
      try LedgerDirectory.open(path: temporary.path("restored"))
    }
  }

  // MARK: Interruptions

  @Test func interruptedAtAnyCallItCanBeRepeated() throws {
    let ledger = try filledLedger(eventCount: 12)
    let (store, _) = try copied(ledger)
    let operation = CrashedOperation(
      "restore", prepare: { FaultyStorage() },
      run: { storage in
        var restore = CopyRestore()
        (restore.threadCount, restore.storage) = (1, storage)
        _ = try restore.run(from: RetryingStore(store), to: "/ledger")
      },
      state: { storage in
        let directory: LedgerDirectory
        do throws(LedgerError) {
          directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
        } catch { return "none" }
        let report = try LogAudit(directory, workers: 0).run()
        return "\(report.isWhole) \(report.size) \(report.frontier?.root.hex ?? "")"
      })
    let (problems, pointCount) = try operation.problems(seeds: 2)
    expectEqual(problems, [])
    #expect(pointCount > 50)
  }
}
