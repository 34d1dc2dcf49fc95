// What a reader delivers: whole lines, and the tree after them.
import Glibc

/// Prepares a block's lines before they are delivered; receives their bytes, first position and count. The result is
/// used only while the bytes are valid. Called on several threads.
package typealias BlockPreparation =
  @Sendable (UnsafeRawBufferPointer, Position, Int) -> AnyObject?

/// A run of event lines. The bytes are valid only inside the closure that receives the chunk.
package struct EventChunk {
  /// Whole lines, including their line feeds.
  package let bytes: UnsafeRawBufferPointer
  /// The position of the first line.
  package let firstPosition: Position
  /// The number of lines.
  package let count: Int
  /// The tree after the last line.
  package let frontierAfter: Frontier
  /// The result of the reader's `prepare` for a whole block, made on the thread that inflated it; otherwise nil.
  package let prepared: AnyObject?

  init(
    bytes: UnsafeRawBufferPointer, firstPosition: Position, count: Int, frontierAfter: Frontier,
    prepared: AnyObject? = nil
  ) {
    self.bytes = bytes
    self.firstPosition = firstPosition
    self.count = count
    self.frontierAfter = frontierAfter
    self.prepared = prepared
  }

  /// The position after the last line.
  package var endPosition: Position { firstPosition + count }

  /// Parses line after line. Throws `corruption` at a line that is not the expected event; an error of the body ends
  /// the loop.
  /// - Parameter isWanted: whether the line at a position is parsed; by default, each one.
  package func forEachEvent(
    where isWanted: (Position) -> Bool = { _ in true }, _ body: (EventLine) throws -> Void
  ) throws {
    var position = firstPosition
    var lines = EventLines(bytes)
    while let text = lines.next() {
      guard isWanted(position) else {
        position += 1
        continue
      }
      guard let line = EventLine(text), line.position == position else {
        throw LedgerError(
          .init(verdict: .tampered, file: Format.logDirectoryName, position: position),
          operation: "read event", cause: "the line is not this event")
      }
      try body(line)
      position += 1
    }
    guard position == endPosition, lines.isAtEnd else {
      throw LedgerError(
        .init(verdict: .tampered, file: Format.logDirectoryName, position: position),
        operation: "read event", cause: "there are fewer lines than the header says")
    }
  }
}

/// Finds lines in a run of lines by counting line feeds.
enum LineRange {
  /// The offset of the line with this index; nil if there are fewer lines.
  static func offset(ofLine index: Int, in bytes: UnsafeRawBufferPointer) -> Int? {
    guard let base = bytes.baseAddress else { return index == 0 ? 0 : nil }
    var offset = 0
    for _ in 0..<index {
      guard let end = memchr(base + offset, 0x0A, bytes.count - offset) else { return nil }
      offset = UnsafeRawPointer(end) - base + 1
    }
    return offset
  }

  /// The part of a run of lines beginning at `first` that lies in a range of positions.
  static func part(
    _ bytes: UnsafeRawBufferPointer, first: Position, _ range: Range<Position>
  ) -> UnsafeRawBufferPointer? {
    guard let start = offset(ofLine: range.lowerBound - first, in: bytes) else { return nil }
    let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
    guard let byteCount = offset(ofLine: range.count, in: rest) else { return nil }
    return UnsafeRawBufferPointer(rebasing: rest[..<byteCount])
  }
}
