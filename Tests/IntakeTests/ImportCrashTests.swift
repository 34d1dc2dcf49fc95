// An import, and the declarations after it, with a crash at every call: each line once, nothing
// lost.
import AppStore
import Base
import Foundation
import Intake
import Ledger
import TestSupport
import Testing

@Suite("An import that crashes")
struct ImportCrashTests {
  private static let lineCount = 12
  private static let lines = (0..<lineCount).map { index in
    index % 3 == 0
      ? Sample.line(transaction: index) : Sample.recorded(transaction: index)
  }
  private static let declarations: [TestEvent] = [
    .prices(["app.month - EUR 4.99 2026-01-01"]), .rates(source: "ecb", ["2026-01-02 EUR USD 1.1"]),
  ]

  /// Blocks and segments of a few lines.
  private var options: WriterOptions {
    var options = WriterOptions()
    options.blockByteCount = 4000
    options.segmentByteCount = 3000
    return options
  }

  /// The log's content: a line's digest for each upload, and the types of all events.
  private func content(_ storage: FaultyStorage) throws -> (
    digests: [SHA256Digest], types: [String]
  ) {
    let reader = try LogReader(try LedgerDirectory.open(path: "/ledger", storage: storage))
    #expect(reader.damage == nil)
    var digests: [SHA256Digest] = []
    var types: [String] = []
    try reader.read(from: 0, workers: 0) { chunk in
      try chunk.forEachEvent { event in
        types.append(String(decoding: event.type, as: UTF8.self))
        guard types.last == "receipt.uploaded" else { return }
        let data = try JSONValue(Array(event.data))
        let hex = try #require(data["line_sha256"]?.stringValue)
        digests.append(try #require(Array(hex.utf8).withUnsafeBytes { SHA256Digest(hex: $0) }))
      }
      return true
    }
    return (digests, types)
  }

  /// Imports unknown lines, then adds missing declarations.
  private func work(_ storage: FaultyStorage, _ path: String) throws -> Bool {
    let directory = try LedgerDirectory.open(path: "/ledger", storage: storage)
    let writer = try LedgerWriter.open(directory, options: options)
    defer { try? writer.close() }
    let before = try content(storage)
    let known = FakeKnownLines()
    known.digests = Set(before.digests)
    let stop = StopFlag()
    let summary = Importer(
      try ImportInput.openAll([path], spoolFolder: nil, stop: stop), into: writer,
      families: FakeFamilies(), known: known, verifier: FakeChecker(),
      signedObjects: SignedObjectVerifier(), options: ImportOptions(),
      stop: stop, nowMs: { Sample.nowMs }, onProblem: { _ in }
    ).run()
    guard summary.exitCode == .done else { return false }
    for declaration in Self.declarations {
      for draft in declaration.drafts where !before.types.contains(draft.type) {
        _ = try writer.append([draft])
      }
    }
    try writer.close()
    return true
  }

  @Test(
    "A crash at every call: what succeeded is there, and the next run completes it, each line once"
  )
  func everyCall() throws {
    let files = try TemporaryDirectory()
    let path = try files.write("import.ndjson", Self.lines.joined(separator: "\n"))
    func newLedger() throws -> FaultyStorage {
      let storage = FaultyStorage()
      _ = try LedgerDirectory.create(path: "/ledger", origin: "crash.example", storage: storage)
      storage.setFaults(.init())
      return storage
    }
    let whole = try newLedger()
    #expect(try work(whole, path))
    let expected = try content(whole)
    expectEqual(expected.digests.count, Self.lineCount)
    let callCount = whole.callCount
    var count = 0
    for call in 1...callCount + 1 {
      let storage = try newLedger()
      storage.setFaults(.init(crashAtCall: call))
      let isDone = (try? work(storage, path)) ?? false
      let after = storage.afterCrash(seed: UInt64(call))
      // An upload and its verification share a frame: neither is there without the other.
      try LedgerWriter.open(
        LedgerDirectory.open(path: "/ledger", storage: after), options: options
      ).close()
      let found = try content(after)
      expectEqual(found.types, Array(expected.types[..<found.types.count]), "call \(call)")
      if found.types.count < expected.types.count {
        #expect(!isDone, "call \(call)")
        let next = expected.types[found.types.count]
        #expect(next != "receipt.verified", "call \(call)")
      }
      #expect(try work(after, path), "call \(call)")
      let final = try content(after)
      #expect(final.types == expected.types && final.digests == expected.digests, "call \(call)")
      count += 1
    }
    print("crash points tried: \(count) (import and declarations)")
  }
}
