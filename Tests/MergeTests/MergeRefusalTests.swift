// What a merge refuses, what a merged ledger refuses, and runs that were interrupted.
import Base
import Ledger
import Merge
import Projections
import TestSupport
import Testing

@Suite struct MergeRefusalTests {
  private static func shops(_ count: Int = 2) throws -> [Shop] {
    try (1...count).map { number in
      let shop = try Shop(UInt8(number))
      try shop.register(at: "2026-02-01")
      try shop.append(
        .upload(reply(row("\(number)")), user: "u1", receipt: "r"), at: "2026-02-02")
      return shop
    }
  }

  @Test("a run that says it has more events than a log can hold is malformed", arguments: [0, 1])
  func tooManyEvents(_ excess: Int) throws {
    let most = 999_999_999_999_999_999
    let data = MergedFrom(
      beforeMs: 0, isByOperator: false, sources: [], eventCount: excess == 0 ? most : .max,
      erasures: []
    ).data
    let read = try? data.withUnsafeBytes { try MergedFrom(data: $0) }
    expectEqual(read?.eventCount, excess == 0 ? most : nil)
  }

  // MARK: Sources

  @Test("a run takes what is before the smallest of the newest times, and no ledger without events")
  func newestTimes() throws {
    let shops = try Self.shops()
    try shops[0].append(.upload(receipt: "s"), at: "2026-02-03")
    let place = try MergedPlace()
    let report = try place.merge(shops)
    expectEqual(report.limitedBy, "shop.example/2")
    expectEqual(report.run?.eventCount, 2)
    expectEqual(try place.merge(shops).run, nil)
    let empty = try Shop(3)
    #expect(throws: MergeError.emptySource("shop.example/3")) {
      try place.merge(shops + [empty], into: "other")
    }
    try place.merge(shops + [empty], until: "2026-02-04", into: "other")
  }

  @Test("a ledger that joins later, and one that is missing, are refused")
  func otherSources() throws {
    let shops = try Self.shops(3)
    let place = try MergedPlace()
    try place.merge(Array(shops[..<2]), until: "2026-02-04")
    #expect(throws: MergeError.otherSources(missing: [], joined: ["shop.example/3"])) {
      try place.merge(shops, until: "2026-02-05")
    }
    let error = MergeError.otherSources(missing: ["shop.example/2"], joined: ["shop.example/3"])
    #expect(throws: error) { try place.merge([shops[0], shops[2]], until: "2026-02-05") }
    expectEqual(error.exitCode, .mismatch)
    expectEqual(error.hint, "Merge into a new directory.")
  }

  @Test("an event before a time up to which all was merged is refused, at that time it is taken")
  func lateEvents() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-05")
    try shops[0].append(.upload(receipt: "s"), at: "2026-02-05")
    expectEqual(try place.merge(shops, until: "2026-02-06").run?.eventCount, 1)
    try shops[1].append(.upload(receipt: "t"), at: "2026-02-05T23:59:59.999Z")
    let error = MergeError.lateEvent(
      origin: "shop.example/2", position: 3, beforeMs: ms("2026-02-06"))
    #expect(throws: error) { try place.merge(shops, until: "2026-02-07") }
    try place.merge(shops, until: "2026-02-07", into: "new")
  }

  @Test("a ledger with another history than the one that was merged is refused")
  func otherHistory() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-05")
    let other = try Self.shops()
    try other[1].append(.upload(receipt: "t"), at: "2026-02-03")
    let restored = try Shop(2)
    try restored.register(["elsewhere"], at: "2026-02-01")
    try restored.append(.upload(reply(row("9")), receipt: "r"), at: "2026-02-02")
    #expect(throws: MergeError.otherHistory(origin: "shop.example/2", size: 3)) {
      try place.merge([shops[0], restored], until: "2026-02-06")
    }
    #expect(throws: MergeError.sameLedger(other[1].directory.path, shops[1].directory.path)) {
      try place.merge([shops[0], other[1], shops[1]], until: "2026-02-06")
    }
  }

  @Test("a merged ledger is no source, and a ledger with events of its own no destination")
  func mergedSource() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-05")
    let merged = try LedgerDirectory.open(path: place.path())
    #expect(throws: MergeError.mergedSource(place.path())) {
      try Merge().run([merged], into: place.path("other"))
    }
    #expect(throws: MergeError.notMerged(shops[1].directory.path)) {
      var merge = Merge()
      merge.untilMs = ms("2026-02-05")
      return try merge.run([shops[0].directory], into: shops[1].directory.path)
    }
    #expect(try MergedLedger.isOne(merged))
    #expect(throws: LedgerError.self) {
      try MergedLedger.refuseAppends(merged, operation: "append")
    }
    #expect(!(try MergedLedger.isOne(shops[0].directory)))
  }

  // MARK: Interrupted runs

  private struct Stop: Error {}

  @Test(
    "a run that was interrupted anywhere refuses readers, and the next one completes it",
    arguments: 1...14)
  func interrupted(at call: Int) throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-02T00:00:00.001Z")
    try shops[0].append(.upload(reply(row("7")), user: "u3", receipt: "x"), at: "2026-02-04")
    try shops[0].erase("u1", at: "2026-02-05")
    try shops[1].append(.upload(receipt: "y"), at: "2026-02-05T12:00:00Z")
    try shops[1].erase("u1", at: "2026-02-07")
    var calls = 0
    place.merge.checkCancelled = {
      calls += 1
      if calls == call { throw Stop() }
    }
    let isStopped: Bool
    do {
      try place.merge(shops, until: "2026-02-06")
      isStopped = false
    } catch is Stop { isStopped = true }
    place.merge.checkCancelled = {}
    if isStopped { try checkMarked(place) }
    try place.merge(shops, until: "2026-02-06")
    try place.merge(shops, until: "2026-02-06", into: "again")
    expectEqual(try place.findings(), [])
    expectEqual(try place.verification(shops).differences, [])
    #expect(!(try place.lines().contains { $0.contains("\"u1\"") }))
  }

  /// While a run is marked, the ledger cannot be opened.
  private func checkMarked(_ place: MergedPlace) throws {
    let directory = try LedgerDirectory.open(path: place.path(), isForMerge: true)
    guard try MergedLedger.isMarked(directory) else { return }
    #expect(throws: LedgerError.self) { try LedgerDirectory.open(path: place.path()) }
  }

  @Test(
    "the events of an interrupted run are completed, wherever it stopped",
    arguments: [0, 1, 2, 3, 4])
  func completed(writtenCount: Int) throws {
    let shops = try Self.shops()
    try shops[0].erase("u1", at: "2026-02-07")
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-05", into: "whole")
    let whole = try place.lines("whole")
    // A ledger that holds only the first events of the run.
    let directory = try LedgerDirectory.create(path: place.path(), origin: "part")
    _ = try directory.allowingRedactions()
    try MergedLedger.mark(directory)
    let writer = try LedgerWriter.open(directory)
    for line in whole.prefix(writtenCount) {
      try Array(line.utf8).withUnsafeBytes { bytes in
        let event = try #require(EventLine(bytes))
        var draft = EventDraft(
          type: String(decoding: event.type, as: UTF8.self), version: event.version,
          data: Array(event.data))
        draft.stored = StoredForm(event, redactedBy: event.redactedBy)
        _ = try writer.append([draft])
      }
    }
    try writer.close()
    #expect(throws: LedgerError.self) { try LedgerDirectory.open(path: place.path()) }
    let report = try place.merge(shops, until: "2026-02-05")
    expectEqual(report.hasCompletedRun, writtenCount > 0)
    expectEqual(try place.lines(), whole)
    if writtenCount > 0 { expectEqual(try place.merge(shops, until: "2026-02-05").run, nil) }
  }

  @Test("a run whose events are no longer what its ledgers give is refused")
  func otherRun() throws {
    let shops = try Self.shops()
    let place = try MergedPlace()
    try place.merge(shops, until: "2026-02-05")
    try MergedLedger.mark(try LedgerDirectory.open(path: place.path()))
    try shops[0].erase("u1", at: "2026-02-07")
    #expect(throws: MergeError.self) { try place.merge(shops, until: "2026-02-05") }
    try place.merge(shops, until: "2026-02-05", into: "new")
  }
}
