// A ledger in a temporary directory, a store in memory, and a replicator between them.
import Base
import Foundation
import Glibc
import Ledger
import Replication
import TestSupport
import Testing

/// A ledger with small blocks and segments that is copied to a store in memory.
final class ReplicationRig {
  private let temporary: TemporaryDirectory
  let directory: LedgerDirectory
  /// The stored objects. Each replicator has its own connection to them, since stopping it ends
  /// that connection.
  let content: MemoryStore
  private(set) var store: MemoryStore
  /// The faults that the next replicator meets.
  var script: MemoryStore.Script = { _ in .happens }
  var options: ReplicatorOptions
  var writerOptions: WriterOptions
  private var writer: LedgerWriter?
  private(set) var replicator: Replicator?
  let notices = Monitor<[String]>([])
  let refusals = Monitor<[LedgerError]>([])

  init(
    _ content: MemoryStore = MemoryStore(), copyOf other: ReplicationRig? = nil,
    block: Int = 1_500, segment: Int = 1_600
  ) throws {
    temporary = try TemporaryDirectory()
    self.content = content
    store = content
    let path = temporary.path("ledger")
    if let other {
      try FileManager.default.copyItem(atPath: other.directory.path, toPath: path)
      directory = try LedgerDirectory.open(path: path)
    } else {
      directory = try LedgerDirectory.create(path: path, origin: "receipts.example/copy")
    }
    options = ReplicatorOptions()
    options.delayMs = 20
    options.pollMs = 5
    options.checkMs = 20
    options.deletionPauseMs = 20
    options.retryMsMax = 10
    options.workMs = 100
    options.probe = { _ in }
    writerOptions = WriterOptions()
    writerOptions.blockByteCount = block
    writerOptions.segmentByteCount = segment
    writerOptions.closingLimitMs = 3_600_000
    // No tail becomes a block behind a test's back, however slow the machine.
    writerOptions.sealingRestMs = 3_600_000
    options.notice = { [notices] text in notices.withLock { $0.append(text) } }
    options.onFenced = { [refusals] error in refusals.withLock { $0.append(error) } }
  }

  deinit {
    replicator?.stop(deadlineMs: 0)
    try? writer?.close()
  }

  // MARK: The ledger

  func openWriter() throws -> LedgerWriter {
    if let writer { return writer }
    let writer = try LedgerWriter.open(directory, options: writerOptions)
    self.writer = writer
    return writer
  }

  static func draft(_ index: Int, byteCount: Int = 100) -> EventDraft {
    // Incompressible text, so that blocks and segments have the sizes that tests expect.
    var random = SeededRandom(seed: UInt64(index))
    let digits = Array("0123456789abcdefghijklmnopqrstuvwxyz")
    let text = String((0..<byteCount).map { _ in digits.randomElement(using: &random) ?? "-" })
    return EventDraft(
      type: "test.person", version: 1, data: Array("{\"n\":\(index),\"who\":\"\(text)\"}".utf8))
  }

  /// Appends events, each in a frame of its own.
  func append(_ count: Int, byteCount: Int = 100) throws {
    let writer = try openWriter()
    for _ in 0..<count {
      _ = try writer.append([Self.draft(writer.nextPosition, byteCount: byteCount)])
    }
  }

  func closeWriter() throws {
    try writer?.close()
    writer = nil
  }

  func seal() throws { try openWriter().sealAll() }

  /// The lines of the whole log, as readers show them.
  func logLines() throws -> [[UInt8]] {
    let reader = try LogReader(directory)
    return try (0..<reader.head.size).map { try reader.event(at: $0) }
  }

  // MARK: Erasures

