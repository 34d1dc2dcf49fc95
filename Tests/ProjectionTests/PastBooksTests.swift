// The projections as they were at an earlier position, from whatever is nearest before it.
import Foundation
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct PastBooksTests {
  private static let stepCount = 40

  /// A ledger that ends after so many steps: what the books at its size must equal.
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
    // In use: a generation that stays behind the log. Beside it: a snapshot of an earlier position.
    _ = try whole.current()
    let atSeventeen = whole.eventCount
    let atNine = try ledger(steps, 9).eventCount
    #expect(try whole.projector().createSnapshot(at: atNine).header.size == atNine)
    try whole.append(Array(steps[17...]))
    for end in [0, 1, 8, 9, 12, 17, 23, Self.stepCount] {
      let short = try ledger(steps, end)
      let books = try whole.projector().books(at: short.eventCount)
      #expect(try books.dump() == short.rebuilt().dump(), "after \(end) steps")
      let head = try Report.head(of: books)
      #expect(head.size == short.eventCount)
      #expect(head.root == (try LogReader(short.directory).head.root))
    }
    // The generation in use was left alone, and nothing is left of the books.
    #expect(try whole.projector().status()?.position == atSeventeen)
    #expect(pastNames(whole) == ["lock"])
    #expect(whole.notices == [])
  }

  @Test func laterBooksAreMadeOfEarlierOnes() throws {
    var generator = HistoryGenerator(seed: 4)
    let steps = generator.steps(Self.stepCount)
    let whole = try ledger(steps, Self.stepCount)
    let short = try ledger(steps, 20)
    let projector = try whole.projector()
    let earlier = try projector.books(at: short.eventCount)
    let later = try projector.books(at: whole.eventCount, from: earlier)
    #expect(try later.dump() == whole.rebuilt().dump())
    #expect(try earlier.dump() == short.rebuilt().dump())
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
    #expect(pastNames(fixture) == ["1.sqlite", "lock"])
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
          let journal = try JournalDifference(from: before, to: after, environment: environment)
          let request = try ReportWords("journal --environment \(environment)").request
          func lines(_ database: Database) throws -> [String] {
            let csv = try whole.csv(request, from: database)
            return csv.split(separator: "\n").dropFirst().map(String.init)
          }
          let (old, new) = (try lines(before), try lines(after))
          let added = journal.entries.filter { $0.change == .added }.count
          let removed = journal.entries.filter { $0.change == .removed }.count
          #expect(old.count + added - removed == new.count)
          // Without a change the journals are the same, but for what bears on no figure.
          if end == Self.stepCount { #expect(journal.entries.isEmpty && old == new) }
          for entry in journal.entries {
            #expect(entry.before != entry.after)
            #expect(!entry.events.isEmpty || entry.change != .added)
            #expect(entry.events.allSatisfy { size <= $0 && $0 < whole.eventCount })
          }
        }
      }
    }
  }
}
