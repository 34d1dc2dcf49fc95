// A small ledger, the same on every run: what segments and tails are made from and judged beside.
@testable import Base
@testable import Ledger
import Synchronization

/// Logs in memory that begin with an input.
enum SampleLedger {
  static let path = "/ledger"
  static let segmentPath = "\(path)/log/\(Format.segmentName(0))"
  static let tailPath = "\(path)/log/\(Format.tailName(0))"

  /// The files of a ledger that holds nothing yet.
  static let emptyFiles: [String: [UInt8]] = {
    let storage = MemoryStorage()
    do {
      _ = try LedgerDirectory.create(
        path: path, origin: "receipts.example/fuzz", storage: storage,
        id: LedgerID(random: Array(0..<16)), createdAtMs: 1_767_225_600_000)
    } catch { fatalError("the sample ledger cannot be made: \(error)") }
    return storage.contents
  }()

  /// The empty ledger with other files beside or instead of its own.
  static func directory(
    replacing files: [String: [UInt8]]
  ) -> (directory: LedgerDirectory, storage: MemoryStorage) {
    let storage = MemoryStorage(emptyFiles.merging(files) { $1 })
    do { return (try LedgerDirectory.open(path: path, storage: storage), storage) } catch {
      fatalError("the sample ledger does not open: \(error)")
    }
  }

  /// The files of a ledger with so many events.
  /// - Parameters:
  ///   - block: at how many bytes a tail is sealed.
  ///   - segment: at how many bytes a segment ends.
  static func files(
    eventCount: Int, block: Int, segment: Int, together: Int = 1
  ) throws -> [String: [UInt8]] {
    let (directory, storage) = directory(replacing: [:])
    let writer = try LedgerWriter.open(directory, options: options(block, segment))
    for first in stride(from: 0, to: eventCount, by: together) {
      let drafts = (first..<min(first + together, eventCount)).map { index in
        EventDraft(
          type: index % 3 == 0 ? "receipt.uploaded" : "app.registered", version: 1,
          data: Array(
            "{\"n\":\(index),\"pad\":\"\(String(repeating: "x", count: index % 7))\"}".utf8))
      }
      _ = try writer.append(drafts)
    }
    try writer.close()
    return storage.contents
  }

  static func options(_ block: Int, _ segment: Int) -> WriterOptions {
    var options = WriterOptions()
    options.blockByteCount = block
    options.segmentByteCount = segment
    let time = Atomic<Int64>(1_767_225_600_000)
    let clock = SharedClock(time)
    options.clock = { clock.next() }
    options.random = { buffer in
      for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index &* 37) }
      return true
    }
    return options
  }

  private final class SharedClock: Sendable {
    private let time: Atomic<Int64>

    init(_ time: consuming Atomic<Int64>) { self.time = time }

    func next() -> Int64 { time.add(7, ordering: .relaxed).newValue }
  }
}

/// What reading, auditing and recovering say about a log, and how they must agree.
enum LogCheck {
  /// Reads, audits and recovers the log that consists of these files.
  static func run(_ files: [String: [UInt8]]) {
    let (directory, storage) = SampleLedger.directory(replacing: files)
    let read = read(directory)
    let audit: AuditReport
    do { audit = try LogAudit(directory, workers: 0).run() } catch {
      return require(false, "an audit looks at everything: \(error)")
    }
    if audit.isWhole {
      require(read.fault == nil, "an audit that finds nothing means a log that reads: \(read)")
      require(audit.size == read.lines.count, "an audit counts the events that are read")
      require(audit.frontier == read.frontier, "an audit's tree is that of the events")
    } else {
      require(audit.findings.allSatisfy { !$0.cause.isEmpty }, "findings have causes")
    }
    require(storage.contents == SampleLedger.emptyFiles.merging(files) { $1 }, "reading is reading")
    recover(directory, storage, read)
  }

  /// What a reader found.
  private struct Reading {
    var lines: [[UInt8]] = []
    var frontier = Frontier()
    var fault: LedgerError?
    /// Damage that opening alone found.
    var hasOpeningFault = false
  }

  private static func read(_ directory: LedgerDirectory) -> Reading {
    var reading = Reading()
    let hasher = SHA256()
    do {
      let reader = try LogReader(directory)
      reading.hasOpeningFault = reader.damage != nil
      try reader.read(from: 0, workers: 0) { chunk in
        require(chunk.firstPosition == reading.lines.count, "chunks follow each other")
        try chunk.forEachEvent { event in
          require(event.position == reading.lines.count, "positions follow each other")
          require(event.data.first == 0x7B && event.data.last == 0x7D, "data is in braces")
          reading.lines.append(Array(event.bytes))
          reading.frontier.append(leafHash: event.leafHash(hasher), hasher)
          checkLine(event)
        }
        // A block's header says how many lines there are; only an audit counts them.
        guard chunk.endPosition == reading.lines.count else {
          throw LedgerError(.invalidInput, operation: "read", object: "chunk", cause: "short")
        }
        return true
      }
      if reader.damage == nil {
        require(reader.head.size == reading.lines.count, "the head is where reading ends")
      }
    } catch let fault as LedgerError {
      reading.fault = fault
    } catch { require(false, "readers throw their own errors: \(error)") }
    return reading
  }

  /// A line whose digest is right is written again as it stands.
  private static func checkLine(_ event: EventLine) {
    guard event.verifyDigest(SHA256()) else { return }
    let salt = SaltText.withDecoded(event.saltText) { Array($0) } ?? []
    let draft = EventDraft(
      type: String(decoding: event.type, as: UTF8.self), version: event.version,
      data: Array(event.data))
    guard draft.fault(eventCount: 1) == nil else { return }
    let buffer = ByteBuffer()
    EventEncoder().append(
      salt.withUnsafeBytes { PreparedEvent(draft, salt: $0, SHA256()) },
      position: event.position, firstPosition: event.position, timeMs: event.recordedAtMs,
      to: buffer)
    require(Array(buffer.bytes) == Array(event.bytes) + [0x0A], "a line has one form")
  }

  private static func recover(
    _ directory: LedgerDirectory, _ storage: MemoryStorage, _ before: Reading
  ) {
    let options = SampleLedger.options(1 << 20, 1 << 20)
    let contents = storage.contents
    var first = Recovery(directory, options)
    do {
      let recovered = try first.run()
      require(!before.hasOpeningFault, "a damaged log is not written to")
      guard before.fault == nil else { return }
      require(recovered.nextPosition == before.lines.count, "recovery loses and adds nothing")
      let after = read(directory)
      require(after.lines == before.lines, "the events stay what they are")
      require(after.frontier == before.frontier, "the tree stays what it is")
      var second = Recovery(directory, options)
      require(try second.run().report.tornFrame == nil, "what is cut off is gone")
      require(read(directory).lines == before.lines, "recovering again changes nothing")
    } catch {
      require(before.hasOpeningFault, "recovery refuses only what is damaged: \(error)")
      require(storage.contents == contents, "what is refused is not touched")
    }
  }
}
