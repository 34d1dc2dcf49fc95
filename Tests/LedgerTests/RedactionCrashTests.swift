// A crash or a failure at every call of an erasure: it can be finished, and a commit is never undone.
import Base
import Glibc
import Ledger
import TestSupport
import Testing

@Suite("Crashes while lines are redacted")
struct RedactionCrashTests {
  private static let positions = [1, 2, 6, 10]
  private static let count = 12

  /// A ledger with two closed segments or more, an open one, and a tail.
  private func prepared() throws -> FaultyStorage {
    let storage = try CrashRig.newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    try RedactionRig(directory).fill(Self.count)
    storage.setFaults(.init())
    return storage
  }

  /// The whole erasure by a writer of its own. Returns whether the redacted lines were committed.
  private func erase(
    _ storage: FaultyStorage, isRewrittenEarly: Bool = false
  ) -> (isCommitted: Bool, isDone: Bool) {
    var isCommitted = false
    do {
      let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
      let rig = RedactionRig(directory, isRewrittenEarly: isRewrittenEarly)
      let writer = try LedgerWriter.open(directory, options: rig.options)
      defer { try? writer.close() }
      try rig.erase(Self.positions, with: writer) { isCommitted = true }
      return (isCommitted, true)
    } catch { return (isCommitted, false) }
  }

  /// Expects that nothing erased is shown, that the erasure can be finished, and that the log is
  /// whole afterwards.
  private func check(_ storage: FaultyStorage, isCommitted: Bool, _ place: String) throws {
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let rig = RedactionRig(directory)
    if isCommitted { #expect(try rig.isFree(Self.positions), "\(place): shown before recovery") }
    #expect(try rig.audit().isWhole, "\(place): not whole before recovery")
    let writer = try LedgerWriter.open(directory, options: rig.options)
    if isCommitted { #expect(try rig.isFree(Self.positions), "\(place): shown after recovery") }
    if try RedactedLines.ifPresent(directory) != nil {
      _ = try rig.finish(writer)
    } else if try !rig.isFree(Self.positions) {
      #expect(!isCommitted, "\(place)")
      try rig.erase(Self.positions, with: writer)
    }
    try writer.close()
    let report = try rig.audit()
    #expect(report.isWhole && report.unredactedCount == 0, "\(place): \(report.findings)")
    expectEqual(report.redactedCount, Self.positions.count, "\(place)")
    #expect(try rig.isFree(Self.positions))
    for path in storage.paths where path.hasPrefix("/ledger/log/") {
      #expect(!path.hasSuffix(".new"), "\(place)")
    }
  }

  @Test("A crash at every call", arguments: [false, true])
  func everyCall(isRewrittenEarly: Bool) throws {
    let before = try prepared()
    let whole = before.copy()
    #expect(erase(whole, isRewrittenEarly: isRewrittenEarly) == (true, true))
    let callCount = whole.callCount
    try check(whole, isCommitted: true, "no crash")
    var count = 0
    for call in 1...callCount + 1 {
      for seed in 0...CrashRig.seedCount {
        let storage = before.copy()
        storage.setFaults(.init(crashAtCall: call))
        let (isCommitted, _) = erase(storage, isRewrittenEarly: isRewrittenEarly)
        storage.setFaults(.init())
        let after = seed == 0 ? storage : storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        try check(after, isCommitted: isCommitted, "call \(call), seed \(seed)")
        count += 1
      }
    }
    CrashRig.tell(count, "redaction")
  }

  @Test("A second crash at every call of finishing it")
  func whileFinishing() throws {
    // The lines are committed, and the first segment is rewritten or not.
    let whole = try prepared()
    _ = erase(whole)
    let callCount = whole.callCount
    var count = 0
    for first in [callCount - 60, callCount - 25] {
      let crashed = try prepared()
      crashed.setFaults(.init(crashAtCall: first))
      let (isCommitted, _) = erase(crashed)
      crashed.setFaults(.init())
      for call in 1...80 {
        let storage = crashed.afterCrash(seed: UInt64(first))
        storage.setFaults(.init(crashAtCall: call))
        do {
          let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
          let rig = RedactionRig(directory)
          let writer = try LedgerWriter.open(directory, options: rig.options)
          defer { try? writer.close() }
          if try RedactedLines.ifPresent(directory) != nil { _ = try rig.finish(writer) }
        } catch {}
        storage.setFaults(.init())
        try check(
          storage.afterCrash(seed: UInt64(call)), isCommitted: isCommitted,
          "call \(call) after \(first)")
        count += 1
      }
    }
    CrashRig.tell(count, "finishing a redaction")
  }

  @Test("A call that fails at any place", arguments: [EIO, ENOSPC], [false, true])
  func everyFailure(_ code: Int32, isRewrittenEarly: Bool) throws {
    let before = try prepared()
    let whole = before.copy()
    _ = erase(whole, isRewrittenEarly: isRewrittenEarly)
    let callCount = whole.callCount
    var count = 0
    for call in 1...callCount {
      let storage = before.copy()
      storage.setFaults(.init(failCall: .init(ordinal: call, code: code)))
      let (isCommitted, _) = erase(storage, isRewrittenEarly: isRewrittenEarly)
      storage.setFaults(.init())
      try check(
        storage.afterCrash(seed: UInt64(call)), isCommitted: isCommitted, "call \(call), \(code)")
      try check(storage, isCommitted: isCommitted, "call \(call), \(code), no crash")
      count += 1
    }
    CrashRig.tell(count, "failing calls of a redaction, \(code)")
  }

  @Test(
    "A disk without room for the new segment: nothing is lost, appends continue, and it is done later"
  )
  func fullDisk() throws {
    let storage = try prepared()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let rig = RedactionRig(directory)
    let writer = try LedgerWriter.open(directory, options: rig.options)
    let erasure = try rig.open(writer)
    try writer.sealAll()
    try rig.writeFile(try rig.redacted(Self.positions, by: erasure))
    storage.setFaults(.init(fullFiles: ".jsonl.gz.new"))
    let lines = try #require(try RedactedLines.ifPresent(directory))
    let error = #expect(throws: LedgerError.self) { try writer.rewriteSegments(lines) }
    #expect(error?.cause == systemErrorText(ENOSPC) && writer.failure == nil)
    #expect(storage.paths.allSatisfy { !$0.hasSuffix(".new") })
    _ = try writer.append([RedactionRig.draft(0)])
    #expect(try rig.isFree(Self.positions))
    storage.setFaults(.init())
    _ = try rig.finish(writer)
    _ = try writer.append([RedactionRig.draft(0)])
    try writer.close()
    try check(storage, isCommitted: true, "after room was made")
  }
}
