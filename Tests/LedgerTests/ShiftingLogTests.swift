// Listings of a log that a writer changes meanwhile: they can show a gap that is not there.
import Base
import Glibc
import Ledger
import TestSupport
import Testing

@Suite("Gaps that only a listing shows", .bounded)
struct ShiftingLogTests {
  private static let tailCount = 6

  /// A ledger of `tailCount` tails, of one event each.
  private static func ledger() throws -> (FaultyStorage, LedgerDirectory) {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    var options = LedgerFixture.smallOptions(block: 1)
    options.sealingDelayMs = 3_600_000
    options.closingInheritedLimitMs = 0
    options.closingLimitMs = 0
    let writer = try LedgerWriter.open(directory, options: options)
    for index in 0..<tailCount { _ = try writer.append([CrashRig.draft(index)]) }
    try writer.close()
    return (storage, directory)
  }

  @Test(
    "Listings that leave out now one tail, now another, are not damage",
    arguments: [1, 2, 5, 9, 20])
  func shifting(listingCount: Int) throws {
    let (storage, directory) = try Self.ledger()
    // A refresh lists twice; the second list has segments alone. Between refreshes the names are listed once or twice.
    let hidden = (0..<listingCount).map { tailName($0 % (Self.tailCount - 1)) }
    storage.setFaults(.init(hiddenNames: hidden))
    let reader = try LogReader(directory)
    #expect(reader.damage == nil, "\(String(describing: reader.damage))")
    expectEqual(reader.head.size, Self.tailCount)
  }

  @Test(
    "The same gap in two refreshes is not damage either, as long as the list changes in between")
  func sameGap() throws {
    let (storage, directory) = try Self.ledger()
    // Hidden from every list but one, in two refreshes and between them.
    for shown in 1..<8 {
      var hidden = Array(repeating: tailName(2), count: 8)
      hidden[shown] = tailName(4)
      storage.setFaults(.init(hiddenNames: hidden))
      #expect(try LogReader(directory).damage == nil, "\(shown)")
    }
  }

  @Test("A gap that stays is damage, and its position is named")
  func realGap() throws {
    let (storage, directory) = try Self.ledger()
    storage.remove("/ledger/log/" + tailName(2))
    let damage = try #require(try LogReader(directory).damage?.damage)
    #expect(damage.verdict == .missing && damage.position == 2)
    // A lock file that must not be opened does not hide the damage.
    storage.remove("/ledger/lock")
    storage.placeLink("/ledger/lock", to: "/elsewhere")
    try expectEqual(LogReader(directory).damage?.damage, damage)
  }

  @Test("A gap that stays is damage even while a writer works all the time")
  func realGapBesideAWriter() throws {
    let fixture = try LedgerFixture()
    var options = LedgerFixture.smallOptions(block: 1)
    options.sealingDelayMs = 3_600_000
    let writer = try LedgerWriter.open(fixture.directory, options: options)
    for index in 0..<4 { _ = try writer.append([fixture.draft(index)]) }
    try fixture.remove(tailName(1))
    let monitor = Monitor(false)
    let thread = try WorkerThread {
      var index = 4
      while !monitor.withLock({ $0 }) {
        _ = try? writer.append([fixture.draft(index)])
        index += 1
      }
    }
    let damage = try LogReader(fixture.directory).damage?.damage
    monitor.withLock { $0 = true }
    thread.join()
    #expect(damage?.verdict == .missing && damage?.position == 1)
    try? writer.close()
  }
}
