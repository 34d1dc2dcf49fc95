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

/// Reads lines with a ledger's index, a position, the digest of a receipt or nothing, and an event's line, separated by
/// tabs.
final class EventStream {
  private let input: LineInput
  private let task: FoldTask
  /// The name of the stream in errors.
  private let object: String
  /// The next event; nil at the end. Its line and digest are valid until `advance`.
  private(set) var next: (key: EventKey, line: EventLine, digest: UnsafeRawBufferPointer)?

  init(_ input: LineInput, _ task: FoldTask, object: String) throws(Failure) {
    self.input = input
    self.task = task
    self.object = object
    try advance()
  }

  /// Advances to the next event.
  func advance() throws(Failure) {
    let last = next?.key
    next = nil
    let row: UnsafeRawBufferPointer?
    do throws(StreamError) { row = try input.next() } catch {
      throw Failure(error, operation: "read", object: object)
    }
    if let row { next = try event(row, after: last) }
  }

  private func event(
    _ row: UnsafeRawBufferPointer, after last: EventKey?
  ) throws(Failure) -> (EventKey, EventLine, UnsafeRawBufferPointer) {
    let cells = row.split(
      separator: UInt8(ascii: "\t"), maxSplits: 3, omittingEmptySubsequences: false
    ).map { UnsafeRawBufferPointer(rebasing: $0) }
    guard cells.count == 4, let ledger = Self.number(cells[0]),
      let position = Self.number(cells[1])
    else { throw failure("a row of \(object)", "it has another form") }
    guard task.ledgers.indices.contains(ledger) else {
      throw failure(
        "a row of \(object)", "there is no ledger \(ledger): the task has \(task.ledgers.count)")
    }
    let name = "\(object) at \(task.ledgers[ledger].name):\(position)"
    guard 0..<(1 << PartitionEvents.positionBitCount) ~= position else {
      throw failure(name, "this is not a position")
    }
    guard let line = EventLine(cells[3]) else { throw failure(name, "the line is not an event") }
    guard line.position == position else {
      throw failure(name, "the line is of position \(line.position)")
    }
    let key = EventKey(recordedAtMs: line.recordedAtMs, ledger: ledger, position: position)
    guard last.map({ $0 < key }) ?? true else {
      throw failure(
        name, "it does not follow the row before: rows ascend by time, ledger and position")
    }
    return (key, line, cells[2])
  }

  private static func number(_ digits: UnsafeRawBufferPointer) -> Int? {
    Int(String(decoding: digits, as: UTF8.self))
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
