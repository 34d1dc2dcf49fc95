// A reusable byte buffer into which lines, frames and members are encoded, and a scanner of bytes.
import Base
import Glibc

/// A growable buffer on the heap. It is never zeroed, and it shrinks only on request.
///
/// Sendable because threads pass it on under a lock and never share it.
package final class ByteBuffer: @unchecked Sendable {
  private(set) var base: UnsafeMutableRawPointer
  private(set) var capacity: Int
  /// The number of bytes in use.
  package var count = 0

  package init(capacity: Int = 4096) {
    self.capacity = max(capacity, 64)
    base = .allocate(byteCount: self.capacity, alignment: 16)
  }

  deinit { base.deallocate() }

  /// The bytes in use; valid until the buffer changes.
  package var bytes: UnsafeRawBufferPointer { .init(start: base, count: count) }

  /// All allocated bytes, for a reader to fill.
  package var storage: UnsafeMutableRawBufferPointer { .init(start: base, count: capacity) }

  /// Reserves capacity for a number of bytes beyond those in use.
  func reserve(_ additionalCount: Int) {
    let needed = count + additionalCount
    if needed <= capacity { return }
    let newCapacity = max(needed, capacity * 2)
    let newBase = UnsafeMutableRawPointer.allocate(byteCount: newCapacity, alignment: 16)
    newBase.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = newBase
    capacity = newCapacity
  }

  /// Exchanges memory and content with another buffer.
  func exchange(with other: ByteBuffer) {
    swap(&base, &other.base)
    swap(&capacity, &other.capacity)
    swap(&count, &other.count)
  }

  /// Frees memory after one large use; the content is lost.
  func shrink() {
    base.deallocate()
    capacity = 64 << 10
    base = .allocate(byteCount: capacity, alignment: 16)
    count = 0
  }

  package func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress else { return }
    reserve(bytes.count)
    (base + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  package func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  func append(_ digest: SHA256Digest) {
    digest.withUnsafeBytes { append($0) }
  }

  /// Appends two lower-case hexadecimal digits for each byte.
  func append(hexOf bytes: UnsafeRawBufferPointer) {
    reserve(2 * bytes.count)
    Hex.write(bytes, to: base + count)
    count += 2 * bytes.count
  }

  func append<Integer: FixedWidthInteger>(littleEndian value: Integer) {
    withUnsafeBytes(of: value.littleEndian) { append($0) }
  }

  /// Appends a time in the form that events use.
  func append(fixedTimestampMs ms: Int64) {
    reserve(Timestamp.fixedByteCount)
    Timestamp.writeFixed(ms: ms, to: base + count)
    count += Timestamp.fixedByteCount
  }

  /// Appends a non-negative number in decimal digits.
  func appendDecimal(_ value: Int) {
    reserve(20)
    var rest = UInt(value)
    var digitCount = 1
    var limit: UInt = 10
    while rest >= limit, digitCount < 19 {
      digitCount += 1
      limit *= 10
    }
    var place = base + count + digitCount
    repeat {
      place -= 1
      place.storeBytes(of: 0x30 + UInt8(rest % 10), as: UInt8.self)
      rest /= 10
    } while rest > 0
    count += digitCount
  }
}

// MARK: - Scanner

/// A cursor over bytes for the strict, fixed grammars of lines and frame headers. Reads from left to right. After a
/// failed read, its offset is meaningless.
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
  mutating func read(_ count: Int) -> UnsafeRawBufferPointer? {
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
