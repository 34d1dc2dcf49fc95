// A SHA-256 digest as a value, and hexadecimal both ways.

/// 32 bytes: a SHA-256 digest, a leaf or a node of the tree.
package struct Digest32: Sendable, Hashable {
  private var words: (UInt64, UInt64, UInt64, UInt64)

  /// How many bytes a digest has.
  package static let byteCount = 32

  /// All zeros; filled by whoever computes the digest.
  init() { words = (0, 0, 0, 0) }

  /// Copies a digest; nil unless there are exactly 32 bytes.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Digest32.byteCount else { return nil }
    words = (0, 0, 0, 0)
    Swift.withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
  }

  /// Reads 64 lower-case hexadecimal digits; nil for anything else.
  package init?(hex: UnsafeRawBufferPointer) {
    guard hex.count == 64 else { return nil }
    words = (0, 0, 0, 0)
    let isValid = Swift.withUnsafeMutableBytes(of: &words) { target in
      for index in 0..<32 {
        guard let high = Hex.value(hex[2 * index]), let low = Hex.value(hex[2 * index + 1])
        else { return false }
        target[index] = high << 4 | low
      }
      return true
    }
    if !isValid { return nil }
  }

  /// Lends the 32 bytes.
  package func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try Swift.withUnsafeBytes(of: words) { (bytes) throws(Failure) in try body(bytes) }
  }

  /// Writes the 32 bytes through a pointer.
  mutating func withUnsafeMutableBytes<Result>(
    _ body: (UnsafeMutableRawBufferPointer) -> Result
  ) -> Result {
    Swift.withUnsafeMutableBytes(of: &words, body)
  }

  /// The bytes, in order.
  package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// 64 lower-case hexadecimal digits.
  package var hex: String { withUnsafeBytes { Hex.string($0) } }

  package static func == (left: Digest32, right: Digest32) -> Bool {
    left.words.0 == right.words.0 && left.words.1 == right.words.1
      && left.words.2 == right.words.2 && left.words.3 == right.words.3
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }
}

/// Lower-case hexadecimal.
enum Hex {
  static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case 0x30...0x39: character - 0x30
    case 0x61...0x66: character - 0x61 + 10
    default: nil
    }
  }

  static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? 0x30 + value : 0x61 + value - 10
  }

  static func write(_ bytes: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
    buffer.reserve(2 * bytes.count)
    for byte in bytes {
      buffer.base.storeBytes(
        of: digit(byte >> 4), toByteOffset: buffer.count, as: UInt8.self)
      buffer.base.storeBytes(
        of: digit(byte & 15), toByteOffset: buffer.count + 1, as: UInt8.self)
      buffer.count += 2
    }
  }

  static func string(_ bytes: UnsafeRawBufferPointer) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { target in
      for (index, byte) in bytes.enumerated() {
        target[2 * index] = digit(byte >> 4)
        target[2 * index + 1] = digit(byte & 15)
      }
      return 2 * bytes.count
    }
  }
}
