// How much one pass of retention may erase before an operator must order it.
import Base
import Ledger
import Projections
import TestSupport
import Testing

import Erasure

@Suite("Passes of retention") struct RetentionTests {
  @Test(
    "a pass is held if it erases more than 1,000 events and more than ten times the median",
    arguments: [
      (1_000, [], false), (1_001, [], true), (1_000, [1], false), (1_001, [100], true),
      (1_001, [101], false), (1_010, [101], false), (1_011, [101], true),
      (5_000, [500, 1, 900], false), (5_001, [500, 1, 900], true),
      // The smaller of the two in the middle.
      (1_001, [1, 500], true), (.max, [.max / 10], true), (.max, [.max], false),
    ] as [(Int, [Int], Bool)])
  func unusual(_ count: Int, _ earlier: [Int], _ expected: Bool) {
    expectEqual(RetentionPass.isUnusual(count, earlier: earlier), expected)
  }

  private static func append(_ count: Int, to fixture: LedgerFixture) throws {
    _ = try fixture.append(
      drafts: (0..<count).flatMap { index in
        TestEvent.upload(
          nil, metadata: ["note": "call me"], receipt: "\(fixture.eventCount + index)"
        ).drafts
      })
  }

  @Test("too large a pass is held with its times, requests continue, and an order carries it out")
  func heldUntilOrdered() throws {
    let fixture = try LedgerFixture()
    try fixture.append([.upload(reply(row("1")), user: "u1")])
    try Self.append(1_001, to: fixture)
    var rules = RetentionRules()
    rules.metadataMs = 1
    let nowMs = ms("2040-01-01")
    func pass(isOrdered: Bool) throws -> (
      held: RetentionPass?, records: [ErasureRecord], taken: Int
    ) {
      let writer = try LedgerWriter.open(fixture.directory, options: WriterOptions())
      defer { try? writer.close() }
      let eraser = Eraser(fixture.directory, writer, projections: .standard)
      let records = try eraser.run(
        retention: rules, nowMs: nowMs, isRetentionConfirmed: isOrdered)
      return (eraser.heldRetention, records, eraser.redactedEventCount)
    }
    try ErasureQueue(fixture.directory).add(
      ErasureRecord(
        .user("u1", appFamily: nil), reason: "user_request", requestedAtMs: 0, isUrgent: true))
    let held = try pass(isOrdered: false)
    expectEqual(held.records.map(\.state), [.done])
    expectEqual(held.taken, 0)
    expectEqual(held.held?.eventCount, 1_001)
    expectEqual(held.held?.firstRecordedAtMs, ms("2026-02-01T00:00:01Z"))
    expectEqual(held.held?.lastRecordedAtMs, ms("2026-02-01T00:00:01Z"))

    let preview = try ErasurePreview.of(
      rules, nowMs: nowMs, try LogReader(fixture.directory), try fixture.current())
    expectEqual(preview.retention, held.held)
    #expect(preview.retention?.isUnusual == true)
    let ordered = try pass(isOrdered: true)
    #expect(ordered.held == nil)
    expectEqual(ordered.taken, 1_001)
    // By now this many are usual.
    try Self.append(1_002, to: fixture)
    let usual = try pass(isOrdered: false)
    #expect(usual.held == nil)
    expectEqual(usual.taken, 1_002)
  }

  @Test("an order of retention is kept until its pass is done; a file with other content is damage")
  func orders() throws {
    let folder = try TemporaryDirectory()
    let ledger = try LedgerDirectory.create(path: folder.path("ledger"), origin: "erasure.test")
    let queue = ErasureQueue(ledger)
    #expect(try queue.orderedRetentionMs() == nil)
    try queue.endRetention()
    try queue.orderRetention(nowMs: 1_700_000_000_123)
    try expectEqual(queue.orderedRetentionMs(), 1_700_000_000_123)
    #expect(try queue.records().isEmpty)
    try queue.tidy()
    try expectEqual(queue.orderedRetentionMs(), 1_700_000_000_123)
    try queue.endRetention()
    #expect(try queue.orderedRetentionMs() == nil)
    for text in ["", "now\n", "2026-01-01T00:00:00.000Z"] {
      try ledger.root.folder("erasures").replaceFile("retention", with: Array(text.utf8))
      #expect(throws: ErasureError.self) { try queue.orderedRetentionMs() }
    }
  }
}
