// A cursor over bytes for the strict, fixed grammars of lines and frame headers.
import Glibc

/// Reads from left to right. After a failed read, its offset is meaningless.
struct ByteScanner {
  private let bytes: UnsafeRawBufferPointer
  private(set) var offset = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  @inline(__always)
  mutating func skip(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard bytes.count - offset >= count, let base = bytes.baseAddress,
      memcmp(base + offset, text.utf8Start, count) == 0
    else { return false }
    offset += count
    return true
  }

  /// A decimal number without a sign or leading zeros, at most 18 digits.
  @inline(__always)
  mutating func decimal() -> Int? {
    let start = offset
    var value = 0
    while offset < bytes.count {
      let digit = bytes[offset] &- 0x30
      if digit > 9 { break }
      if offset - start == 18 { return nil }
      value = value * 10 + Int(digit)
      offset += 1
    }
    let digitCount = offset - start
    if digitCount == 0 || (digitCount > 1 && bytes[start] == 0x30) { return nil }
    return value
  }

  /// The next `count` bytes.
  @inline(__always)
  mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
    guard bytes.count - offset >= count else { return nil }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
  }

  /// The bytes of an event type: `[a-z][a-z0-9_.]*`, at most 64.
  @inline(__always)
  mutating func eventType() -> Range<Int>? {
    let start = offset
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x61...0x7A: break
      case 0x30...0x39, 0x5F, 0x2E: if offset == start { return nil }
      default:
        let isValid = offset > start && offset - start <= Format.typeByteCountMax
        return isValid ? start..<offset : nil
      }
      offset += 1
    }
    return nil
  }
}
