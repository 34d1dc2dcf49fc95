// Copies with lost objects: what is named, what is restored, what is left alone.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

/// What may happen to an object of a copy.
enum ObjectLoss: String, CaseIterable, Sendable {
  case lost, emptied, flipped, replaced

  func happen(to key: String, in store: MemoryStore) {
    var objects = store.objects
    switch self {
    case .lost: objects[key] = nil
    case .emptied: objects[key] = []
    case .flipped:
      let middle = (objects[key]?.count ?? 0) / 2
      objects[key]?[middle] ^= 0x10
    case .replaced: objects[key] = Array("what another program has put here".utf8)
    }
    store.objects = objects
  }
}

@Suite struct LostObjectTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  /// A ledger and its copy: segments, several blocks of the newest one, checkpoints, frames of several steps, and a
  /// complete step in the middle.
  private func copied() throws -> (LedgerFixture, MemoryStore, TestCopy) {
    let ledger = try LedgerFixture(blockByteCount: 1_500, segmentByteCount: 6_000)
    _ = try KeyStore(ledger.directory).create(isFurther: false)
    let store = MemoryStore()
    let copy = TestCopy(of: try LedgerDirectory.open(path: ledger.path), in: store)
    copy.deletesReplaced = false
    try ledger.append(events(0..<20))
    try copy.copyAll()
    for size in [20, 35] {
      try ledger.append(events(size..<size + 12))
      _ = try CheckpointStore(copy.directory).sign(try LogReader(copy.directory))
      try copy.copyAll(complete: size == 20)
    }
    try ledger.append(events(47..<49))
    try copy.copyFrames(perStep: 1)
    return (ledger, store, copy)
  }

  private func restored(
    _ store: MemoryStore, partial: Bool
  ) throws -> (size: Int, missing: [String], directory: LedgerDirectory) {
    let path = temporary.path(UUID().uuidString)
    var restore = CopyRestore()
    restore.isPartial = partial
    let report = try restore.run(from: RetryingStore(store, limitMs: 500), to: path)
    return (report.size, report.missing.map(\.object), try LedgerDirectory.open(path: path))
  }

  private func faults(_ body: () throws -> Void) throws -> [String]? {
    do {
      try body()
      return nil
    } catch CopyError.faults(let faults) { return faults.map(\.object) }
  }

  // MARK: Objects that steps name

  @Test(arguments: ObjectLoss.allCases)
  func eachObjectThatIsNotAsItWasIsNamedAndTheEventsBeforeItAreRestored(loss: ObjectLoss) throws {
    let (ledger, store, copy) = try copied()
    let state = try #require(copy.state)
    let whole = store.objects
    var firsts: [String: Int] = [:]
    for segment in state.segments { firsts[segment.key] = segment.first }
    for block in state.blocks { firsts[block.key] = block.first }
    for checkpoint in state.checkpoints { firsts[checkpoint.key] = state.size }
    #expect(state.segments.count > 1 && state.blocks.count > 1 && state.checkpoints.count == 2)
    for (key, first) in firsts {
      store.objects = whole
      loss.happen(to: key, in: store)
      try expectEqual(faults { _ = try restored(store, partial: false) }, [key])
      let part = try restored(store, partial: true)
      expectEqual(part.missing, [key])
      expectEqual(part.size, first, "\(key)")
      #expect(try isWhole(part.directory), "\(key)")
      let same = try root(of: part.directory) == root(of: ledger.directory, at: first)
      #expect(same, "\(key)")
    }
  }

  @Test func everythingThatIsMissingIsNamedAtOnceWithTheIdentityToo() throws {
    let (_, store, copy) = try copied()
    let state = try #require(copy.state)
    let lost = [
      state.segments[1].key, state.blocks[1].key, CopyLayout.identityKey(state.identity),
    ]
    for key in lost { ObjectLoss.lost.happen(to: key, in: store) }
    try expectEqual(faults { _ = try restored(store, partial: false) }, lost.sorted())
  }

  @Test func ofAFileThatWasFetchedFurtherBeforeOnlyTheStartIsKept() throws {
    let (ledger, store, copy) = try copied()
    let blocks = try #require(copy.state).blocks
    let path = temporary.path("again")
    var restore = CopyRestore()
    ObjectLoss.lost.happen(to: blocks[blocks.count - 1].key, in: store)
    let error = #expect(throws: CopyError.self) {
      try restore.run(from: RetryingStore(store, limitMs: 500), to: path)
    }
    expectEqual(error?.exitCode, .corrupted)
    ObjectLoss.lost.happen(to: blocks[1].key, in: store)
    restore.size = blocks[1].first
    let report = try restore.run(from: RetryingStore(store, limitMs: 500), to: path)
    expectEqual(report.fetched.objects, 0)
    let directory = try LedgerDirectory.open(path: path)
    #expect(try isWhole(directory))
    try expectEqual(root(of: directory), root(of: ledger.directory, at: blocks[1].first))
  }

  // MARK: Steps

  @Test(arguments: ObjectLoss.allCases)
  func aStepThatIsNotAsItWasIsNamedFromTheNewestCompleteOneOn(loss: ObjectLoss) throws {
    let (ledger, store, copy) = try copied()
    let state = try #require(copy.state)
    let whole = store.objects
    let complete = state.newest.number - state.stepsSinceComplete
    #expect(complete > 2 && state.stepsSinceComplete > 2)
    let sizes = try (0...state.newest.number).map {
      try #require(Step.parse(whole[CopyLayout.stepKey($0)] ?? [])).step.size
    }
    for number in 0...state.newest.number {
      let key = CopyLayout.stepKey(number)
      store.objects = whole
      loss.happen(to: key, in: store)
      let isNamed = number >= complete && !(loss == .lost && number == state.newest.number)
      try expectEqual(faults { _ = try restored(store, partial: false) }, (isNamed ? [key] : nil))
      let audit = CopyAudit()
      let found = try faults {
        let report = try #require(
          try audit.run(ledger.directory, RetryingStore(store, limitMs: 500)))
        #expect(report.isWhole)
        let isGap = loss == .lost && number < complete
        expectEqual(report.lostSteps.map(\.object), (isGap ? [key] : []))
      }
      expectEqual(found, (isNamed ? [key] : nil), "\(number)")
      let before = number < complete ? state.newest.number : number - 1
      let part = try restored(store, partial: true)
      expectEqual(part.size, sizes[before], "\(number)")
      expectEqual(part.missing, (isNamed ? [key] : []))
      #expect(try isWhole(part.directory))
    }
  }

  @Test func severalGapsAreNamedByTheirFirstSteps() throws {
    let (_, store, copy) = try copied()
    let last = try #require(copy.state).newest.number
    for number in [last - 1, last - 3, last - 4] {
      store.objects[CopyLayout.stepKey(number)] = nil
    }
    try expectEqual(
      faults { _ = try restored(store, partial: false) },
      [CopyLayout.stepKey(last - 4), CopyLayout.stepKey(last - 1)])
  }

  @Test(arguments: [ObjectLoss.lost, .flipped])
  func aPromotionOfADamagedCopyChangesNothing(loss: ObjectLoss) throws {
    let (ledger, store, copy) = try copied()
    let state = try #require(copy.state)
    let behind = try restored(store, partial: false).directory
    try ledger.append(events(49..<75))
    try copy.copyAll()
    try ledger.append(events(75..<76))
    try copy.copyFrames()
    let newest = try #require(copy.state)
    let whole = store.objects
    let known = state.namedKeys
    let steps = (newest.newest.number - newest.stepsSinceComplete)..<newest.newest.number
    for key in newest.namedKeys.subtracting(known).sorted() + steps.map(CopyLayout.stepKey) {
      store.objects = whole
      loss.happen(to: key, in: store)
      let (objects, before) = (store.objects, try files(of: behind.path))
      var promotion = Promotion()
      promotion.threadCount = 1
      let found = try faults {
        _ = try promotion.run(behind, RetryingStore(store, limitMs: 500))
      }
      expectEqual(found, [key])
      expectEqual(store.objects, objects)
      try expectEqual(files(of: behind.path), before)
      try expectEqual(Standby(of: behind)?.reason, .restored)
    }
    // This ledger can store again what it has itself.
    store.objects = whole
    for key in known.intersection(newest.namedKeys) where key.hasPrefix("segments/") {
      loss.happen(to: key, in: store)
    }
    _ = try Promotion().run(behind, RetryingStore(store, limitMs: 500))
    #expect(try isWhole(behind))
    try expectEqual(size(of: behind), size(of: ledger.directory))
  }

  // MARK: The search for the newest step

  @Test func theNewestStepIsFoundWhateverIsMissing() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    for _ in 0..<20 {
      let store = MemoryStore()
      let end = Int.random(in: 1...5_000, using: &random)
      let density = Double.random(in: 0...1, using: &random)
      var numbers = Set(
        (0..<end).filter { _ in Double.random(in: 0...1, using: &random) < density })
      if Bool.random(using: &random) { numbers.insert(Int.random(in: 0..<1 << 45, using: &random)) }
      store.objects = Dictionary(
        uniqueKeysWithValues: numbers.map { (CopyLayout.stepKey($0), [UInt8]()) })
      let known = Bool.random(using: &random) ? Int.random(in: 0...end, using: &random) : nil
      let found = try StepSequence(store).newest(after: known)
      expectEqual(found, numbers.max(), "seed \(seed)")
      #expect(store.calls.count < 200, "seed \(seed)")
    }
  }

  @Test func keysThatAreNoStepsAreNotTakenForSome() throws {
    let store = MemoryStore()
    for name in ["09223372036854775807", "99999999999999999999", "-", "0", "000000000000000000z1"] {
      store.objects["steps/\(name)"] = [1]
    }
    #expect(try StepSequence(store).newest() == nil)
    store.objects[CopyLayout.stepKey(2)] = [1]
    try expectEqual(StepSequence(store).newest(), 2)
    try expectEqual(StepSequence(store).newest(after: 1), 2)
  }
}