  /// Redacts events as an erasure does. Tests can look between its steps.
  func erase(
    _ positions: [Position], sealed: () throws -> Void = {}, committed: () throws -> Void = {},
    afterListing: () throws -> Void = {}
  ) throws {
    let writer = try openWriter()
    _ = try directory.allowingRedactions()
    let opening = DataRedacted.Opening(request: .random(), scope: .user, reason: "request")
    let erasure = try writer.append([draft(.opening(opening))]).firstPosition
    try writer.sealAll()
    try sealed()
    let reader = try LogReader(directory)
    let hasher = SHA256()
    let file = try RedactionFileWriter(directory, pass: .random())
    var listed: [DataRedacted.Line] = []
    for position in positions {
      let line = try reader.event(at: position).withUnsafeBytes { bytes in
        try #require(EventLine(bytes)).redacted(
          by: erasure, kept: Array("{\"n\":\(position)}".utf8), hasher)
      }
      try file.append(line: line)
      try line.withUnsafeBytes { bytes in
        listed.append(
          .init(position: position, digest: try #require(EventLine(bytes)).contentDigest(hasher)))
      }
    }
    try file.finish()
    try file.commit()
    try committed()
    _ = try writer.append([
      draft(
        .listing(
          .init(
            erasure: erasure, part: 1, partCount: 1, reason: "request", lines: listed)))
    ])
    try afterListing()
    try finishErasure()
  }

  /// Rewrites the segments of an erasure whose lines are listed.
  func finishErasure() throws {
    let writer = try openWriter()
    try writer.sealAll()
    try writer.rewriteSegments(try #require(try RedactedLines.ifPresent(directory)))
    try RedactionFile.remove(from: directory)
  }

  private func draft(_ event: DataRedacted) -> EventDraft {
    EventDraft(
      type: EventType.dataRedacted.rawValue, version: EventType.dataRedacted.currentVersion,
      data: event.data)
  }

  // MARK: The copy

  @discardableResult
  func start() throws -> Replicator {
    store = MemoryStore(sharing: content)
    store.setScript(script)
    let replicator = Replicator(directory, store, options: options)
    try replicator.start()
    self.replicator = replicator
    return replicator
  }

  /// - Parameter deadlineMs: how long it tries to confirm what is on disk. At 0 it ends as after a crash, except that
  ///   it writes its records.
  func stop(deadlineMs: Int64 = 0) {
    replicator?.stop(deadlineMs: deadlineMs)
    replicator = nil
  }

  /// Copies everything and waits until nothing is left to do.
  func copyAll() throws {
    let replicator = try replicator ?? start()
    let isDone = try replicator.copyAll(giveUpMs: 120_000)
    #expect(isDone)
  }

  func check() throws -> CopyCheck { try CopyCheck(content.objects) }

  /// Expects that the copy holds what is on disk, byte for byte, and nothing else.
  /// - Parameter tails: whether tails begin where they do on disk.
  func expectWhole(
    tails: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let check = try check()
    let reader = try LogReader(directory)
    #expect(check.size == reader.head.size, sourceLocation: sourceLocation)
    #expect(check.root == reader.head.root.hex, sourceLocation: sourceLocation)
    #expect(check.unnamedKeys == [], sourceLocation: sourceLocation)
    #expect(check.supersededSteps == [], sourceLocation: sourceLocation)
    let same = try check.lines(like: directory) == logLines()
    #expect(same, "the lines differ", sourceLocation: sourceLocation)
    let objects = content.objects
    for segment in check.segments {
      let same = objects[segment.key] == file(segment.first)
      #expect(same, "segment \(segment.first) differs", sourceLocation: sourceLocation)
    }
    if let first = check.blocks.first?.first {
      let same = check.blocks.flatMap { objects[$0.key] ?? [] } == file(first)
      #expect(same, "the newest segment differs", sourceLocation: sourceLocation)
    }
    for (tail, frames) in Dictionary(grouping: check.frames, by: \.tail) where tails {
      let same = frames.flatMap(\.bytes) == self.tail(tail)
      #expect(same, "tail \(tail) differs", sourceLocation: sourceLocation)
    }
  }

  private func file(_ first: Int) -> [UInt8]? { bytes(padded(first) + ".jsonl.gz") }
  private func tail(_ first: Int) -> [UInt8]? { bytes("tail-" + padded(first) + ".log") }

  private func padded(_ number: Int) -> String {
    String(repeating: "0", count: 20 - String(number).count) + String(number)
  }

  private func bytes(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: directory.path + "/log/" + name).map(Array.init)
  }

  /// Waits for a condition; false if that takes too long.
  func wait(_ condition: () throws -> Bool) rethrows -> Bool { try eventually(condition) }
}
