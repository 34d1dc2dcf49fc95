// Hexadecimal digits, both ways.

/// Hexadecimal; written in lower case. Public where it is called for each byte: only then it inlines.
public enum Hex {
  /// The four bits of a digit, lower case alone; nil for any other byte.
  @inlinable @inline(__always)
  public static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case 0x30...0x39: character - 0x30
    case 0x61...0x66: character - 0x61 + 10
    default: nil
    }
  }

  /// The four bits of a digit of either case; nil for any other byte.
  package static func value(anyCase character: UInt8) -> UInt8? {
    (0x41...0x46).contains(character) ? character - 0x41 + 10 : value(character)
  }

  /// The digit of four bits.
  @inlinable @inline(__always)
  public static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? 0x30 + value : 0x61 + value - 10
  }

  /// Writes two digits for each byte from `target` on, which has room for them.
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
