// Whatever is redacted, every figure and every exception stays, at any position.
import Base
import Erasure
import Ledger
import Projections
import TestSupport
import Testing

@Suite struct KeptFiguresTests {
  private static let stepCount = 60
  private static let users = ["u1", "u2", "=user", "ü"]

  /// A random history of every type that loses data.
  private static func fixture(seed: UInt64) throws -> LedgerFixture {
    let fixture = try LedgerFixture(blockByteCount: 4 << 10)
    var generator = HistoryGenerator(seed: seed)
    var signed = SignedHistory(random: SeededRandom(seed: seed))
    var steps: [TestEvent] = []
    for _ in 0..<stepCount {
      if signed.random.chance(percent: 35) {
        steps.append(signed.step(user: "u1"))
        generator.passOver(1)
      } else {
        steps += generator.steps(1)
      }
    }
    try fixture.append(steps)
    return fixture
  }

  private static func figures(_ fixture: LedgerFixture, at sizes: [Int]) throws -> [[String]] {
    try sizes.flatMap { size in try everyReport.map { try fixture.figures($0, at: size) } }
  }

  private static func expectSame(
    _ before: [[String]], _ after: [[String]], at sizes: [Int], _ how: String
  ) {
    let names = sizes.flatMap { size in everyReport.map { "\($0) at \(size)" } }
    #expect(before.count == after.count && before.count == names.count)
    for (name, (old, new)) in zip(names, zip(before, after)) where old != new {
      let gone = Set(old).subtracting(new).sorted().prefix(4)
      let come = Set(new).subtracting(old).sorted().prefix(4)
      Issue.record(
        "\(how): \(name): \(old.count) rows, now \(new.count); gone: \(gone); come: \(come)")
    }
  }

  /// Each user has an erasure. Events that name no user, or that show purchases, belong to the first.
  private static func takings(_ event: EventLine) throws -> Taking? {
    switch EventType(event.type) {
    case .receiptUploaded:
      let view = try ReceiptUploadedView(data: event.data, isRedacted: event.isRedacted)
      let place = view.userIdentifier.flatMap { users.firstIndex(of: $0.string) } ?? 0
      // Several users uploaded the receipt, so its id must stay the same in each erasure.
      return Taking(erasure: place, extents: [.names, .receiptKeepingID])
    case .receiptVerified, .transactionsReceived, .notificationReceived, .transactionsFetched:
      return Taking()
    default: return nil
    }
  }

  @Test(
    "All people are erased: every figure and exception stays",
    arguments: 1...8 as ClosedRange<UInt64>)
  func everyone(seed: UInt64) throws {
    let fixture = try Self.fixture(seed: seed)
    let end = fixture.eventCount
    let sizes = [end / 3, end * 2 / 3, end]
    let before = try Self.figures(fixture, at: sizes)
    let kept = try fixture.redact(erasures: Self.users.count, Self.takings)
    #expect(kept.count > end / 3, "a history that loses nothing tests nothing")
    Self.expectSame(before, try Self.figures(fixture, at: sizes), at: sizes, "seed \(seed)")
    // So do the figures at the erasures themselves.
    let now = try everyReport.map { try fixture.figures($0, at: fixture.eventCount) }
    Self.expectSame(before.suffix(everyReport.count), now, at: [end], "seed \(seed), afterwards")
  }

  @Test(
    "Kept data holds nothing more to erase: a further erasure changes nothing",
    arguments: 11...14 as ClosedRange<UInt64>)
  func again(seed: UInt64) throws {
    let fixture = try Self.fixture(seed: seed)
    try fixture.redact(erasures: Self.users.count, Self.takings)
    let reducer = try LineRedactor(
      erasure: fixture.eventCount, Ownership(), try fixture.rebuilt(),
      lineDigest: { KeptLine.hidden($0) })
    var redactedCount = 0
    try LogReader(fixture.directory).read(from: 0, to: fixture.eventCount) { chunk in
      try chunk.forEachEvent { event in
        guard event.isRedacted else { return }
        redactedCount += 1
        let more = try reducer.kept(of: event, [.whole])
        let text = more.map { String(decoding: $0, as: UTF8.self) } ?? ""
        #expect(
          more == nil,
          "seed \(seed), position \(event.position): \(String(decoding: event.data, as: UTF8.self)) became \(text)"
        )
      }
      return true
    }
    #expect(redactedCount > 0)
  }

  @Test(
    "One user is erased by request: every figure stays", arguments: 21...26 as ClosedRange<UInt64>)
  func oneUser(seed: UInt64) throws {
    let fixture = try Self.fixture(seed: seed)
    let end = fixture.eventCount
    let sizes = [end / 2, end]
    // An unreadable quantity of a sale that others show too becomes a mark in some lines and stays in others, so its
    // exceptions have two details.
    func figures() throws -> [[String]] {
      try Self.figures(fixture, at: sizes).map { rows in
        rows.filter { !$0.contains(#""bad_quantity""#) }
      }
    }
    let before = try figures()
    try ErasureQueue(fixture.directory).add(
      ErasureRecord(
        .user("u1", appFamily: nil), reason: "user_request", requestedAtMs: 0, isUrgent: true))
    let writer = try LedgerWriter.open(fixture.directory, options: WriterOptions())
    let records = try Eraser(fixture.directory, writer, projections: .standard).run()
    try writer.close()
    expectEqual(records.map(\.state), [.done])
    Self.expectSame(before, try figures(), at: sizes, "seed \(seed)")
  }
}
