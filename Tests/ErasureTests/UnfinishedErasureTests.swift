// Erasures whose opening is in the log without all of its lists, as in a copy of a writer that was killed.
import Base
import Ledger
import Projections
import TestSupport
import Testing

import Erasure

@Suite("Unfinished erasures") struct UnfinishedErasureTests {
  private static let request = UUID16.random()

  private static func opening(
    _ scope: DataRedacted.Scope = .user, reason: String = "user_request", request: UUID16 = request
  ) -> DataRedacted {
    .opening(.init(request: request, scope: scope, reason: reason))
  }

  private static func list(
    _ erasure: Position, _ part: Int, of partCount: Int, _ lines: [Position] = []
  ) -> DataRedacted {
    .listing(
      .init(
        erasure: erasure, part: part, partCount: partCount, reason: "user_request",
        lines: lines.map {
          .init(position: $0, digest: [UInt8($0)].withUnsafeBytes { SHA256.hash($0) })
        }))
  }

  @Test(
    "an erasure is finished by the very last list, if the lists before it are there",
    arguments: [
      ([opening()], [0]), ([opening(), list(0, 1, of: 1)], []),
      ([opening(), list(0, 1, of: 3), list(0, 2, of: 3)], [0]),
      ([opening(), list(0, 1, of: 3), list(0, 2, of: 2)], []),
      ([opening(), list(0, 2, of: 2)], [0]), ([opening(), list(1, 1, of: 1)], [0]),
      ([list(0, 1, of: 1), opening()], [1]),
      ([opening(), opening(.receipt, request: .random()), list(0, 1, of: 1)], [1]),
      // Erasures without a request are searched for in each pass.
      ([opening(.retention), opening(.position, reason: "restored")], []),
      ([opening(.position, reason: "late_reply"), opening(.position, reason: "mistake")], [1]),
    ] as [([DataRedacted], [Position])])
  func progress(_ events: [DataRedacted], unfinished: [Position]) {
    var progress = ErasureProgress()
    for (position, event) in events.enumerated() { progress.add(event, at: position) }
    expectEqual(progress.unfinished.map(\.position), unfinished)
  }

  /// A ledger of three uploads of two users whose log begins an erasure of the first at position 6.
  private static func ledger(_ lists: [DataRedacted], hasRequest: Bool) throws -> LedgerFixture {
    let fixture = try LedgerFixture()
    try fixture.append([
      .upload(reply(row("1")), user: "u1", receipt: "a"),
      .upload(reply(row("2")), user: "u2", receipt: "b"),
      .upload(reply(row("3")), user: "u1", receipt: "c"),
    ])
    _ = try fixture.directory.allowingRedactions()
    _ = try fixture.append(
      drafts: ([opening()] + lists).map { event in
        EventDraft(type: EventType.dataRedacted.rawValue, version: 1, data: event.data)
      })
    if hasRequest {
      try ErasureQueue(fixture.directory).add(
        ErasureRecord(
          .user("u1", appFamily: nil), reason: "user_request", requestedAtMs: 0, isUrgent: true,
          id: request))
    }
    return fixture
  }

  private static func unfinished(_ fixture: LedgerFixture) throws -> [Position] {
    let fromLog = try LogAudit(fixture.directory).run().unfinishedErasures
    let projector = try fixture.projector()
    try expectEqual(projector.unfinishedErasures(), fromLog)
    _ = try projector.current()
    try expectEqual(fixture.projector().unfinishedErasures(), fromLog)
    return fromLog.map(\.position)
  }

  @Test(
    "whatever lists were copied, the request finishes its erasure, and the log proves it",
    arguments: [
      [], [list(6, 1, of: 2, [0])], [list(6, 1, of: 3, [0]), list(6, 2, of: 3, [1])],
      [list(6, 1, of: 1, [0, 1, 4, 5])], [list(6, 1, of: 2)],
    ])
  func finished(_ lists: [DataRedacted]) throws {
    let fixture = try Self.ledger(lists, hasRequest: true)
    let isComplete = lists.count == 1 && lists == [Self.list(6, 1, of: 1, [0, 1, 4, 5])]
    try expectEqual(Self.unfinished(fixture), (isComplete ? [] : [6]))
    let writer = try LedgerWriter.open(fixture.directory, options: WriterOptions())
    let eraser = Eraser(fixture.directory, writer, projections: .standard)
    let result = try eraser.redactAgain()
    try writer.close()
    #expect(result.wasInterrupted)
    let record = try #require(try ErasureQueue(fixture.directory).record(Self.request))
    expectEqual(record.state, .done)
    expectEqual(record.certificate?.erasure, 6)
    try expectEqual(Self.unfinished(fixture), [])
    let report = try LogAudit(fixture.directory).run()
    #expect(report.findings.isEmpty)
    expectEqual(report.unredactedCount, 0)
    let users = try fixture.csv(
      ReportWords("users --environment all").request, from: try fixture.current())
    #expect(users.contains("(redacted 6)") && !users.contains("u1"))
  }

  @Test(
    "without its request an erasure stays unfinished, but what its lists name is erased all the same"
  )
  func lost() throws {
    let fixture = try Self.ledger([Self.list(6, 1, of: 2, [0])], hasRequest: false)
    let writer = try LedgerWriter.open(fixture.directory, options: WriterOptions())
    let result = try Eraser(fixture.directory, writer, projections: .standard).redactAgain()
    try writer.close()
    expectEqual(result.count, 1)
    try expectEqual(Self.unfinished(fixture), [6])
    #expect(try LogAudit(fixture.directory).run().findings.isEmpty)
  }

  @Test("an erasure that finds nothing to erase gets an empty list")
  func nothingToTake() throws {
    let fixture = try Self.ledger([], hasRequest: false)
    let queue = ErasureQueue(fixture.directory)
    try queue.add(
      ErasureRecord(
        .user("nobody", appFamily: nil), reason: "user_request", requestedAtMs: 0, isUrgent: true,
        id: Self.request))
    let writer = try LedgerWriter.open(fixture.directory, options: WriterOptions())
    let records = try Eraser(fixture.directory, writer, projections: .standard).run()
    try writer.close()
    expectEqual(records.map(\.state), [.done])
    expectEqual(records.first?.certificate?.erasure, 6)
    try expectEqual(Self.unfinished(fixture), [])
  }
}
