// Making, replacing and removing snapshots: damage is not saved, good ones stay, and cancellation works everywhere.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct SnapshotSafetyTests {
  private typealias Case = SnapshotTests.Case

  private static func folded(seed: UInt64) throws -> LedgerFixture {
    var generator = HistoryGenerator(seed: seed)
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    try fixture.append(generator.steps(20))
    _ = try fixture.current()
    return fixture
  }

  private static func names(_ fixture: LedgerFixture) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/snapshots").sorted()
  }

  // MARK: Damage

  /// What other programs may do to the projections in use.
  enum Tampering: CaseIterable {
    case pageOverwritten, tableDropped, viewDropped

    func apply(to path: String) throws {
      switch self {
      case .pageOverwritten: try Database.damage("sales", in: path)
      case .tableDropped: try Database(path: path, mode: .write).execute("DROP TABLE sales")
      case .viewDropped: try Database(path: path, mode: .write).execute("DROP VIEW sale_view")
      }
    }
  }

  @Test(arguments: Tampering.allCases, [false, true])
  func damagedProjectionsAreNotSaved(_ tampering: Tampering, atPosition: Bool) throws {
    let fixture = try Self.folded(seed: 11)
    try tampering.apply(to: fixture.path + "/projections/1.sqlite")
    let projector = try fixture.projector()
    #expect {
      _ = try projector.createSnapshot(at: atPosition ? fixture.eventCount : nil) { _ in
        Issue.record("an event was appended")
        return 0
      }
    } throws: { error in
      guard case ProjectionError.database(let failure)? = error as? ProjectionError else {
        return false
      }
      return failure.isCorrupt
    }
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "/snapshots"))
    try projector.rebuild()
    #expect(try projector.verify(fixture.createSnapshot()) == nil)
  }

  @Test func pastADamagedSnapshotBooksAreMadeOfTheNextOlderOne() throws {
    let test = try Case(seed: 12)
    let fixture = test.fixture
    let damaged = try fixture.createSnapshot()
    try SnapshotTests.rewrite(damaged, in: test.folder, fixture) {
      try Database.damage("sales", in: $0)
    }
    var generator = HistoryGenerator(seed: 13)
    try fixture.append(generator.steps(2))
    let link = fixture.path + "/projections.sqlite"
    let inUse = try FileManager.default.destinationOfSymbolicLink(atPath: link)
    try test.loseProjections()
    let reader = try LogReader(fixture.directory)
    var (notices, bases): ([String], [Int]) = ([], [])
    var observer = Projector.Observer(notice: { notices.append($0) })
    observer.basis = { bases.append($0.header.size) }
    let books = try Projector(reader, observer: observer).books(at: fixture.eventCount)
    expectEqual(notices, ["snapshot \(damaged.name) is not used: its database is damaged"])
    expectEqual(bases, [test.snapshotSize])
    try expectEqual(books.dump(), fixture.rebuilt().dump())
    try expectEqual(FileManager.default.destinationOfSymbolicLink(atPath: link), inUse)
    expectEqual(fixture.notices, [])
  }

  @Test func aSnapshotThatIsObjectedToIsPassedOver() throws {
    let test = try Case(seed: 14)
    try test.loseProjections()
    var notices: [String] = []
    var observer = Projector.Observer(notice: { notices.append($0) })
    observer.objection = { _ in "so it is" }
    observer.basis = { _ in Issue.record("it was used") }
    let projector = Projector(try LogReader(test.fixture.directory), observer: observer)
    _ = try projector.books(at: test.snapshotSize)
    expectEqual(notices, ["snapshot \(test.snapshotSize) is not used: so it is"])
  }

  // MARK: Replacing and removing

  @Test func aSnapshotIsReplacedByFilesOfOtherNames() throws {
    let fixture = try Self.folded(seed: 15)
    let projector = try fixture.projector()
    let size = fixture.eventCount
    let header = SnapshotTests.digits(size)
    for ending in [".sqlite", ".2.sqlite", ".sqlite"] {
      let saved = try fixture.createSnapshot(at: size)
      expectEqual(saved.header.file, header + ending)
      try expectEqual(Self.names(fixture), [header + ".json", header + ending, "lock"].sorted())
      let listed = try #require(projector.snapshots.snapshots.first)
      #expect(try projector.verify(listed) == nil)
    }
  }

  @Test func aReplacementThatFailsLeavesTheOldSnapshot() throws {
    let fixture = try Self.folded(seed: 16)
    let projector = try fixture.projector()
    let size = fixture.eventCount
    let old = try fixture.createSnapshot(at: size)
    let header = SnapshotTests.digits(size)
    // A folder, which a rename cannot replace.
    let obstacle = fixture.path + "/snapshots/\(header).2.sqlite"
    try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
    #expect(throws: ProjectionError.self) { try fixture.createSnapshot(at: size) }
    expectEqual(projector.snapshots.snapshots.map(\.header.sha256), [old.header.sha256])
    #expect(try projector.verify(old) == nil)
    try expectEqual(Self.names(fixture).count, 4)
  }

  @Test func aSnapshotSavedWhileAPruneWaitedIsSeenByIt() throws {
    let test = try Case(seed: 17)
    let projector = try test.fixture.projector()
    let before = projector.snapshots
    let saved = try test.fixture.createSnapshot()
    let (removed, kept) = try before.prune { $0.suffix(1) }
    expectEqual(kept.map(\.header.size), [saved.header.size])
    expectEqual(removed, [SnapshotTests.digits(test.snapshotSize)])
  }

  @Test func aLookAtItsBytesFindsADamagedSnapshot() throws {
    let test = try Case(seed: 18)
    let projector = try test.fixture.projector()
    let snapshot = try test.snapshot
    #expect(try projector.unfitnessOfBytes(of: snapshot) == nil)
    try test.edit(test.dataPath) { $0[$0.count / 2] ^= 4 }
    #expect(projector.unfitness(of: snapshot) == nil)
    try expectEqual(projector.unfitnessOfBytes(of: snapshot), "its file is damaged")
  }

  // MARK: Cancellation

  /// Cancels the work at its first check, at its second and so on, until it finishes before it has checked that often;
  /// returns the number of checks.
  private func interruptEverywhere(
    _ test: Case, _ work: (Projector) throws -> Void, after: () throws -> Void
  ) throws -> Int {
    for limit in 0...1000 {
      var count = 0
      let observer = Projector.Observer(isCancelled: {
        count += 1
        return count > limit
      })
      do {
        try work(Projector(try LogReader(test.fixture.directory), observer: observer))
        return count
      } catch ProjectionError.interrupted { try after() }
    }
    Issue.record("it never ends")
    return 0
  }

  @Test func aVerificationEndsWhereverItIsAskedTo() throws {
    let test = try Case(seed: 19)
    let snapshot = try test.snapshot
    let count = try interruptEverywhere(test) {
      let problem = try $0.verify(snapshot)
      #expect(problem == nil)
    } after: {
    }
    // For the folder's lock, for each piece of the file, and while SQLite checks.
    #expect(count >= 4)
  }

  @Test func aRestoreEndsWhereverItIsAskedToAndPutsNothingInUse() throws {
    let test = try Case(seed: 20)
    let fixture = test.fixture
    let snapshot = try test.snapshot
    try test.loseProjections()
    let count = try interruptEverywhere(test) {
      try $0.restore(snapshot)
    } after: {
      let status = try fixture.projector().status()
      #expect(status == nil)
      expectEqual(fixture.projectionNames.filter { $0 != "lock" }, [])
    }
    #expect(count >= 5)
    try expectEqual(fixture.projector().status()?.position, fixture.eventCount)
  }

  @Test func aPruneAndASaveEndWhereverTheyAreAskedTo() throws {
    let test = try Case(seed: 21)
    let snapshot = try test.snapshot
    let names = try Self.names(test.fixture)
    _ = try interruptEverywhere(test) { projector in
      _ = try projector.snapshots.prune { (snapshots) throws(ProjectionError) in
        let isBad = try projector.unfitnessOfBytes(of: snapshots[0]) != nil
        return isBad ? [] : snapshots
      }
    } after: {
      let left = try Self.names(test.fixture)
      expectEqual(left, names)
    }
    _ = try interruptEverywhere(test) {
      _ = try $0.createSnapshot(at: test.snapshotSize) { try test.fixture.append(drafts: [$0]) }
    } after: {
      let (problem, left) = (
        try test.fixture.projector().verify(snapshot), try Self.names(test.fixture)
      )
      #expect(problem == nil)
      expectEqual(left, names)
    }
  }

  @Test func whoWaitsForTheLockOfAnotherCanBeToldToEnd() throws {
    let test = try Case(seed: 22)
    let held = open(test.folder + "/lock", O_RDWR)
    defer { close(held) }
    try #require(flock(held, LOCK_EX) == 0)
    let store = try test.fixture.projector().snapshots
    #expect {
      _ = try store.prune(isCancelled: { true }) { _ in [] }
    } throws: { error in
      if case ProjectionError.interrupted? = error as? ProjectionError { true } else { false }
    }
    try expectEqual(Self.names(test.fixture).count, 3)
  }

  @Test func aRebuildThatIsToldToEndBehindItsLastEventIsNotPutInUse() throws {
    let fixture = try Self.folded(seed: 23)
    var isCancelled = false
    let observer = Projector.Observer(
      progress: { isCancelled = $0.foldedEvents == $0.totalEvents }, isCancelled: { isCancelled })
    let projector = Projector(try LogReader(fixture.directory), observer: observer)
    #expect(throws: ProjectionError.self) { try projector.rebuild() }
    expectEqual(fixture.projectionNames.filter { $0.contains("building") || $0.hasPrefix("2") }, [])
  }
}
