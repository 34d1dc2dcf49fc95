// A stream of events, sorted by time, ledger and position; a spool of folded events; input files.
import Base
import Glibc
import Ledger

/// The order of events of several ledgers: `at` never decreases within a ledger.
struct EventKey: Comparable {
  let recordedAtMs: Int64
  /// The ledger's index, in the order of origins.
  let ledger: Int
  let position: Position

  static func < (left: EventKey, right: EventKey) -> Bool {
    (left.recordedAtMs, left.ledger, left.position)
      < (right.recordedAtMs, right.ledger, right.position)
  }
}

/// Reads rows with a ledger's index, a position, the digest of a receipt or nothing, and a line.
final class EventStream {
  private let reader: ExchangeReader
  private let task: FoldTask
  /// The name of the stream in errors.
  private let object: String
  private var batch: ExchangeBatch?
  private var row = 0
  private var isAtEnd = false
  /// The next event; nil at the end. Its line and digest are valid until `advance`.
  private(set) var next: (key: EventKey, line: EventLine, digest: UnsafeRawBufferPointer)?

  init(_ input: DescriptorInput, _ task: FoldTask, object: String) throws(Failure) {
    reader = ExchangeReader(input)
    self.task = task
    self.object = object
    try advance()
  }

  /// Advances to the next event.
  func advance() throws(Failure) {
    let last = next?.key
    next = nil
    while !isAtEnd {
      if let batch, row < batch.rowCount {
        next = try event(batch, row, after: last)
        row += 1
        return
      }
      try readBatch()
    }
  }

  private func readBatch() throws(Failure) {
    do throws(ExchangeError) {
      switch try reader.next() {
      case .batch(let read):
        try read.require(table: 0, [.integer, .integer, .bytes, .bytes])
        (batch, row) = (read, 0)
      case .end:
        batch = nil
        isAtEnd = true
      }
    } catch { throw Failure(error, operation: "read", object: object) }
  }

  private func event(
    _ batch: ExchangeBatch, _ row: Int, after last: EventKey?
  ) throws(Failure) -> (EventKey, EventLine, UnsafeRawBufferPointer) {
    let ledger = batch.integer(column: 0, row: row)
    let position = batch.integer(column: 1, row: row)
    guard task.ledgers.indices.contains(Int(ledger)) else {
      throw failure(
        "a row of \(object)", "there is no ledger \(ledger): the task has \(task.ledgers.count)")
    }
    let name = "\(object) at \(task.ledgers[Int(ledger)].name):\(position)"
    guard 0..<(1 << PartitionEvents.positionBitCount) ~= position else {
      throw failure(name, "this is not a position")
    }
    guard let line = EventLine(batch.bytes(column: 3, row: row)) else {
      throw failure(name, "the line is not an event")
    }
    guard line.position == Int(position) else {
      throw failure(name, "the line is of position \(line.position)")
    }
    let key = EventKey(
      recordedAtMs: line.recordedAtMs, ledger: Int(ledger), position: Int(position))
    guard last.map({ $0 < key }) ?? true else {
      throw failure(
        name, "it does not follow the row before: rows ascend by time, ledger and position")
    }
    return (key, line, batch.bytes(column: 2, row: row))
  }

  private func failure(_ object: String, _ cause: String) -> Failure {
    Failure(operation: "read", object: object, cause: cause)
  }
}

// MARK: - Spool

/// Appends the lines of folded events to a file without a name, and reads them back.
final class EventSpool {
  private let file: ScratchFile
  private var buffer: [UInt8] = []
  private var writtenByteCount = 0
  private static let capacityBytes = 1 << 20

  init(_ file: ScratchFile) {
    self.file = file
    buffer.reserveCapacity(Self.capacityBytes)
  }

  /// The size so far: the offset of the next line.
  var byteCount: Int { writtenByteCount + buffer.count }

  func append(_ line: UnsafeRawBufferPointer) throws(Failure) {
    if buffer.count + line.count > Self.capacityBytes { try flush() }
    if line.count >= Self.capacityBytes {
      try file.append(line)
      writtenByteCount += line.count
    } else {
      buffer.append(contentsOf: line)
    }
  }

  private func flush() throws(Failure) {
    let pending = buffer
    buffer.removeAll(keepingCapacity: true)
    let result: Result<Void, Failure> = pending.withUnsafeBytes { bytes in
      do throws(Failure) { return .success(try file.append(bytes)) } catch {
        return .failure(error)
      }
    }
    try result.get()
    writtenByteCount += pending.count
  }

  /// The bytes of a range of offsets, which must lie before `byteCount`.
  func read(_ range: Range<Int>) throws(Failure) -> [UInt8] {
    precondition(range.upperBound <= byteCount, "a line that was not appended is read")
    // A line is in the file or in the buffer, never in both.
    if range.lowerBound >= writtenByteCount {
      return Array(
        buffer[range.lowerBound - writtenByteCount..<range.upperBound - writtenByteCount])
    }
    return try file.read(range)
  }
}

// MARK: - Input files

/// A regular file that a task names, open for reading, closed with the value.
final class InputFile {
  let descriptor: Int32

  init(_ path: String) throws(Failure) {
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw Failure(operation: "open", object: path, systemError: errno)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw Failure(operation: "open", object: path, cause: "it is not a regular file")
    }
  }

  deinit { close(descriptor) }
}
