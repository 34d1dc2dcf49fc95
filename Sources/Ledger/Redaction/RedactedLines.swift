// The redacted lines of a pass, by position, which readers show instead of lines of the log.
package import Base

/// Redacted lines in a file. Only their offsets are in memory; the lines are read when needed. Thread-safe.
package final class RedactedLines: Sendable {
  /// Identifies the pass that wrote the file.
  package let pass: UUID16
  /// Their positions, ascending.
  package let positions: [Position]
  /// Where each line begins in the file, and where the last one ends.
  private let offsets: [Int]
  private let file: StorageFile
  private let fileNumber: UInt64
  private let device: UInt64

  /// The lines of the file with its final name; nil if there is none.
  ///
  /// Throws `corruption` if the file is not exactly what was written.
  package static func ifPresent(
    _ directory: LedgerDirectory
  ) throws(LedgerError) -> RedactedLines? {
    guard let file = try directory.openFileIfPresent(RedactionFile.name) else { return nil }
    return try RedactedLines(file)
  }

  /// The lines of a file that was finished but not committed.
  package static func uncommitted(
    _ directory: LedgerDirectory
  ) throws(LedgerError) -> RedactedLines {
    try RedactedLines(try directory.openFile(RedactionFile.temporaryName, .readOnly))
  }

  private init(_ file: StorageFile) throws(LedgerError) {
    let status = try file.status()
    var reader = try RedactionLineReader(file, sizeBytes: status.sizeBytes)
    let header = reader.header
    var positions: [Position] = []
    var offsets: [Int] = []
    // No line is shorter than this, whatever the header contains.
    let countMax = header.byteCount / 128 + 1
    positions.reserveCapacity(min(header.lineCount, countMax))
    offsets.reserveCapacity(min(header.lineCount, countMax) + 1)
    while let line = try reader.next() {
      if let last = positions.last, last >= line.position {
        throw RedactionLineReader.damage("its lines are not in the order of their positions")
      }
      positions.append(line.position)
      offsets.append(reader.lineOffsetBytes)
    }
    offsets.append(status.sizeBytes)
    guard positions.count == header.lineCount, reader.digest() == header.digest else {
      throw RedactionLineReader.damage("its lines are not those that its header names")
    }
    pass = header.pass
    self.positions = positions
    self.offsets = offsets
    self.file = file
    fileNumber = status.fileNumber
    device = status.device
  }

  /// A number from 1 that is derived from the pass: equal for equal passes, and almost always different for others.
  package var tag: Int32 {
    let digest = pass.withUnsafeBytes { SHA256.hash($0) }
    let word = digest.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
    return max(1, Int32(bitPattern: UInt32(bigEndian: word)) & .max)
  }

  /// How many lines there are.
  package var count: Int { positions.count }

  /// Whether a file is the one that contains these lines.
  func isOf(_ status: FileStatus) -> Bool {
    status.fileNumber == fileNumber && status.device == device
  }

  /// The indexes of the lines in a range of positions.
  private func indexes(in range: Range<Position>) -> Range<Int> {
    let start = Base.lowerBound(positions.indices) { positions[$0] < range.lowerBound }
    let end = Base.lowerBound(start..<positions.count) { positions[$0] < range.upperBound }
    return start..<end
  }

  /// Whether there is a line in a range of positions.
  package func contains(in range: Range<Position>) -> Bool { !indexes(in: range).isEmpty }

  /// Whether there is a line at this position.
  package func contains(_ position: Position) -> Bool { contains(in: position..<position + 1) }

  /// The size of the lines in a range of positions, with their line feeds.
  func byteCount(in range: Range<Position>) -> Int {
    let indexes = indexes(in: range)
    return offsets[indexes.upperBound] - offsets[indexes.lowerBound]
  }

  /// Reads consecutive lines.
  private func read(_ indexes: Range<Int>, into buffer: ByteBuffer) throws(LedgerError) {
    let start = offsets[indexes.lowerBound]
    guard
      try file.readWhole(
        offsets[indexes.upperBound] - start, offsetBytes: start, into: buffer)
    else { throw RedactionLineReader.damage("it was truncated") }
  }

  /// A line without its line feed; nil if there is none at this position.
  package func line(at position: Position) throws(LedgerError) -> [UInt8]? {
    let indexes = indexes(in: position..<position + 1)
    if indexes.isEmpty { return nil }
    let buffer = ByteBuffer(capacity: offsets[indexes.upperBound] - offsets[indexes.lowerBound])
    try read(indexes, into: buffer)
    return Array(try expected(buffer.bytes.dropLast(), position).bytes)
  }

  private func expected(
    _ text: Slice<UnsafeRawBufferPointer>, _ position: Position
  ) throws(LedgerError) -> EventLine {
    guard let line = EventLine(UnsafeRawBufferPointer(rebasing: text)), line.isRedacted,
      line.position == position
    else { throw RedactionLineReader.damage("a line differs from what was read before") }
    return line
  }

  /// The line that replaces a line of the log; nil if that is shown unchanged.
  ///
  /// Throws `corruption` if the two have different leaf records.
  func replacement(for line: EventLine) throws(LedgerError) -> [UInt8]? {
    guard let bytes = try self.line(at: line.position) else { return nil }
    try bytes.withUnsafeBufferPointer { (bytes) throws(LedgerError) in
      try LineReplacement.check(UnsafeRawBufferPointer(bytes), replaces: line)
    }
    return bytes
  }

  /// Replaces lines in a run of whole lines.
  ///
  /// Throws `corruption` if a line to be replaced has another leaf record, or if the run is not these events.
  /// - Parameter spare: memory that the caller keeps from call to call: new memory costs as much as copying.
  /// - Returns: whether anything differs.
  @discardableResult
  package func apply(
    to events: ByteBuffer, first: Position, count: Int, spare: ByteBuffer? = nil
  ) throws(LedgerError) -> Bool {
    let indexes = indexes(in: first..<first + count)
    if indexes.isEmpty { return false }
    let new = ByteBuffer(capacity: 64 << 10)
    try read(indexes, into: new)
    let replaced = spare ?? ByteBuffer(capacity: events.count)
    var replacement = LineReplacement(events.bytes, first: first, into: replaced)
    for index in indexes {
      let start = offsets[index] - offsets[indexes.lowerBound]
      let end = offsets[index + 1] - offsets[indexes.lowerBound]
      try replacement.replace(
        at: positions[index], with: UnsafeRawBufferPointer(rebasing: new.bytes[start..<end - 1]))
    }
    let isChanged = replacement.finish()
    if isChanged { events.exchange(with: replaced) }
    return isChanged
  }

  /// Reads all lines in order.
  package func reader() throws(LedgerError) -> RedactionLineReader {
    try RedactionLineReader(file, sizeBytes: offsets[count])
  }
}

