// Hexadecimal digits, both ways; texts compared by bytes; binary search.

/// Hexadecimal; always written in lower case. The per-byte functions are public because only then can they be
/// inlined.
public enum Hex {
  /// The value of a lower-case digit; nil for any other byte.
  @inlinable @inline(__always)
  public static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case 0x30...0x39: character - 0x30
    case 0x61...0x66: character - 0x61 + 10
    default: nil
    }
  }

  /// The value of a digit in either case; nil for any other byte.
  package static func value(anyCase character: UInt8) -> UInt8? {
    (0x41...0x46).contains(character) ? character - 0x41 + 10 : value(character)
  }

  /// The four bytes encoded by eight lower-case digits, loaded as a little-endian word; nil if any byte is not such a
  /// digit. Checks all eight digits at once.
  @inlinable @inline(__always)
  public static func bytes(_ digits: UInt64) -> UInt32? {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs = ones &* 0x80
    guard digits & highs == 0 else { return nil }
    // Sets the high bit of each byte that is at least the bound. No addition carries into the next byte.
    func reaches(_ bound: UInt64) -> UInt64 { (digits &+ ones &* (0x80 &- bound)) & highs }
    let numbers = reaches(0x30) & ~reaches(0x3A)
    let letters = reaches(0x61) & ~reaches(0x67)
    guard numbers | letters == highs else { return nil }
    let nibbles = (digits & (ones &* 0x0F)) &+ (letters >> 7) &* 9
    let pairs = (nibbles << 4 | nibbles >> 8) & 0x00FF_00FF_00FF_00FF
    let words = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF
    return UInt32(truncatingIfNeeded: words | words >> 16)
  }

  /// The digit for a four-bit value.
  @inlinable @inline(__always)
  public static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? 0x30 + value : 0x61 + value - 10
  }

  /// Writes two digits for each byte, starting at `target`, which must have room for them.
  package static func write(_ bytes: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer) {
    var place = target
    for byte in bytes {
      place.storeBytes(of: digit(byte >> 4), as: UInt8.self)
      place.storeBytes(of: digit(byte & 15), toByteOffset: 1, as: UInt8.self)
      place += 2
    }
  }

  /// Two digits for each byte.
  package static func text(_ bytes: UnsafeRawBufferPointer) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { target in
      if let start = target.baseAddress { write(bytes, to: UnsafeMutableRawPointer(start)) }
      return 2 * bytes.count
    }
  }
}

// MARK: - Byte comparison

extension StringProtocol {
  /// Whether two texts have the same UTF-8 bytes. `==` also treats canonically equivalent texts as equal, such as an
  /// accented letter written as one scalar or as two. Names, origins and other people's keys must match byte for
  /// byte.
  package func hasSameBytes(as other: some StringProtocol) -> Bool {
    utf8.elementsEqual(other.utf8)
  }
}

// MARK: - Binary search

/// The first index in a range for which `isBefore` is false. `isBefore` must be true for all indexes before some
/// point and false for all after it.
@inlinable @inline(__always)
package func lowerBound(_ range: Range<Int>, _ isBefore: (Int) -> Bool) -> Int {
  var low = range.lowerBound
  var high = range.upperBound
  while low < high {
    let middle = low + (high - low) / 2
    if isBefore(middle) { low = middle + 1 } else { high = middle }
  }
  return low
}
