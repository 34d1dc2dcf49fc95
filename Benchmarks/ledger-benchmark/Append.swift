// `append`: the same events into a ledger, into a bare file, and into SQLite, durably.
import Base
import CDeflate
import CSQLite
import Glibc
import Ledger
import ProgramSupport

/// How events come: so many in one append, so many appends at once from so many threads, until a count or a time
/// is reached.
struct AppendLoad {
  let events: EventFile
  let groupCount: Int
  let threadCount: Int
  /// How many appends each thread has under way: above 1 it submits the next as soon as its oldest is durable.
  let inFlightCount: Int
  /// 0: until the time is over.
  let eventCountMax: Int
  let secondsMax: Double

  init(_ arguments: Arguments) throws {
    events = try EventFile(path: try arguments.required("--events"), byteCountMax: 64 << 20)
    groupCount = max(1, try arguments.integer("--group", 0...Int.max) ?? 1)
    threadCount = max(1, try arguments.integer("--threads", 0...Int.max) ?? 1)
    inFlightCount = max(1, try arguments.integer("--in-flight", 0...Int.max) ?? 1)
    eventCountMax = try arguments.integer("--count", 0...Int.max) ?? 0
    secondsMax = Double(try arguments.integer("--seconds", 0...Int.max) ?? 0)
    if eventCountMax == 0, secondsMax == 0 {
      throw ProgramError("either --count or --seconds is needed")
    }
  }

  /// How many events are appended at once.
  var eventCountAtOnce: Int { groupCount * threadCount * inFlightCount }

  /// Whether enough was appended.
  func isDone(eventCount: Int, since start: Double) -> Bool {
    if eventCountMax > 0, eventCount >= eventCountMax { return true }
    return secondsMax > 0 && now() - start >= secondsMax
  }

  /// So many whole events, from a place on and around the end.
  func lines(from index: Int, count: Int) -> [[UInt8]] {
    (index..<index + count).map { events.lines[$0 % events.lines.count] }
  }
}

/// What appending came to.
struct AppendFigures {
  var eventCount = 0
  var byteCount = 0
  /// Until the last event was durable.
  var seconds = 0.0
  /// Until everything was sealed and closed as well.
  var secondsWithClosing = 0.0

  func print() {
    report([
      "events": Double(eventCount), "bytes": Double(byteCount), "seconds": seconds,
      "seconds_with_closing": secondsWithClosing,
    ])
  }
}

/// One thread's appends into a ledger.
private final class AppendClient {
  private let load: AppendLoad
  private let drafts: [EventDraft]
  private let writer: LedgerWriter
  private var index: Int
  private var underWay: [(ticket: AppendTicket, byteCount: Int)] = []
  /// Which of those under way is the oldest.
  private var oldest = 0

  init(
    _ load: AppendLoad, _ drafts: [EventDraft], _ writer: LedgerWriter, firstIndex: Int
  ) {
    self.load = load
    self.drafts = drafts
    self.writer = writer
    index = firstIndex
  }

  /// Appends the next events; what became durable by that.
  func append() throws -> (eventCount: Int, byteCount: Int) {
    let indices = (index..<index + load.groupCount).map { $0 % drafts.count }
    index += load.groupCount
    let byteCount = indices.reduce(0) { $0 + load.events.lines[$1].count }
    let next = indices.map { drafts[$0] }
    if load.inFlightCount == 1 {
      _ = try writer.append(next)
      return (load.groupCount, byteCount)
    }
    if underWay.count < load.inFlightCount {
      underWay.append((try writer.submit(next), byteCount))
      return (0, 0)
    }
    let done = underWay[oldest]
    _ = try writer.wait(for: done.ticket)
    underWay[oldest] = (try writer.submit(next), byteCount)
    oldest = (oldest + 1) % underWay.count
    return (load.groupCount, done.byteCount)
  }

