// Turns the encodings of Apple's reports into UTF-8, and their line ends into LF (settlement rule S2).
import Glibc
import Revenue

enum ReportEncoding {
  /// The text of unpacked bytes: by their byte order mark; without one UTF-8, or ISO 8859-1 where they are no UTF-8.
  static func text(_ bytes: consuming [UInt8]) throws(AppleReportError) -> [UInt8] {
    if bytes.starts(with: [0xFF, 0xFE]) {
      bytes = try utf16(bytes, isBigEndian: false)
    } else if bytes.starts(with: [0xFE, 0xFF]) {
      bytes = try utf16(bytes, isBigEndian: true)
    } else {
      let isMarked = bytes.starts(with: [0xEF, 0xBB, 0xBF])
      if let fault = utf8Fault(bytes) {
        guard !isMarked else { throw fault }
        bytes = latin1(bytes)
      }
      if isMarked { bytes.removeFirst(3) }
    }
    if let offset = bytes.offset(of: 0, from: 0) {
      throw AppleReportError(line: line(of: offset, in: bytes), "a NUL stands in it")
    }
    normalizeLineEnds(&bytes)
    return bytes
  }

  private static func utf8Fault(_ bytes: [UInt8]) -> AppleReportError? {
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: bytes.span)
      return nil
    } catch {
      let line = line(of: error.byteOffsets.lowerBound, in: bytes)
      return AppleReportError(line: line, "invalid UTF-8, though its byte order mark says UTF-8")
    }
  }

  private static func utf16(
    _ bytes: [UInt8], isBigEndian: Bool
  ) throws(AppleReportError) -> [UInt8] {
    let name = isBigEndian ? "UTF-16BE" : "UTF-16LE"
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count / 2)
    func fault() -> AppleReportError {
      AppleReportError(
        line: line(of: text.count, in: text), "invalid \(name), though its byte order mark says so")
    }
    func unit(_ offset: Int) -> UInt32 {
      let (first, second) = (UInt32(bytes[offset]), UInt32(bytes[offset + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    guard bytes.count % 2 == 0 else { throw fault() }
    var offset = 2
    while offset < bytes.count {
      var scalar = unit(offset)
      offset += 2
      if (0xD800...0xDFFF).contains(scalar) {
        guard scalar < 0xDC00, offset < bytes.count, (0xDC00...0xDFFF).contains(unit(offset))
        else { throw fault() }
        scalar = 0x10000 + (scalar - 0xD800) << 10 + (unit(offset) - 0xDC00)
        offset += 2
      }
      append(scalar, to: &text)
    }
    return text
  }

  private static func latin1(_ bytes: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count + bytes.count { $0 >= 0x80 })
    for byte in bytes { append(UInt32(byte), to: &text) }
    return text
  }

  /// Appends a scalar value in UTF-8.
  private static func append(_ scalar: UInt32, to text: inout [UInt8]) {
    func byte(_ mark: UInt32, _ shift: UInt32, _ mask: UInt32) {
      text.append(UInt8(truncatingIfNeeded: mark | scalar >> shift & mask))
    }
    switch scalar {
    case 0..<0x80: byte(0, 0, 0x7F)
    case ..<0x800:
      byte(0xC0, 6, 0x1F)
      byte(0x80, 0, 0x3F)
    case ..<0x10000:
      byte(0xE0, 12, 0x0F)
      byte(0x80, 6, 0x3F)
      byte(0x80, 0, 0x3F)
    default:
      byte(0xF0, 18, 0x07)
      byte(0x80, 12, 0x3F)
      byte(0x80, 6, 0x3F)
      byte(0x80, 0, 0x3F)
    }
  }

  // MARK: Lines

  /// Replaces CRLF and CR by LF, in place.
  private static func normalizeLineEnds(_ bytes: inout [UInt8]) {
    guard let first = bytes.offset(of: 0x0D, from: 0) else { return }
    let count = bytes.withUnsafeMutableBytes { bytes in
      var (read, write) = (first, first)
      while read < bytes.count {
        bytes[write] = 0x0A
        write += 1
        read += 1
        if read < bytes.count, bytes[read] == 0x0A { read += 1 }
        let next = UnsafeRawBufferPointer(bytes).offset(of: 0x0D, from: read) ?? bytes.count
        if next > read, let start = bytes.baseAddress {
          memmove(start + write, start + read, next - read)
        }
        write += next - read
        read = next
      }
      return write
    }
    bytes.removeLast(bytes.count - count)
  }

  /// The line in which a byte stands, from 1.
  private static func line(of offset: Int, in bytes: [UInt8]) -> Int {
    var line = 1
    for index in 0..<offset {
      let isEnd = bytes[index] == 0x0D || bytes[index] == 0x0A
      if isEnd, !(bytes[index] == 0x0A && index > 0 && bytes[index - 1] == 0x0D) { line += 1 }
    }
    return line
  }
}

extension UnsafeRawBufferPointer {
  /// Where a byte stands at or after an offset.
  fileprivate func offset(of byte: Int32, from offset: Int) -> Int? {
    guard offset < count, let start = baseAddress,
      let found = memchr(start + offset, byte, count - offset)
    else { return nil }
    return UnsafeRawPointer(found) - start
  }
}

extension [UInt8] {
  fileprivate func offset(of byte: Int32, from offset: Int) -> Int? {
    withUnsafeBytes { $0.offset(of: byte, from: offset) }
  }
}
