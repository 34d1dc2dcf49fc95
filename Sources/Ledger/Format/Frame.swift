// A tail's frame: one header line with a CRC-32, then event lines.
import Base
import CDeflate
import Glibc

/// The header of a frame: `#crc32 first count bytes` and a line feed.
package struct FrameHeader: Equatable {
  let checksum: UInt32
  /// The position of the frame's first event.
  package let first: Position
  let eventCount: Int
  /// The size of the event lines that follow.
  let eventByteCount: Int
  /// The size of the header line, including its line feed.
  let headerByteCount: Int

  /// `#`, eight digits and a space, which the CRC does not cover.
  static let uncoveredByteCount = 10

  package var frameByteCount: Int { headerByteCount + eventByteCount }
  package var endPosition: Position { first + eventCount }

  /// Reads the header at the start of the bytes; nil if there is none or it is incomplete.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    var scanner = ByteScanner(
      UnsafeRawBufferPointer(rebasing: bytes.prefix(Format.frameHeaderByteCountMax)))
    guard scanner.skip("#"), let digits = scanner.read(8) else { return nil }
    var checksum: UInt32 = 0
    for digit in digits {
      guard let value = Hex.value(digit) else { return nil }
      checksum = checksum << 4 | UInt32(value)
    }
    guard scanner.skip(" "), let first = scanner.decimal(), scanner.skip(" "),
      let eventCount = scanner.decimal(), scanner.skip(" "),
      let eventByteCount = scanner.decimal(), scanner.skip("\n"), eventCount > 0,
      eventByteCount <= Format.frameByteCountMax, eventCount <= eventByteCount,
      first <= Format.positionMax - eventCount
    else { return nil }
    self.checksum = checksum
    self.first = first
    self.eventCount = eventCount
    self.eventByteCount = eventByteCount
    headerByteCount = scanner.offset
  }

  /// Whether a whole frame with this header is at the start of the bytes.
  func isWhole(in bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count >= frameByteCount, let base = bytes.baseAddress else { return false }
    let covered = frameByteCount - FrameHeader.uncoveredByteCount
    return libdeflate_crc32(0, base + FrameHeader.uncoveredByteCount, covered) == checksum
  }

  /// Appends a whole frame to a buffer.
  static func append(
    first: Position, eventCount: Int, events: UnsafeRawBufferPointer, to buffer: ByteBuffer
  ) {
    let start = buffer.count
    buffer.append("#00000000 ")
    buffer.appendDecimal(first)
    buffer.append(" ")
    buffer.appendDecimal(eventCount)
    buffer.append(" ")
    buffer.appendDecimal(events.count)
    buffer.append("\n")
    buffer.append(events)
    let covered = start + uncoveredByteCount
    let checksum = libdeflate_crc32(0, buffer.base + covered, buffer.count - covered)
    for index in 0..<8 {
      let digit = Hex.digit(UInt8(checksum >> (28 - 4 * UInt32(index)) & 15))
      buffer.base.storeBytes(of: digit, toByteOffset: start + 1 + index, as: UInt8.self)
    }
  }
}

extension FrameHeader {
  /// Removes the headers from a buffer of whole frames, leaving their lines. Returns the end of the last frame; nil
  /// unless the buffer holds only whole, consecutive frames.
  static func removeAll(from buffer: ByteBuffer, first: Position) -> Position? {
    let byteCount = buffer.count
    let (end, wholeByteCount) = remove(from: buffer, first: first)
    return wholeByteCount == byteCount ? end : nil
  }

  /// Removes the headers of the whole frames at the start of a buffer, and all bytes after those frames. Returns the
  /// end of the last frame.
  static func removeLeading(from buffer: ByteBuffer, first: Position) -> Position {
    remove(from: buffer, first: first).end
  }

  private static func remove(
    from buffer: ByteBuffer, first: Position
  ) -> (end: Position, wholeByteCount: Int) {
    var end = first
    var offset = 0
    var keptByteCount = 0
    while offset < buffer.count {
      let rest = UnsafeRawBufferPointer(rebasing: buffer.bytes[offset...])
      guard let header = FrameHeader(rest), header.first == end, header.isWhole(in: rest) else {
        break
      }
      memmove(
        buffer.base + keptByteCount, buffer.base + offset + header.headerByteCount,
        header.eventByteCount)
      keptByteCount += header.eventByteCount
      offset += header.frameByteCount
      end = header.endPosition
    }
    buffer.count = keptByteCount
    return (end, offset)
  }
}

/// Checks event lines against their frame or block: form, positions, order of time.
struct EventRun {
  private(set) var next: Position
  private(set) var lastEventAtMs: Int64

  init(next: Position, lastEventAtMs: Int64) {
    self.next = next
    self.lastEventAtMs = lastEventAtMs
  }

  /// Passes each line to `visit`. Returns why the lines do not continue the run; nil if they do.
  mutating func fault(
    _ bytes: UnsafeRawBufferPointer, eventCount: Int, _ visit: (EventLine) -> Void
  ) -> String? {
    let end = next + eventCount
    var lines = EventLines(bytes)
    while let text = lines.next() {
      guard let line = EventLine(text) else { return "a line is not an event" }
      guard line.position == next, next < end else { return "positions do not follow each other" }
      guard line.recordedAtMs >= lastEventAtMs else { return "event times decrease" }
      next += 1
      lastEventAtMs = line.recordedAtMs
      visit(line)
    }
    return lines.isAtEnd && next == end ? nil : "the number of events does not match the header"
  }
}