  /// Waits for what is under way.
  func finish() throws -> (eventCount: Int, byteCount: Int) {
    for (ticket, _) in underWay { _ = try writer.wait(for: ticket) }
    return (
      underWay.count * load.groupCount, underWay.reduce(0) { $0 + $1.byteCount }
    )
  }
}

enum Append {
  static func run(_ arguments: Arguments) throws {
    let load = try AppendLoad(arguments)
    let directory = try arguments.required("--directory")
    switch try arguments.required("--way") {
    case "ledger": try intoLedger(load, directory).print()
    case "bare": try intoFile(load, directory).print()
    case "sqlite": try intoSQLite(load, directory).print()
    case let other: throw ProgramError("--way \(other): ledger, bare or sqlite")
    }
  }

  /// As one group: what all threads append at once.
  private static func groups(_ load: AppendLoad) -> [[UInt8]] {
    let count = load.eventCountAtOnce
    return stride(from: 0, to: max(load.events.lines.count, count), by: count).map { start in
      Array(load.lines(from: start, count: count).joined())
    }
  }

  // MARK: The ledger

  private struct Shared {
    var eventCount = 0
    var byteCount = 0
    var failure: String?
  }

  private static func intoLedger(_ load: AppendLoad, _ path: String) throws -> AppendFigures {
    let drafts = try load.events.lines.map(EventFile.draft)
    let directory = try LedgerDirectory.create(path: path + "/ledger", origin: "bench.example")
    // What is measured with closing counts every tail that was filled.
    var writerOptions = WriterOptions()
    writerOptions.closingLimitMs = 3_600_000
    let writer = try LedgerWriter.open(directory, options: writerOptions)
    let shared = Monitor(Shared())
    let start = now()
    inThreads(load.threadCount) { thread in
      let client = AppendClient(
        load, drafts, writer, firstIndex: thread * drafts.count / load.threadCount)
      do {
        while true {
          let mayGoOn = shared.withLock {
            $0.failure == nil && !load.isDone(eventCount: $0.eventCount, since: start)
          }
          let durable = mayGoOn ? try client.append() : try client.finish()
          shared.withLock {
            $0.eventCount += durable.eventCount
            $0.byteCount += durable.byteCount
          }
          if !mayGoOn { return }
        }
      } catch {
        shared.withLock { $0.failure = "\(error)" }
      }
    }
    let seconds = now() - start
    try writer.close()
    let done = shared.withLock { $0 }
    if let failure = done.failure { throw ProgramError("append: \(failure)") }
    return AppendFigures(
      eventCount: done.eventCount, byteCount: done.byteCount, seconds: seconds,
      secondsWithClosing: now() - start)
  }

  private final class ThreadBody {
    let run: () -> Void

    init(_ run: @escaping () -> Void) { self.run = run }
  }

