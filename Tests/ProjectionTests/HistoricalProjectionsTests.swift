// The projections as they were at an earlier position, made from the nearest state before it.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct HistoricalProjectionsTests {
  private static let stepCount = 40

  /// A ledger that ends after this many steps: the books at its size must be equal.
  private func ledger(_ steps: [TestEvent], _ end: Int) throws -> LedgerFixture {
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    try fixture.append(Array(steps[..<end]))
    return fixture
  }

  private func pastNames(_ fixture: LedgerFixture) -> [String] {
    let path = fixture.path + "/projections/past"
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func whereverTheyBeginBooksAreThoseOfALogThatEndsThere(seed: UInt64) throws {
    var generator = HistoryGenerator(seed: seed)
    let steps = generator.steps(Self.stepCount)
    let whole = try ledger(steps, 17)
    // A generation in use that is behind the log, and a snapshot of an earlier position.
    _ = try whole.current()
    let atSeventeen = whole.eventCount
    let atNine = try ledger(steps, 9).eventCount
    try whole.append(Array(steps[17...]))
    try expectEqual(whole.createSnapshot(at: atNine).header.size, atNine)
    for end in [0, 1, 8, 9, 12, 17, 23, Self.stepCount] {
      let short = try ledger(steps, end)
      let books = try whole.projector().books(at: short.eventCount)
      try expectEqual(books.dump(), short.rebuilt().dump(), "after \(end) steps")
      let head = try Report.head(of: books)
      expectEqual(head.size, short.eventCount)
      expectEqual(head.root, (try LogReader(short.directory).head.root))
    }
    // The generation in use was left alone, and nothing is left of the books.
    try expectEqual(whole.projector().status()?.position, atSeventeen)
    expectEqual(pastNames(whole), ["lock"])
    expectEqual(whole.notices, [])
  }

  @Test func laterBooksAreMadeOfEarlierOnes() throws {
    var generator = HistoryGenerator(seed: 4)
    let steps = generator.steps(Self.stepCount)
    let whole = try ledger(steps, Self.stepCount)
    let short = try ledger(steps, 20)
    let projector = try whole.projector()
    let earlier = try projector.books(at: short.eventCount)
    let later = try projector.books(at: whole.eventCount, from: earlier)
    try expectEqual(later.dump(), whole.rebuilt().dump())
    try expectEqual(earlier.dump(), short.rebuilt().dump())
  }

  @Test func beyondTheEndThereAreNoBooks() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 9)
    try fixture.append(generator.steps(3))
    for size in [-1, fixture.eventCount + 1, Int.max] {
      #expect(throws: ProjectionError.self) { try fixture.projector().books(at: size) }
    }
  }

  @Test func whatAKilledProcessLeftIsRemovedAndWhatALivingOneHoldsIsNot() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 5)
    try fixture.append(generator.steps(5))
    _ = try fixture.projector().books(at: 1)
    let past = fixture.path + "/projections/past"
    for name in ["0.sqlite", "1.sqlite", "1.sqlite-journal"] {
      try Data([1, 2, 3]).write(to: URL(fileURLWithPath: "\(past)/\(name)"))
    }
    // Another process holds the second.
    let held = open(past + "/1.sqlite", O_RDWR)
    defer { close(held) }
    try #require(flock(held, LOCK_EX) == 0)
    _ = try fixture.projector().books(at: 2)
    expectEqual(pastNames(fixture), ["1.sqlite", "lock"])
  }

  @Test func changedLinesAreNamedWithTheEventsThatChangedThem() throws {
    for seed in 1...4 as ClosedRange<UInt64> {
      var generator = HistoryGenerator(seed: seed)
      let steps = generator.steps(Self.stepCount)
      let whole = try ledger(steps, Self.stepCount)
      let projector = try whole.projector()
      for end in [0, 10, 25, Self.stepCount] {
        let size = try ledger(steps, end).eventCount
        let before = try projector.books(at: size)
        let after = try projector.books(at: whole.eventCount)
        for environment in ["Production", "Sandbox"] {
          let request = try ReportWords("journal --environment \(environment)").request
          let journal = try JournalDifference(
            from: before, to: after, ComparedLines(of: environment, request))
          func lines(_ database: Database) throws -> [String] {
            let csv = try whole.csv(request, from: database)
            return csv.split(separator: "\n").dropFirst().map(String.init)
          }
          let (old, new) = (try lines(before), try lines(after))
          let added = journal.entries.filter { $0.change == .added }.count
          let removed = journal.entries.filter { $0.change == .removed }.count
          expectEqual(old.count + added - removed, new.count)
          // Without a change, the journals are equal except for what affects no figure.
          if end == Self.stepCount { #expect(journal.entries.isEmpty && old == new) }
          for entry in journal.entries {
            #expect(entry.before != entry.after)
            #expect(!entry.events.isEmpty)
            #expect(entry.events.allSatisfy { size <= $0 && $0 < whole.eventCount })
          }
        }
      }
    }
  }

  private static let free = reply(row("1"))

  /// A sale of unknown country and price, with events before and after the moment.
  @Test(
    "a line is named with the events that changed it since",
    arguments: [
      (
        "an upload that waited, by its verification",
        [.upload(country: "FR", metadata: prices(entry(transaction: "1", "2.00")), receipt: "b")],
        [.verify(2, free)], [3]
      ),
      (
        "the same, its reply taken from another",
        [.upload(country: "FR", receipt: "b")], [.reuse(1, for: 2)], [3]
      ),
      (
        "the first of two verifications, after one without an answer",
        [.upload(free, country: "FR", receipt: "b", outcome: .unreachable, status: nil)],
        [.verify(2, free), .verify(2, free)], [4]
      ),
      (
        "an upload that came since, and its verification",
        [], [.upload(free, country: "FR", receipt: "b")], [2, 3]
      ),
      ("a price list", [], [.prices(["coins - EUR 3.00 2026-01-01"])], [2]),
      (
        "no verification of what gave something else before",
        [.upload(free, country: "FR", receipt: "b")],
        [.verify(2, free), .prices(["coins - EUR 3.00 2026-01-01"])], [5]
      ),
    ] as [(String, [TestEvent], [TestEvent], [Int])])
  func aChangedLineIsNamedWithWhatChangedIt(
    _ situation: String, _ before: [TestEvent], _ since: [TestEvent], _ events: [Int]
  ) throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(Self.free, country: nil, receipt: "a")] + before)
    let size = fixture.eventCount
    try fixture.append(since)
    let projector = try fixture.projector()
    let journal = try JournalDifference(
      from: projector.books(at: size), to: projector.books(at: fixture.eventCount))
    expectEqual(journal.entries.map(\.change), [.changed])
    expectEqual(journal.entries.map(\.events), [events])
  }

  @Test func thatAnotherVersionIsInUseIsSaidOnce() throws {
    let fixture = try LedgerFixture()
    var generator = HistoryGenerator(seed: 6)
    try fixture.append(generator.steps(6))
    _ = try fixture.current()
    try Database(path: fixture.path + "/projections/1.sqlite", mode: .write).execute(
      "UPDATE projections SET version = 99 WHERE name = 'sales'; DELETE FROM sales")
    let projector = try fixture.projector()
    let earlier = try projector.books(at: 2)
    _ = try projector.books(at: fixture.eventCount, from: earlier)
    expectEqual(
      fixture.notices,
      [
        "the current projections belong to another version of this program and are not used"
      ])
  }
}
