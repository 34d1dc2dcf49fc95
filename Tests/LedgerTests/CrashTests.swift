// A crash at every call, failed syncs, a full disk: what was acknowledged is there, in order, once.
import Bytes
import Glibc
import Ledger
import TestSupport
import Testing
import Time

@Suite("Crashes and failing storage")
struct CrashTests {
  private static let eventCount = 14
  private static let options = LedgerFixture.smallOptions(block: 700, segment: 1200)

  private func data(_ index: Int) -> String {
    "{\"n\":\(index),\"pad\":\"\(String(repeating: "y", count: index * 53 % 300))\"}"
  }

  private func newLedger() throws -> FaultyStorage {
    let storage = FaultyStorage()
    _ = try LedgerDirectory.create(path: "/ledger", origin: "crash.example", storage: storage)
    return storage
  }

  /// Appends from the log's end up to the last event; returns how many were acknowledged at least.
  private func work(_ storage: FaultyStorage) throws -> Int {
    var acknowledged = 0
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: CrashTests.options)
    acknowledged = writer.nextPosition
    do {
      while acknowledged < CrashTests.eventCount {
        let drafts =
          (acknowledged..<min(acknowledged + 1 + acknowledged % 3, CrashTests.eventCount))
          .map { EventDraft(type: "test.crash", version: 1, data: Array(data($0).utf8)) }
        let result = try writer.append(drafts)
        acknowledged = result.firstPosition + result.count
      }
      try writer.close()
    } catch {
      try? writer.close()
    }
    return acknowledged
  }

  /// The data of all events, after every check that a log can be given.
  private func content(_ storage: FaultyStorage) throws -> [String] {
    let reader = try LogReader(try LedgerDirectory.open(path: "/ledger", storage: storage))
    #expect(reader.damage == nil)
    var found: [String] = []
    var leaves: [Digest32] = []
    let hasher = SHA256()
    try reader.read(from: 0, workers: 0) { chunk in
      try chunk.forEachEvent { event in
        #expect(event.verifyDigest(hasher))
        found.append(String(decoding: event.data, as: UTF8.self))
        leaves.append(event.leafHash(hasher))
      }
      return true
    }
    #expect(reader.head.root == naiveRoot(leaves))
    return found
  }

  /// Recovery must succeed, keep what was acknowledged, and change nothing when it runs again.
  private func checkRecovered(_ storage: FaultyStorage, _ acknowledged: Int) throws {
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    try LedgerWriter.open(directory, options: CrashTests.options).close()
    let found = try content(storage)
    #expect(found.count >= acknowledged)
    #expect(found == (0..<found.count).map(data))
    try LedgerWriter.open(directory, options: CrashTests.options).close()
    #expect(try content(storage) == found)
    #expect(try work(storage) == CrashTests.eventCount)
    #expect(try content(storage) == (0..<CrashTests.eventCount).map(data))
  }

  @Test("A crash at every call loses nothing that was acknowledged")
  func everyCall() throws {
    let whole = try newLedger()
    whole.setFaults(.init())
    #expect(try work(whole) == CrashTests.eventCount)
    let callCount = whole.callCount
    #expect(try content(whole).count == CrashTests.eventCount)
    for call in 1...callCount + 1 {
      for seed in 0..<2 as Range<UInt64> {
        let storage = try newLedger()
        storage.setFaults(.init(crashAtCall: call))
        let acknowledged = (try? work(storage)) ?? 0
        let after = storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        try checkRecovered(after, acknowledged)
      }
    }
  }

  @Test("A crash at every call of the recovery after a crash", arguments: 0..<12 as Range<UInt64>)
  func duringRecovery(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let storage = try newLedger()
    storage.setFaults(.init(crashAtCall: Int.random(in: 60...200, using: &random)))
    let acknowledged = (try? work(storage)) ?? 0
    for call in 1...60 {
      let after = storage.afterCrash(seed: seed)
      after.setFaults(.init(crashAtCall: call))
      let more = max(acknowledged, (try? work(after)) ?? 0)
      try checkRecovered(after.afterCrash(seed: random.next()), more)
    }
  }

  @Test("A failed sync is never acknowledged, and ends the writer", arguments: 1...20)
  func failedSync(_ ordinal: Int) throws {
    let storage = try newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: CrashTests.options)
    storage.setFaults(.init(failSync: ordinal))
    var acknowledged = 0
    var failure: LedgerError?
    for index in 0..<CrashTests.eventCount {
      let draft = EventDraft(type: "test.crash", version: 1, data: Array(data(index).utf8))
      do throws(LedgerError) {
        _ = try writer.append([draft])
        // After the writer has failed nothing is acknowledged any more.
        #expect(failure == nil)
        acknowledged += 1
      } catch {
        if let failure { #expect(error == failure) }
        failure = error
      }
    }
    do { try writer.close() } catch { failure = error }
    if storage.syncCount >= ordinal {
      #expect(failure?.kind == .inputOutput && failure?.operation == "sync")
    }
    storage.setFaults(.init())
    try checkRecovered(storage.afterCrash(seed: UInt64(ordinal)), acknowledged)
  }

  @Test("On a full disk an append is refused, and goes through once there is room")
  func fullDisk() throws {
    let storage = try newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory)
    func draft(_ index: Int) -> EventDraft {
      EventDraft(type: "test.crash", version: 1, data: Array(data(index).utf8))
    }
    for index in 0..<6 {
      storage.setFaults(.init(isFull: true))
      let error = #expect(throws: LedgerError.self) { try writer.append([draft(index)]) }
      #expect(error?.kind == .inputOutput && error?.operation == "write")
      #expect(error?.cause == String(cString: strerror(ENOSPC)))
      #expect(writer.nextPosition == index)
      storage.setFaults(.init())
      #expect(try content(storage).count == index)
      _ = try writer.append([draft(index)])
    }
    try writer.close()
    #expect(try content(storage) == (0..<6).map(data))
  }

  @Test("A block that a full disk has no room for is written once there is room")
  func fullDiskWhileSealing() throws {
    let storage = try newLedger()
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    var options = CrashTests.options
    options.unsealedTailCountMax = 3
    let writer = try LedgerWriter.open(directory, options: options)
    func draft(_ index: Int) -> EventDraft {
      EventDraft(type: "test.crash", version: 1, data: Array(data(index).utf8))
    }
    storage.setFaults(.init(fullSegments: true))
    var count = 0
    // Tails wait to be sealed until no more may.
    let error = #expect(throws: LedgerError.self) {
      while count < 40 {
        _ = try writer.append([draft(count)])
        count += 1
      }
    }
    #expect(error?.operation == "write" && error?.cause == String(cString: strerror(ENOSPC)))
    #expect(writer.failure == nil && (1..<40).contains(count))
    storage.setFaults(.init())
    #expect(try content(storage).count == count)
    let endMs = Timestamp.now() + 60_000
    while (try? writer.append([draft(count)])) == nil, Timestamp.now() < endMs { usleep(20_000) }
    try writer.close()
    #expect(try content(storage) == (0...count).map(data))
  }

  @Test("Interrupted calls, short reads and short writes make no difference")
  func flaky() throws {
    let storage = try newLedger()
    storage.setFaults(.init(isFlaky: true))
    #expect(try work(storage) == CrashTests.eventCount)
    #expect(try content(storage) == (0..<CrashTests.eventCount).map(data))
  }
}