  /// Runs the body in so many threads; one runs in the caller's own.
  private static func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    if count == 1 { return body(0) }
    var threads: [pthread_t] = []
    for index in 0..<count {
      var thread = pthread_t()
      let context = Unmanaged.passRetained(ThreadBody { body(index) }).toOpaque()
      let status = pthread_create(
        &thread, nil,
        { context in
          guard let context else { return nil }
          Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
          return nil
        }, context)
      if status == 0 {
        threads.append(thread)
      } else {
        Unmanaged<ThreadBody>.fromOpaque(context).release()
      }
    }
    for thread in threads { pthread_join(thread, nil) }
  }

  // MARK: A bare file

  private static func intoFile(_ load: AppendLoad, _ path: String) throws -> AppendFigures {
    let groups = groups(load)
    let descriptor = open(path + "/bare.log", O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0o600)
    guard descriptor >= 0 else { throw ProgramError("create", "bare.log", code: errno) }
    defer { close(descriptor) }
    var figures = AppendFigures()
    let start = now()
    while !load.isDone(eventCount: figures.eventCount, since: start) {
      let group = groups[figures.eventCount / load.eventCountAtOnce % groups.count]
      let written = group.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      guard written == group.count, fdatasync(descriptor) == 0 else {
        throw ProgramError("write", "bare.log", code: errno)
      }
      figures.eventCount += load.eventCountAtOnce
      figures.byteCount += group.count
    }
    figures.seconds = now() - start
    figures.secondsWithClosing = figures.seconds
    return figures
  }

  // MARK: SQLite

  private static func intoSQLite(_ load: AppendLoad, _ path: String) throws -> AppendFigures {
    var database: OpaquePointer?
    defer { sqlite3_close(database) }
    func check(_ status: Int32) throws {
      guard status == SQLITE_OK || status == SQLITE_DONE else {
        throw ProgramError("SQLite: \(String(cString: sqlite3_errmsg(database)))")
      }
    }
    try check(sqlite3_open(path + "/events.sqlite", &database))
    try check(
      sqlite3_exec(
        database,
        """
        PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE event (position INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT
        """, nil, nil, nil))
    var insert: OpaquePointer?
    try check(
      sqlite3_prepare_v2(database, "INSERT INTO event VALUES (?, ?)", -1, &insert, nil))
    defer { sqlite3_finalize(insert) }
    let groupCount = load.eventCountAtOnce
    var figures = AppendFigures()
    let start = now()
    while !load.isDone(eventCount: figures.eventCount, since: start) {
      // A transaction of its own is what one statement is anyway.
      if groupCount > 1 { try check(sqlite3_exec(database, "BEGIN", nil, nil, nil)) }
      for index in figures.eventCount..<figures.eventCount + groupCount {
        let line = load.events.lines[index % load.events.lines.count]
        try line.withUnsafeBytes { bytes in
          try check(sqlite3_bind_int64(insert, 1, Int64(index)))
          let text = bytes.assumingMemoryBound(to: CChar.self).baseAddress
          try check(sqlite3_bind_text(insert, 2, text, Int32(bytes.count), nil))
          try check(sqlite3_step(insert))
          try check(sqlite3_reset(insert))
        }
        figures.byteCount += line.count
      }
      if groupCount > 1 { try check(sqlite3_exec(database, "COMMIT", nil, nil, nil)) }
      figures.eventCount += groupCount
    }
    figures.seconds = now() - start
    figures.secondsWithClosing = figures.seconds
    return figures
  }
}

/// `deflate`: what one core compresses, at the level and in the portions of the log's blocks.
enum Deflate {
  static func run(_ arguments: Arguments) throws {
    let events = try EventFile(path: try arguments.required("--events"), byteCountMax: 64 << 20)
    let defaults = WriterOptions()
    guard let compressor = libdeflate_alloc_compressor(defaults.compressionLevel) else {
      throw ProgramError("deflate: no memory")
    }
    defer { libdeflate_free_compressor(compressor) }
    var blocks: [[UInt8]] = [[]]
    for line in events.lines {
      blocks[blocks.count - 1] += line
      if blocks[blocks.count - 1].count >= defaults.blockByteCount { blocks.append([]) }
    }
    if blocks.count > 1 { blocks.removeLast() }
    let seconds = Double(max(1, try arguments.integer("--seconds", 0...Int.max) ?? 1))
    var output = [UInt8](repeating: 0, count: (blocks.map(\.count).max() ?? 0) + (1 << 20))
    var byteCount = 0
    var compressedByteCount = 0
    let start = now()
    var index = 0
    while now() - start < seconds {
      let block = blocks[index % blocks.count]
      index += 1
      let capacity = output.count
      let count = output.withUnsafeMutableBytes { output in
        block.withUnsafeBytes { block in
          libdeflate_gzip_compress(
            compressor, block.baseAddress, block.count, output.baseAddress, capacity)
        }
      }
      if count == 0 { throw ProgramError("deflate: it failed") }
      byteCount += block.count
      compressedByteCount += count
    }
    report([
      "bytes": Double(byteCount), "compressed_bytes": Double(compressedByteCount),
      "seconds": now() - start,
    ])
  }
}
