// Shared by crash tests: small workloads on failing storage, and what must hold after a crash.
import Base
import Foundation
import Ledger
import TestSupport
import Testing

/// A way to use a writer; each reaches other parts of it.
enum CrashWorkload: String, CaseIterable, CustomTestStringConvertible {
  /// One tail, a frame for each event.
  case appendAlone
  /// One tail, several events a frame, some frames of several sectors.
  case batches
  /// Tails become blocks of one segment.
  case sealing
  /// Every block or two begin a segment.
  case rollOver

  var testDescription: String { rawValue }
  var eventCount: Int { self == .appendAlone ? 9 : 14 }

  var options: WriterOptions {
    switch self {
    case .appendAlone, .batches: WriterOptions()
    case .sealing: LedgerFixture.smallOptions(block: 700, segment: 1 << 20)
    case .rollOver: LedgerFixture.smallOptions(block: 700, segment: 1200)
    }
  }

  /// How many events the append at a position holds.
  func batchCount(at position: Int) -> Int {
    let count = self == .appendAlone ? 1 : self == .batches ? 2 + position % 4 : 1 + position % 3
    return min(count, eventCount - position)
  }
}

/// One ledger on failing storage, and the checks.
struct CrashRig {
  let workload: CrashWorkload
  var options: WriterOptions

  init(_ workload: CrashWorkload, options: WriterOptions? = nil) {
    self.workload = workload
    self.options = options ?? workload.options
  }

  /// How often each crash point is tried; `script/test-all crashes` sets more.
  static let seedCount =
    ProcessInfo.processInfo.environment["CRASH_SEEDS"].flatMap { UInt64($0) } ?? 1

  /// Prints how many crash points a test tried; `script/test-all crashes` adds them up.
  static func tell(_ count: Int, _ test: String) { print("crash points tried: \(count) (\(test))") }

  static func newLedger() throws -> FaultyStorage {
    let storage = FaultyStorage()
    _ = try LedgerDirectory.create(path: "/ledger", origin: "crash.example", storage: storage)
    return storage
  }

  static func data(_ index: Int) -> String {
    "{\"n\":\(index),\"pad\":\"\(String(repeating: "y", count: index * 53 % 300))\"}"
  }

  static func draft(_ index: Int) -> EventDraft {
    EventDraft(type: "test.crash", version: 1, data: Array(data(index).utf8))
  }

  /// Appends from the log's end up to the last event, retrying a refused append once; returns how many events were
  /// acknowledged at least.
  func work(_ storage: FaultyStorage) throws -> Int {
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: options)
    var acknowledged = writer.nextPosition
    var attemptCount = 0
    while acknowledged < workload.eventCount, attemptCount < 2 {
      let end = acknowledged + workload.batchCount(at: acknowledged)
      do throws(LedgerError) {
        let result = try writer.append((acknowledged..<end).map(CrashRig.draft))
        expectEqual(result.firstPosition, acknowledged)
        acknowledged = result.firstPosition + result.count
        attemptCount = 0
      } catch { attemptCount += 1 }
    }
    try? writer.close()
    return acknowledged
  }

  /// The data of all events, after every check of a log.
  func content(_ storage: FaultyStorage) throws -> [String] {
    let reader = try LogReader(try LedgerDirectory.open(path: "/ledger", storage: storage))
    #expect(reader.damage == nil)
    var found: [String] = []
    var leaves: [SHA256Digest] = []
    let hasher = SHA256()
    try reader.read(from: 0, workers: 0) { chunk in
      try chunk.forEachEvent { event in
        expectEqual(event.position, found.count)
        #expect(event.verifyDigest(hasher))
        found.append(String(decoding: event.data, as: UTF8.self))
        leaves.append(event.leafHash(hasher))
      }
      return true
    }
    expectEqual(reader.head.root, naiveRoot(leaves))
    return found
  }

  /// Expects that recovery succeeds, keeps what was acknowledged, and changes nothing when it runs again; and that the
  /// workload then finishes, and a power cut does not undo it.
  func checkRecovered(_ storage: FaultyStorage, _ acknowledged: Int, seed: UInt64) throws {
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    try LedgerWriter.open(directory, options: options).close()
    let found = try content(storage)
    #expect(found.count >= acknowledged)
    expectEqual(found, (0..<found.count).map(CrashRig.data))
    try LedgerWriter.open(directory, options: options).close()
    try expectEqual(content(storage), found)
    try expectEqual(work(storage), workload.eventCount)
    let all = (0..<workload.eventCount).map(CrashRig.data)
    try expectEqual(content(storage), all)
    let later = storage.afterCrash(seed: ~seed)
    try LedgerWriter.open(
      LedgerDirectory.open(path: "/ledger", storage: later), options: options
    ).close()
    try expectEqual(content(later), all)
  }
}
