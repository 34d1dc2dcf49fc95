// A string inside a JSON text: the raw bytes between the quotes, unescaped on demand.
import Glibc

/// The bytes between a JSON string's quotes. Valid as long as the text that contains them.
public struct JSONString {
  /// The bytes as written, including escapes.
  public let raw: JSONBytes
  /// Whether `raw` contains a backslash. If not, `raw` is the string itself.
  public let hasEscapes: Bool

  /// Creates a string from raw bytes.
  @inlinable
  public init(raw: JSONBytes, hasEscapes: Bool) {
    self.raw = raw
    self.hasEscapes = hasEscapes
  }

  /// Compares with a literal. A string with escapes is unescaped first.
  @inlinable @inline(__always)
  public static func == (left: JSONString, right: StaticString) -> Bool {
    if left.hasEscapes { return left.equalsUnescaped(right) }
    guard left.raw.count == right.utf8CodeUnitCount else { return false }
    guard let start = left.raw.baseAddress else { return true }
    return Scan.equals(start, right.utf8Start, left.raw.count)
  }

  @usableFromInline
  func equalsUnescaped(_ literal: StaticString) -> Bool {
    bytes.elementsEqual(
      UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
  }

  /// The string's UTF-8 bytes, unescaped.
  public var bytes: [UInt8] {
    var result: [UInt8] = []
    append(to: &result)
    return result
  }

  /// The string, unescaped.
  public var string: String {
    hasEscapes ? String(decoding: bytes, as: UTF8.self) : String(decoding: raw, as: UTF8.self)
  }

  /// Appends the unescaped bytes. A lone surrogate, which validated text cannot contain, becomes U+FFFD.
  public func append(to result: inout [UInt8]) {
    guard hasEscapes else {
      result.append(contentsOf: raw)
      return
    }
    result.reserveCapacity(result.count + raw.count)
    var index = 0
    while index < raw.count {
      let byte = raw[index]
      index += 1
      guard byte == 0x5C, index < raw.count else {
        result.append(byte)
        continue
      }
      let escape = raw[index]
      index += 1
      switch escape {
      case UInt8(ascii: "b"): result.append(0x08)
      case UInt8(ascii: "f"): result.append(0x0C)
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      case UInt8(ascii: "t"): result.append(0x09)
      case UInt8(ascii: "u"): appendUnicode(&index, to: &result)
      default: result.append(escape)
      }
    }
  }

  private func appendUnicode(_ index: inout Int, to result: inout [UInt8]) {
    var scalar = hex(at: index) ?? 0xFFFD
    index = min(index + 4, raw.count)
    if (0xD800...0xDBFF).contains(scalar), index + 6 <= raw.count, raw[index] == 0x5C,
      raw[index + 1] == UInt8(ascii: "u"), let low = hex(at: index + 2),
      (0xDC00...0xDFFF).contains(low)
    {
      scalar = 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
      index += 6
    }
    let character = Unicode.Scalar(scalar) ?? "\u{FFFD}"
    result.append(contentsOf: Array(String(character).utf8))
  }

  private func hex(at index: Int) -> UInt32? {
    guard index + 4 <= raw.count else { return nil }
    var value: UInt32 = 0
    for offset in index..<index + 4 {
      guard let digit = Scan.hexValue(raw[offset]) else { return nil }
      value = value << 4 | digit
    }
    return value
  }
}

// MARK: - Plain string bytes

/// The bytes of a JSON text.
public typealias JSONBytes = UnsafeRawBufferPointer

@usableFromInline
enum Scan {
  @inlinable static var ones: UInt64 { 0x0101_0101_0101_0101 }
  @inlinable static var highs: UInt64 { 0x8080_8080_8080_8080 }

  /// Sets the high bit of each zero byte in `word`. The lowest set bit is exact; higher ones may be false positives.
  @inlinable @inline(__always)
  static func zeroBytes(_ word: UInt64) -> UInt64 { (word &- ones) & ~word & highs }

  /// Offset of the first quote or backslash at or after `offset`, or `end`. Searches eight bytes at a time.
  @inlinable @inline(__always)
  static func quoteOrBackslash(
    _ start: UnsafePointer<UInt8>, from offset: Int, to end: Int
  ) -> Int {
    var index = offset
    let raw = UnsafeRawPointer(start)
    let far = min(end, offset &+ nearByteCount)
    while index &+ 8 <= far {
      let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let marks = zeroBytes(word ^ (ones &* 0x22)) | zeroBytes(word ^ (ones &* 0x5C))
      if marks != 0 { return index &+ marks.trailingZeroBitCount / 8 }
      index &+= 8
    }
    if far < end { return distantQuoteOrBackslash(start, from: index, to: end) }
    while index < end, start[index] != 0x22, start[index] != 0x5C { index &+= 1 }
    return index
  }

