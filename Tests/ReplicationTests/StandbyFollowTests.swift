// Restoring again into a ledger that was restored: it follows the copy, erasures included.
import Base
import Foundation
import Ledger
import Replication
import TestSupport
import Testing

@Suite("restoring again into a standby", .bounded) struct StandbyFollowTests {
  private let temporary: TemporaryDirectory
  private var path: String { temporary.path("standby") }

  init() throws { temporary = try TemporaryDirectory() }

  /// Restores, and counts how often projections had to be forgotten.
  private func restore(
    _ rig: ReplicationRig, _ change: (inout CopyRestore) -> Void = { _ in },
    forgets: @escaping () throws -> Void = {}
  ) throws -> (report: CopyRestore.Report, forgotten: Int) {
    var restore = CopyRestore()
    change(&restore)
    let count = Monitor(0)
    restore.forgetProjections = { _ in
      count.withLock { $0 += 1 }
      try forgets()
    }
    let report = try restore.run(from: RetryingStore(MemoryStore(sharing: rig.content)), to: path)
    return (report, count.withLock { $0 })
  }

  private func expectSame(
    _ rig: ReplicationRig, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let directory = try LedgerDirectory.open(path: path)
    #expect(try root(of: directory) == root(of: rig.directory), sourceLocation: sourceLocation)
    #expect(try isWhole(directory), sourceLocation: sourceLocation)
    #expect(
      try LogReader(directory, .durable).head.size == size(of: rig.directory),
      "what is published", sourceLocation: sourceLocation)
    #expect(try Standby(of: directory)?.reason == .restored, sourceLocation: sourceLocation)
    let names = try FileManager.default.contentsOfDirectory(atPath: path + "/log")
    #expect(names.allSatisfy { !$0.hasSuffix(".new") }, sourceLocation: sourceLocation)
  }

  @Test("it continues where it was, however the log has changed meanwhile")
  func continued() throws {
    let rig = try ReplicationRig()
    try rig.append(10)
    try rig.copyAll()
    #expect(try restore(rig).report.continuedFrom == nil)
    var known = 10
    for (count, seals) in [(3, false), (20, true), (1, false), (40, true), (2, false)] {
      try rig.append(count)
      if seals { try rig.seal() }
      try rig.copyAll()
      let (report, forgotten) = try restore(rig)
      expectEqual(report.continuedFrom, known)
      known += count
      expectEqual(report.size, known)
      expectEqual(forgotten, 0)
      try expectSame(rig)
    }
    let (again, forgotten) = try restore(rig)
    expectEqual(again.continuedFrom, known)
    expectEqual(again.fetched, FetchCounts())
    expectEqual(forgotten, 0)
    _ = try Promotion().run(
      try LedgerDirectory.open(path: path), RetryingStore(MemoryStore(sharing: rig.content)))
    #expect(try Standby(of: try LedgerDirectory.open(path: path)) == nil)
  }

  @Test(
    "data that an erasure removed is removed here too, wherever it was",
    arguments: [[0], [25], [59, 61], [61], [0, 30, 62]])
  func erased(_ positions: [Int]) throws {
    let rig = try ReplicationRig(block: 1_500, segment: 5_000)
    try rig.append(60)
    try rig.seal()
    try rig.append(3)
    try rig.copyAll()
    _ = try restore(rig)
    func holds(_ position: Int) throws -> Bool {
      let line = try LogReader(try LedgerDirectory.open(path: path)).event(at: position)
      return String(decoding: line, as: UTF8.self).contains("\"who\"")
    }
    for position in positions { #expect(try holds(position)) }
    try rig.erase(positions)
    try rig.append(2)
    try rig.copyAll()
    // A failed step is repeated.
    #expect(throws: CancellationError.self) {
      try restore(rig, forgets: { throw CancellationError() })
    }
    try expectEqual(restore(rig).forgotten, 1)
    for position in positions { #expect(try !holds(position)) }
    try expectSame(rig)
    try expectEqual(
      LogAudit(try LedgerDirectory.open(path: path)).run().redactedCount, positions.count)
  }

  @Test("requests and webhooks that the copy no longer has are removed")
  func openWork() throws {
    let rig = try ReplicationRig()
    try rig.append(3)
    let id = "00000000-0000-4000-8000-000000000001"
    let request = #"{"id":"\#(id)","state":"waiting","user_identifier":"alice"}"#
    try rig.directory.root.madeFolder("erasures").replaceFile(
      "\(id).json", with: Array(request.utf8))
    try rig.copyAll()
    _ = try restore(rig)
    let file = "\(path)/erasures/\(id).json"
    #expect(FileManager.default.fileExists(atPath: file))
    rig.stop()
    try rig.directory.root.folder("erasures").unlink("\(id).json")
    try rig.append(1)
    try rig.copyAll()
    _ = try restore(rig)
    #expect(!FileManager.default.fileExists(atPath: file))
  }

  @Test("a standby that cannot follow is refused and stays as it was")
  func refused() throws {
    let rig = try ReplicationRig()
    try rig.append(10)
    try rig.copyAll()
    _ = try restore(rig)
    try rig.append(5)
    try rig.copyAll()
    let before = try files(of: path)
    for change in [{ $0.size = 3 }, { $0.untilMs = 0 }, { $0.isPartial = true }]
      as [(inout CopyRestore) -> Void]
    {
      let error = #expect(throws: CopyError.self) { try restore(rig, change) }
      expectEqual(error?.exitCode, .failed)
    }
    // Another ledger's copy, which has another history.
    let other = try ReplicationRig()
    try other.append(20)
    try other.copyAll()
    #expect(throws: CopyError.self) { try restore(other) }
    try expectEqual(files(of: path), before)
    let directory = try LedgerDirectory.open(path: path)
    try Standby(reason: .fenced, step: 1, epoch: 2).write(to: directory)
    #expect(throws: LedgerError.self) { try restore(rig) }
    try Standby.remove(from: directory)
    #expect(throws: LedgerError.self) { try restore(rig) }
    try expectEqual(files(of: path), before)
  }

  @Test("events until a time are restored, and the newest state is listed")
  func times() throws {
    let rig = try ReplicationRig()
    let days: [Int64] = [0, 0, 1, 3].map { ms("2026-01-10T12:00:00Z") + $0 * Timestamp.dayMs }
    let clock = Monitor(days[0])
    rig.writerOptions.clock = { clock.withLock { $0 } }
    for (index, day) in days.enumerated() {
      clock.withLock { $0 = day + Int64(index) }
      try rig.append(5)
      try rig.copyAll()
    }
    let store = RetryingStore(MemoryStore(sharing: rig.content))
    let listing = try #require(try CopyListing(store))
    expectEqual(listing.newest.size, 20)
    // All steps were made today, unless midnight has just passed.
    expectEqual(listing.points.first?.size, 20)
    #expect(1...2 ~= listing.points.count)
    for (until, size) in [
      (days[0] - 1, 0), (days[0], 5), (days[1] + 1, 10), (days[2], 10), (days[2] + 2, 15),
      (.max / 2, 20),
    ] {
      var restore = CopyRestore()
      restore.untilMs = until
      let path = temporary.path("until-\(until)")
      let report = try restore.run(from: store, to: path)
      expectEqual(report.size, size)
      try expectEqual(
        root(of: try LedgerDirectory.open(path: path)), root(of: rig.directory, at: size))
    }
  }
}