// MARK: - Replacement in a run of lines

/// Replaces lines in a run of whole lines, by position. Used once.
struct LineReplacement {
  private let events: UnsafeRawBufferPointer
  private let result: ByteBuffer
  /// The offset from which nothing is copied yet, and the line with the position `next`.
  private var copied = 0
  private var offset = 0
  private var next: Position
  /// Whether anything differs so far.
  private var isChanged = false

  /// - Parameters:
  ///   - first: the position of the first line.
  ///   - result: receives the new run; meaningless if nothing differs.
  init(_ events: UnsafeRawBufferPointer, first: Position, into result: ByteBuffer) {
    self.events = events
    self.result = result
    next = first
    result.count = 0
    result.reserve(events.count)
  }

  /// Replaces the line at a position by a line without its line feed. Positions must ascend.
  ///
  /// Throws `corruption` unless both are the same event.
  mutating func replace(
    at position: Position, with text: UnsafeRawBufferPointer
  ) throws(LedgerError) {
    let rest = UnsafeRawBufferPointer(rebasing: events[offset...])
    guard let skipped = LineRange.offset(ofLine: position - next, in: rest) else {
      throw Self.tampered(position, "the log has no event at this position")
    }
    offset += skipped
    guard let line = EventLines.first(UnsafeRawBufferPointer(rebasing: events[offset...])),
      let old = EventLine(line), old.position == position
    else { throw Self.tampered(position, "the log has no event at this position") }
    try Self.check(text, replaces: old)
    if !text.elementsEqual(line) {
      result.append(UnsafeRawBufferPointer(rebasing: events[copied..<offset]))
      result.append(text)
      isChanged = true
      // The line feed is copied with what follows.
      copied = offset + line.count
    }
    offset += line.count + 1
    next = position + 1
  }

  /// Copies the rest; returns whether anything differs.
  mutating func finish() -> Bool {
    guard isChanged else { return false }
    result.append(UnsafeRawBufferPointer(rebasing: events[copied...]))
    return true
  }

  /// Throws unless a redacted line and a line of the log are the same event.
  static func check(_ text: UnsafeRawBufferPointer, replaces old: EventLine) throws(LedgerError) {
    guard let new = EventLine(text), new.isRedacted, new.position == old.position else {
      throw RedactionLineReader.damage("a line differs from what was read before")
    }
    guard new.leafRecordStart.elementsEqual(old.leafRecordStart) else {
      throw tampered(old.position, "the redacted line is of another event than the log's")
    }
  }

  private static func tampered(_ position: Position, _ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .tampered, file: RedactionFile.name, position: position),
      operation: RedactionLineReader.operation, cause: cause)
  }
}