  /// Keys, ids and dates end within this. Certificates, receipts and signatures are far longer.
  @inlinable static var nearByteCount: Int { 64 }

  /// As above, for a string that has proved long: uses the C library's vector instructions.
  @usableFromInline @inline(never)
  static func distantQuoteOrBackslash(
    _ start: UnsafePointer<UInt8>, from offset: Int, to end: Int
  ) -> Int {
    // Each call searches this much, so that a string full of escapes is not searched to its end for each of them.
    let windowByteCount = 1024
    var index = offset
    while index < end {
      let count = min(windowByteCount, end &- index)
      let quote = distance(to: 0x22, start + index, count)
      let nearest = distance(to: 0x5C, start + index, quote ?? count) ?? quote
      if let nearest { return index &+ nearest }
      index &+= count
    }
    return end
  }

  private static func distance(
    to byte: Int32, _ start: UnsafePointer<UInt8>, _ count: Int
  ) -> Int? {
    guard let found = memchr(start, byte, count) else { return nil }
    return UnsafeRawPointer(found) - UnsafeRawPointer(start)
  }

  /// Offset of the first byte that is a quote, a backslash, a control character or not ASCII, or `end`.
  @inlinable @inline(__always)
  static func special(_ start: UnsafePointer<UInt8>, from offset: Int, to end: Int) -> Int {
    var index = offset
    let raw = UnsafeRawPointer(start)
    while index &+ 8 <= end {
      let word = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let marks =
        zeroBytes(word ^ (ones &* 0x22)) | zeroBytes(word ^ (ones &* 0x5C))
        | ((word &- ones &* 0x20) & ~word & highs) | (word & highs)
      if marks != 0 { return index &+ marks.trailingZeroBitCount / 8 }
      index &+= 8
    }
    while index < end {
      let byte = start[index]
      if byte == 0x22 || byte == 0x5C || byte < 0x20 || byte >= 0x80 { break }
      index &+= 1
    }
    return index
  }

  /// Whether the `count` bytes at both addresses are equal. Keys are short, so a loop beats a call.
  @inlinable @inline(__always)
  static func equals(_ left: UnsafeRawPointer, _ right: UnsafeRawPointer, _ count: Int) -> Bool {
    var index = 0
    while index &+ 8 <= count {
      let one = left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      if one != right.loadUnaligned(fromByteOffset: index, as: UInt64.self) { return false }
      index &+= 8
    }
    while index < count {
      let one = left.load(fromByteOffset: index, as: UInt8.self)
      if one != right.load(fromByteOffset: index, as: UInt8.self) { return false }
      index &+= 1
    }
    return true
  }

  /// Length of the valid UTF-8 sequence of two or more bytes at `offset`, or 0.
  /// Source: the table of well-formed byte sequences in the Unicode Standard, chapter 3.9.
  static func sequenceLength(_ start: UnsafePointer<UInt8>, at offset: Int, to end: Int) -> Int {
    let first = start[offset]
    func continues(_ index: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
      offset + index < end && range.contains(start[offset + index])
    }
    switch first {
    case 0xC2...0xDF: return continues(1) ? 2 : 0
    case 0xE0: return continues(1, 0xA0...0xBF) && continues(2) ? 3 : 0
    case 0xED: return continues(1, 0x80...0x9F) && continues(2) ? 3 : 0
    case 0xE1...0xEF: return continues(1) && continues(2) ? 3 : 0
    case 0xF0: return continues(1, 0x90...0xBF) && continues(2) && continues(3) ? 4 : 0
    case 0xF1...0xF3: return continues(1) && continues(2) && continues(3) ? 4 : 0
    case 0xF4: return continues(1, 0x80...0x8F) && continues(2) && continues(3) ? 4 : 0
    default: return 0
    }
  }

  static func hexValue(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x30...0x39: return UInt32(byte - 0x30)
    case 0x41...0x46: return UInt32(byte - 0x41 + 10)
    case 0x61...0x66: return UInt32(byte - 0x61 + 10)
    default: return nil
    }
  }
}
