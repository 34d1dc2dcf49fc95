// Events that only a replaced ledger holds.
import Base
import Ledger
import Replication
import TestSupport
import Testing

@Suite struct DivergenceTests {
  private let temporary: TemporaryDirectory
  private let ledger: LedgerFixture
  private let store = MemoryStore()
  private let copy: TestCopy

  /// A ledger that another one took over after five events.
  init() throws {
    temporary = try TemporaryDirectory()
    ledger = try LedgerFixture()
    copy = TestCopy(of: ledger.directory, in: store)
    try ledger.append([.upload(["status": 0], user: "early", receipt: "a")])
    try ledger.append(events(2..<5))
    try copy.copyAll()
    let state = try #require(copy.state)
    try ReplicationRecord(state.newest, sha256: state.newestSHA256).write(to: ledger.directory)
  }

  private func takeOver() throws {
    let path = temporary.path("other")
    _ = try CopyRestore().run(from: RetryingStore(store), to: path)
    _ = try Promotion().run(try LedgerDirectory.open(path: path), RetryingStore(store))
  }

  private func found() throws -> Divergence? {
    try Divergence.find(ledger.directory, RetryingStore(store, limitMs: 500))
  }

  private func written(
    from start: Position
  ) throws -> (lines: [JSONValue], report: DivergedLines.Report) {
    var lines: [JSONValue] = []
    let report = try DivergedLines(try LogReader(ledger.directory), from: start).write { line in
      expectEqual(line.last, 0x0A)
      lines.append(try JSONValue(line))
    }
    return (lines, report)
  }

  // MARK: The point of divergence

  @Test func nothingHasDivergedWhileNobodyTookOver() throws {
    try ledger.append(events(5..<7))
    #expect(try found() == nil)
  }

  @Test func itBeginsWhereTheOtherTookOver() throws {
    try ledger.append(events(5..<7))
    try takeOver()
    let divergence = try #require(try found())
    expectEqual(divergence.start, 5)
    expectEqual(divergence.size, 7)
    expectEqual(divergence.takeover.epoch, 2)
  }

  @Test func aStaleRecordChangesNothing() throws {
    for number in 5..<40 {
      try ledger.append(events(number..<number + 1))
      try copy.copyFrames()
    }
    try takeOver()
    try ledger.append(events(40..<42))
    let divergence = try #require(try found())
    expectEqual(divergence.start, 40)
    expectEqual(divergence.size, 42)
  }

  @Test func aLaterTakeoverDoesNotMoveIt() throws {
    try ledger.append(events(5..<7))
    try takeOver()
    let path = temporary.path("third")
    _ = try CopyRestore().run(from: RetryingStore(store), to: path)
    _ = try Promotion().run(try LedgerDirectory.open(path: path), RetryingStore(store))
    try expectEqual(found()?.takeover.epoch, 2)
    try expectEqual(found()?.start, 5)
  }

  @Test func aLedgerThatNeverWroteTheCopyIsRefused() throws {
    let other = try filledLedger(eventCount: 2)
    #expect(throws: CopyError.neverReplicated) {
      try Divergence.find(other.directory, RetryingStore(store))
    }
    #expect(throws: CopyError.noCopy(store: "memory://test")) {
      try Divergence.find(ledger.directory, RetryingStore(MemoryStore()))
    }
  }

  @Test func aLedgerThatLostEventsIsRefused() throws {
    let shorter = try LedgerFixture()
    try ReplicationRecord(of: ledger.directory)?.write(to: shorter.directory)
    try takeOver()
    #expect(throws: CopyError.shorter(local: 0, confirmed: 5)) {
      try Divergence.find(shorter.directory, RetryingStore(store))
    }
  }

  // MARK: Lines

  @Test func anUploadIsALineWithItsReply() throws {
    let reply: JSONText = ["status": 0, "environment": "Production"]
    try ledger.append([
      .upload(reply, country: "DE", user: "anna", metadata: ["prices": []], receipt: "b")
    ])
    let (lines, report) = try written(from: 5)
    expectEqual(report.receipts, 1)
    expectEqual(report.leftCount, 0)
    let line = try #require(lines.first)
    expectEqual(line["marketplace"], .string("itunes"))
    expectEqual(line["receipt"]?.stringValue, Base64.text(Array("b".utf8)))
    expectEqual(line["user_identifier"], .string("anna"))
    expectEqual(line["country_code"], .string("DE"))
    expectEqual(line["metadata"], .object([.init("prices", .array([]))]))
    expectEqual(line["occurred_at"], .string("2026-01-10T00:00:00.000Z"))
    expectEqual(line["verification"]?["endpoint"], .string("production"))
    expectEqual(line["verification"]?["reply"], (try JSONValue(reply.bytes)))
  }

  @Test func aReplyThatWasUsedAgainStandsInTheLine() throws {
    // The reply at position 1 belongs to the first upload.
    try ledger.append([
      .upload(user: "anna", receipt: "a"), .reuse(1, for: 5),
    ])
    let (lines, report) = try written(from: 5)
    expectEqual(report.receipts, 1)
    expectEqual(lines.first?["verification"]?["reply"]?["status"], .number("0"))
  }

  @Test func anUploadThatIsNotAnsweredHasNoVerification() throws {
    try ledger.append([.upload(user: "anna", receipt: "c")])
    let (lines, _) = try written(from: 5)
    expectEqual(lines.count, 1)
    #expect(lines.first?["verification"] == nil)
  }

  @Test func theNewestValidReplyIsTaken() throws {
    try ledger.append([
      .upload(user: "anna", receipt: "c"), .verify(5, ["status": 0, "n": 1]),
      .verify(5, ["status": 0, "n": 2]),
    ])
    let (lines, report) = try written(from: 5)
    expectEqual(lines.first?["verification"]?["reply"]?["n"], .number("2"))
    expectEqual(report.leftCount, 1)
  }

  @Test func whatNoLineCanSayIsCounted() throws {
    try ledger.append([
      .verify(0, ["status": 0]),
      .prices(["pro.month - EUR 9.99 2026-01-01"]),
      .upload(user: "anna", receipt: "c"),
    ])
    let (lines, report) = try written(from: 5)
    expectEqual(lines.count, 1)
    expectEqual(
      report.left,
      [
        .init(type: "receipt.verified", reason: "about an upload that the copy has"): 1,
        .init(type: "prices.declared", reason: "not an upload"): 1,
      ])
  }

  @Test func theLinesAreTheSameEachTime() throws {
    try ledger.append([
      .upload(["status": 0], user: "anna", receipt: "b"), .upload(user: "bob", receipt: "c"),
    ])
    func bytes() throws -> [UInt8] {
      var bytes: [UInt8] = []
      _ = try DivergedLines(try LogReader(ledger.directory), from: 5).write { bytes += $0 }
      return bytes
    }
    try expectEqual(bytes(), bytes())
  }
}
