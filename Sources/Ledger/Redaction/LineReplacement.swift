// Puts redacted lines in place of the log's in a run of whole lines.
import Base

/// A run of whole lines that gets other lines, by position. Used once.
struct LineReplacement {
  private let events: UnsafeRawBufferPointer
  private let result: ByteBuffer
  /// Where what is not copied yet begins, and the line with the position `next`.
  private var copied = 0
  private var offset = 0
  private var next: Position
  /// Whether anything differs so far.
  private var isChanged = false

  /// - Parameters:
  ///   - first: the position of the first line.
  ///   - result: gets the new run; of no use if nothing differs.
  init(_ events: UnsafeRawBufferPointer, first: Position, into result: ByteBuffer) {
    self.events = events
    self.result = result
    next = first
    result.count = 0
    result.reserve(events.count)
  }

  /// Puts a line, without its line feed, in place of that of its position, which is after those before.
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

  /// Throws unless a redacted line is of the same event as one of the log.
  static func check(_ text: UnsafeRawBufferPointer, replaces old: EventLine) throws(LedgerError) {
    guard let new = EventLine(text), new.isRedacted, new.position == old.position else {
      throw RedactionLineReader.damage("a line is not the one that was read before")
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
