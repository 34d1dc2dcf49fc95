// A rebuild while others read and append: no reader sees less than before.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct RebuildBesideTests {
  @Test func whatIsAppendedWhileItIsBuiltIsInTheNewGenerationFromTheStart() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 11)
    try fixture.append(generator.steps(10))
    var pieces = 3
    let projector = Projector(
      try LogReader(fixture.directory),
      observer: Projector.Observer(progress: { _ in
        guard pieces > 0 else { return }
        pieces -= 1
        try? fixture.append(generator.steps(4))
      }))
    try projector.rebuild()
    expectEqual(pieces, 0)
    let status = try #require(try fixture.projector().status())
    expectEqual(status.position, fixture.eventCount)
    #expect(try fixture.projector().compare(.tables)?.isEmpty == true)
    #expect(!fixture.projectionNames.contains { $0.contains("building") })
  }

  @Test func whoeverWaitsForAnotherRebuildIsTold() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 13)
    try fixture.append(generator.steps(4))
    _ = try fixture.current()
    let lock = open(fixture.path + "/projections/lock", O_RDWR)
    defer { close(lock) }
    try #require(flock(lock, LOCK_EX) == 0)
    var waits = 0
    let projector = Projector(
      try LogReader(fixture.directory),
      observer: Projector.Observer(waiting: {
        waits += 1
        flock(lock, LOCK_UN)
      }))
    try projector.rebuild()
    #expect(try projector.compare(.tables)?.isEmpty == true)
    expectEqual(waits, 1)
  }

  /// A ledger whose lock another process holds without making progress.
  private func stalled(
    _ fixture: LedgerFixture, _ body: (Projector, _ said: () -> [String]) throws -> Void
  ) throws {
    let lock = open(fixture.path + "/projections/lock", O_RDWR)
    defer { close(lock) }
    try #require(flock(lock, LOCK_EX) == 0)
    var said: [String] = []
    var observer = Projector.Observer(notice: { said.append($0) })
    (observer.stallMs, observer.lockLimitMs) = (0, 100)
    try body(Projector(try LogReader(fixture.directory), observer: observer), { said })
  }

  @Test func beforeAProcessThatDoesNotGetOnTheGenerationInUseIsBroughtUpToDate() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(user: "u1")])
    _ = try fixture.current()
    // So many events that a build from nothing would be faster.
    let drafts = TestEvent.upload(user: "u1").drafts
    for _ in 0..<3 {
      _ = try fixture.append(drafts: (0..<2_800).flatMap { _ in drafts })
    }
    try stalled(fixture) { projector, said in
      _ = try projector.current()
      try expectEqual(projector.status()?.position, fixture.eventCount)
      expectEqual(
        said(),
        [
          "another process that builds projections makes no progress: using the existing ones"
        ])
    }
  }

  @Test func whereNothingFitsTheWaitHasAMessageAndAnEnd() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 14)
    try fixture.append(generator.steps(4))
    _ = try fixture.current()
    try FileManager.default.removeItem(atPath: fixture.path + "/projections.sqlite")
    try stalled(fixture) { projector, said in
      let error = #expect(throws: ProjectionError.self) { try projector.current() }
      guard case .ledger(let cause)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      expectEqual(cause.kind, .locked)
      expectEqual(said(), ["waiting for another process that builds projections"])
    }
    // A cancelled wait ends at once.
    var observer = Projector.Observer(isCancelled: { true })
    observer.lockLimitMs = 0
    let cancelled = Projector(try LogReader(fixture.directory), observer: observer)
    #expect(throws: ProjectionError.self) { try cancelled.current() }
  }

  @Test func whoeverReadsWhileGenerationsAreReplacedSeesAWholeOne() async throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 12)
    try fixture.append(generator.steps(30))
    _ = try fixture.current()
    let directory = fixture.directory
    let least = fixture.eventCount
    let live = try LiveProjections(directory)
    try await withThrowingTaskGroup(of: [String].self) { group in
      for isCatchingUp in [true, false, false] {
        group.addTask {
          var seen: [String] = []
          var position = least
          for _ in 0..<40 {
            let projector = Projector(
              try LogReader(directory), observer: .init(notice: { seen.append($0) }))
            let database =
              isCatchingUp ? try projector.current(isFrugal: true) : try projector.existing()
            guard let database else {
              seen.append("nothing was there")
              continue
            }
            let head = try Report.head(of: database)
            if head.size < position { seen.append("\(head.size) events after \(position)") }
            position = head.size
            if try database.integer("SELECT count(*) FROM uploads") ?? 0 == 0 {
              seen.append("no upload was there")
            }
          }
          return seen
        }
      }
      group.addTask {
        // As a server does.
        for _ in 0..<40 {
          try live.catchUp()
          _ = try live.waitingSummary()
        }
        return []
      }
      group.addTask {
        for _ in 0..<12 { try Projector(try LogReader(directory)).rebuild() }
        return []
      }
      for _ in 0..<12 { try fixture.append(generator.steps(2)) }
      for try await seen in group { expectEqual(seen, []) }
    }
    try expectEqual(fixture.current().dump(), fixture.rebuilt().dump())
  }

  @Test func whatAKilledBuildLeftIsRemovedByTheNextCommandThatReads() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 13)
    try fixture.append(generator.steps(5))
    let before = try fixture.current().dump()
    // Killed while building, while SQLite closed the file, and between the two renames.
    for name in [
      "2.sqlite.building", "2.sqlite.building-wal", "2.sqlite.building-shm", "3.sqlite",
      "3.sqlite-wal", "0.sqlite-shm",
    ] {
      try Data("left".utf8).write(to: URL(fileURLWithPath: fixture.path + "/projections/" + name))
    }
    try FileManager.default.createSymbolicLink(
      atPath: fixture.path + "/projections.sqlite.new", withDestinationPath: "projections/3.sqlite")
    try expectEqual(fixture.current().dump(), before)
    let left = fixture.projectionNames.filter { !$0.hasPrefix("1.sqlite") }
    expectEqual(left, ["lock"])
    #expect(!FileManager.default.fileExists(atPath: fixture.path + "/projections.sqlite.new"))
    expectEqual(fixture.notices, [])
  }

  /// A generation never gets the name of one whose write-ahead log still exists.
  @Test func anOldWriteAheadLogIsNotTakenForTheNewGenerationsOwn() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 14)
    try fixture.append(generator.steps(5))
    let path = try fixture.current().path
    let expected = try fixture.current().dump()
    try FileManager.default.removeItem(atPath: path)
    try Data("left".utf8).write(to: URL(fileURLWithPath: path + "-wal"))
    let database = try fixture.current()
    #expect(database.path.hasSuffix("/2.sqlite"))
    try expectEqual(database.dump(), expected)
  }
}
