// Splits a stream of bytes into lines, with bounded memory.
package import Base
import Glibc

/// Lines, one after another.
package protocol LineSource: AnyObject {
  /// The next line; nil at the end.
  func next() throws(Failure) -> LineReader.Line?
  /// Where the last line came from; nil if its number in the input tells it.
  var place: (input: String, line: Int)? { get }
}

/// Reads lines that end with LF or CR LF; the last line need not have an end. Empty lines are counted and skipped. A
/// UTF-8 byte order mark before the first line is also skipped.
package final class LineReader: LineSource {
  package enum Line {
    /// The bytes without the line end; valid until the next call.
    case whole(number: Int, UnsafeRawBufferPointer)
    /// A line that is longer than allowed; none of it was kept.
    case tooLong(number: Int)
    /// An item of an archive that gives no line.
    case unreadable(number: Int, FieldProblem)
  }

  package var place: (input: String, line: Int)? { nil }

  /// The longest line, without its end.
  package static let lineBytesMax = 16 << 20
  private static let chunkBytes = 256 << 10

  private let source: any ByteSource
  private let lineBytesMax: Int
  private var buffer: UnsafeMutableRawPointer
  private var capacity: Int
  private var start = 0
  /// There is no line feed before this offset.
  private var scanned = 0
  private var end = 0
  private var number = 0
  private var isAtEnd = false
  private var isPastMark = false
  /// The current size of the buffer in bytes.
  package var bufferBytes: Int { capacity }

  package init(
    _ source: any ByteSource, lineBytesMax: Int = LineReader.lineBytesMax,
    chunkBytes: Int = LineReader.chunkBytes
  ) {
    self.source = source
    self.lineBytesMax = lineBytesMax
    capacity = max(chunkBytes, 4)
    buffer = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { buffer.deallocate() }

  /// The next line that is not empty; nil at the end.
  package func next() throws(Failure) -> Line? {
    if !isPastMark { try passMark() }
    while true {
      if let feed = findLineFeed() {
        let line = line(from: start, to: feed)
        start = feed + 1
        scanned = start
        if let line { return line }
      } else if isAtEnd {
        guard start < end else { return nil }
        let line = line(from: start, to: end)
        start = end
        scanned = end
        if let line { return line }
      } else if end - start > lineBytesMax + 1 {
        return try skipLine()
      } else {
        try refill()
      }
    }
  }

  private func findLineFeed() -> Int? {
    guard scanned < end, let found = memchr(buffer + scanned, 0x0A, end - scanned) else {
      scanned = end
      return nil
    }
    return UnsafeMutableRawPointer(found) - buffer
  }

  /// The line in this range; nil if it is empty.
  private func line(from first: Int, to last: Int) -> Line? {
    number += 1
    var last = last
    if last > first, buffer.load(fromByteOffset: last - 1, as: UInt8.self) == 0x0D { last -= 1 }
    if last == first { return nil }
    if last - first > lineBytesMax { return .tooLong(number: number) }
    return .whole(
      number: number, UnsafeRawBufferPointer(start: buffer + first, count: last - first))
  }

  /// Skips the rest of a line that is too long.
  private func skipLine() throws(Failure) -> Line {
    number += 1
    while true {
      start = 0
      scanned = 0
      end = 0
      try refill()
      if let feed = findLineFeed() {
        start = feed + 1
        scanned = start
        return .tooLong(number: number)
      }
      if isAtEnd {
        start = end
        return .tooLong(number: number)
      }
    }
  }

  /// Makes room, and reads more bytes after the content.
  private func refill() throws(Failure) {
    if start > 0, start == end || end == capacity {
      memmove(buffer, buffer + start, end - start)
      scanned -= start
      end -= start
      start = 0
    }
    if end == capacity {
      // One extra byte for a CR, and one to detect that the line is too long.
      let grown = min(capacity * 2, max(lineBytesMax + 2, capacity + 1))
      let larger = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
      larger.copyMemory(from: buffer, byteCount: end)
      buffer.deallocate()
      buffer = larger
      capacity = grown
    }
    let count = try source.read(
      into: UnsafeMutableRawBufferPointer(start: buffer + end, count: capacity - end))
    if count == 0 { isAtEnd = true }
    end += count
  }

  private func passMark() throws(Failure) {
    while end < 3, !isAtEnd { try refill() }
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    if end >= 3, memcmp(buffer, mark, 3) == 0 {
      start = 3
      scanned = 3
    }
    isPastMark = true
  }
}
