// The audit of a copy: a ledger compared with its copy.
import Base
import Ledger
import Replication
import TestSupport
import Testing

@Suite struct CopyAuditTests {
  private func audited(
    _ directory: LedgerDirectory, _ store: MemoryStore, all: Bool = false
  ) throws -> CopyAudit.Report {
    var audit = CopyAudit()
    audit.followsAllSteps = all
    return try #require(try audit.run(directory, RetryingStore(store, limitMs: 500)))
  }

  private func copied(
    _ count: Int = 27
  ) throws -> (LedgerFixture, MemoryStore, TestCopy) {
    let ledger = try filledLedger(eventCount: count)
    let store = MemoryStore()
    let copy = TestCopy(of: ledger.directory, in: store)
    try copy.copyAll()
    return (ledger, store, copy)
  }

  @Test(arguments: [0, 27, 40]) func aTrueCopyIsIntact(count: Int) throws {
    let (ledger, store, _) = try copied(count)
    let report = try audited(ledger.directory, store, all: true)
    expectEqual(report.faults, [])
    expectEqual(report.lag, 0)
    expectEqual(report.stepCount, report.newest.number + 1)
    expectEqual(report.outdated, [])
  }

  @Test func whatTheCopyLacksIsTheLag() throws {
    let (ledger, store, _) = try copied()
    try ledger.append(events(27..<30))
    let report = try audited(ledger.directory, store)
    #expect(report.isWhole)
    expectEqual(report.lag, 3)
  }

  @Test func eachDamagedObjectIsNamed() throws {
    let (ledger, store, copy) = try copied()
    let state = try #require(copy.state)
    let keys =
      state.segments.map(\.key) + state.blocks.map(\.key) + [CopyLayout.identityKey(state.identity)]
      + state.frames.map { CopyLayout.stepKey($0.step) }
    for key in keys {
      let whole = store.objects[key]
      store.objects[key] = whole.map { $0.dropLast() + [$0.last.map { $0 ^ 1 } ?? 0] }
      // An unreadable step of the newest state prevents the audit.
      let found = (try? audited(ledger.directory, store))?.faults.map(\.object)
      #expect(found == [key] || found == nil && key.hasPrefix("steps/"), "\(key)")
      // Without its newest step, a copy looks like a copy with fewer events.
      store.objects[key] = key.hasPrefix("steps/") ? [] : nil
      let missing = (try? audited(ledger.directory, store))?.faults.map(\.object)
      #expect(missing == [key] || missing == nil && key.hasPrefix("steps/"), "\(key)")
      store.objects[key] = whole
    }
  }

  @Test func anEarlierStepIsCheckedOnlyOnRequest() throws {
    let (ledger, store, copy) = try copied()
    try copy.copyFiles(complete: true)
    store.objects[CopyLayout.stepKey(0)] = [0x7B]
    #expect(try audited(ledger.directory, store).isWhole)
    try expectEqual(
      audited(ledger.directory, store, all: true).faults.map(\.object), [CopyLayout.stepKey(0)])
  }

  @Test func aLedgerWithFewerOrOtherEventsIsAFinding() throws {
    let (_, store, copy) = try copied()
    let shorter = try filledLedger(eventCount: 20)
    try expectEqual(
      audited(shorter.directory, store).faults.map(\.object), [try #require(copy.state).newest.key])
    let other = try LedgerFixture(blockByteCount: 1_500, segmentByteCount: 1_500)
    try other.append(events(1..<30))
    try expectEqual(
      audited(other.directory, store).faults.map(\.object), [try #require(copy.state).newest.key])
    let foreign = try LedgerFixture(id: 2)
    #expect(try !audited(foreign.directory, store).isWhole)
  }

  @Test func withoutACopyThereIsNothingToAudit() throws {
    let ledger = try filledLedger(eventCount: 2)
    #expect(try CopyAudit().run(ledger.directory, RetryingStore(MemoryStore())) == nil)
  }
}
