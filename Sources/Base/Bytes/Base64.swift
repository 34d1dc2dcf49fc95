// Base64 (RFC 4648 §4), decoded strictly: each byte sequence has exactly one accepted text.

/// Why a text is not canonical base64. Offsets count bytes from the start of the text.
package enum Base64Error: Error, Equatable, Sendable, CustomStringConvertible {
  /// The number of characters is not a multiple of four (padding is required).
  case invalidLength(characterCount: Int)
  /// A character outside the standard alphabet, including white space.
  case invalidCharacter(offsetBytes: Int)
  /// A `=` anywhere but in the last one or two positions.
  case misplacedPadding(offsetBytes: Int)
  /// The last character sets bits that belong to no byte.
  case unusedBitsSet(offsetBytes: Int)

  package var description: String {
    switch self {
    case .invalidLength(let count):
      "base64: length \(count) is not a multiple of 4 "
        + "(missing padding, or truncated)"
    case .invalidCharacter(let offset):
      "base64: character at offset \(offset) is outside the standard alphabet"
    case .misplacedPadding(let offset):
      "base64: '=' at offset \(offset) is not at the end"
    case .unusedBitsSet(let offset):
      "base64: character at offset \(offset) has unused bits that are not zero"
    }
  }
}

/// Canonical base64 with the standard alphabet.
package enum Base64 {
  /// Decodes a whole text. The empty text decodes to no bytes.
  package static func decode(_ text: UnsafeRawBufferPointer) throws(Base64Error) -> [UInt8] {
    let capacity = text.count / 4 * 3
    var failure: Base64Error?
    let decoded = [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
      do throws(Base64Error) { count = try decode(text, into: output) } catch { failure = error }
    }
    if let failure { throw failure }
    return decoded
  }

  /// Decodes a whole text without allocating. The target must hold three bytes for every four characters.
  /// - Returns: the number of bytes written.
  package static func decode(
    _ text: UnsafeRawBufferPointer, into target: UnsafeMutableBufferPointer<UInt8>
  ) throws(Base64Error) -> Int {
    guard text.count % 4 == 0 else { throw .invalidLength(characterCount: text.count) }
    if text.isEmpty { return 0 }
    precondition(target.count >= text.count / 4 * 3, "the target is too small")
    var failure: Base64Error?
    let count = values.withUnsafeBufferPointer { values in
      decodeQuartets(
        text, padding: paddingCount(text), values: values, into: target, failure: &failure)
    }
    if let failure { throw failure }
    return count
  }

  /// Decodes a whole text held in an array.
  package static func decode(_ text: [UInt8]) throws(Base64Error) -> [UInt8] {
    try text.withUnsafeBufferPointer { buffer throws(Base64Error) in
      try decode(UnsafeRawBufferPointer(buffer))
    }
  }

  /// The number of characters that encode a number of bytes, padding included.
  package static func characterCount(byteCount: Int) -> Int { (byteCount + 2) / 3 * 4 }

  /// Encodes bytes, with padding and without line breaks.
  package static func encode(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: characterCount(byteCount: bytes.count)) { output, count in
      count = encode(bytes, into: output)
    }
  }

  /// Encodes bytes as a text.
  package static func text(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: characterCount(byteCount: bytes.count)) { output in
      bytes.withUnsafeBytes { encode($0, into: output) }
    }
  }

  /// Encodes bytes without allocating. The target must hold their `characterCount`.
  /// - Returns: the number of characters written.
  @discardableResult
  package static func encode(
    _ bytes: UnsafeRawBufferPointer, into target: UnsafeMutableBufferPointer<UInt8>
  ) -> Int {
    precondition(
      target.count >= characterCount(byteCount: bytes.count), "the target is too small")
    return alphabet.withUnsafeBufferPointer { alphabet in
      var count = 0
      var read = 0
      while read + 3 <= bytes.count {
        let bits =
          UInt32(bytes[read]) << 16 | UInt32(bytes[read + 1]) << 8 | UInt32(bytes[read + 2])
        target.initializeElement(at: count, to: alphabet[Int(bits >> 18)])
        target.initializeElement(at: count + 1, to: alphabet[Int(bits >> 12 & 63)])
        target.initializeElement(at: count + 2, to: alphabet[Int(bits >> 6 & 63)])
        target.initializeElement(at: count + 3, to: alphabet[Int(bits & 63)])
        read += 3
        count += 4
      }
      let rest = bytes.count - read
      guard rest > 0 else { return count }
      let bits = UInt32(bytes[read]) << 16 | (rest == 2 ? UInt32(bytes[read + 1]) << 8 : 0)
      for place in 0..<4 {
        let character =
          place <= rest
          ? alphabet[Int(bits >> UInt32(18 - 6 * place) & 63)] : UInt8(ascii: "=")
        target.initializeElement(at: count + place, to: character)
      }
      return count + 4
    }
  }

  /// Encodes an array of bytes.
  package static func encode(_ bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBytes { encode($0) }
  }

  private static func paddingCount(_ text: UnsafeRawBufferPointer) -> Int {
    guard text[text.count - 1] == UInt8(ascii: "=") else { return 0 }
    return text[text.count - 2] == UInt8(ascii: "=") ? 2 : 1
  }

  /// Returns the number of bytes written. If the text is invalid, returns 0 and sets `failure`.
  private static func decodeQuartets(
    _ text: UnsafeRawBufferPointer, padding: Int, values: UnsafeBufferPointer<UInt8>,
    into output: UnsafeMutableBufferPointer<UInt8>, failure: inout Base64Error?
  ) -> Int {
    let wholeCount = padding == 0 ? text.count : text.count - 4
    var read = 0
    var written = 0
    let target = UnsafeMutableRawBufferPointer(output)
    quartets.withUnsafeBufferPointer { quartets in
      while read < wholeCount {
        let bits =
          quartets[Int(text[read])] | quartets[256 + Int(text[read + 1])]
          | quartets[512 + Int(text[read + 2])] | quartets[768 + Int(text[read + 3])]
        // One comparison checks all four characters.
        if bits > 0xFF_FFFF { break }
        // Where there is room, stores four bytes at once: the next three overwrite the fourth.
        if written + 4 <= target.count {
          target.storeBytes(of: (bits << 8).bigEndian, toByteOffset: written, as: UInt32.self)
        } else {
          target[written] = UInt8(truncatingIfNeeded: bits >> 16)
          target[written + 1] = UInt8(truncatingIfNeeded: bits >> 8)
          target[written + 2] = UInt8(truncatingIfNeeded: bits)
        }
        read += 4
        written += 3
      }
    }
    guard read == wholeCount else {
      failure = fault(text, from: read, to: read + 4, values: values)
      return 0
    }
    guard padding > 0 else { return written }
    let significant = 4 - padding
    guard fault(text, from: read, to: read + significant, values: values) == nil else {
      failure = fault(text, from: read, to: read + significant, values: values)
      return 0
    }
    let first = values[Int(text[read])]
    let second = values[Int(text[read + 1])]
    output.initializeElement(at: written, to: first << 2 | second >> 4)
    written += 1
    if padding == 2 {
      guard second & 0x0F == 0 else {
        failure = .unusedBitsSet(offsetBytes: read + 1)
        return 0
      }
      return written
    }
    let third = values[Int(text[read + 2])]
    guard third & 0x03 == 0 else {
      failure = .unusedBitsSet(offsetBytes: read + 2)
      return 0
    }
    output.initializeElement(at: written, to: second << 4 | third >> 2)
    return written + 1
  }

  private static func fault(
    _ text: UnsafeRawBufferPointer, from: Int, to: Int, values: UnsafeBufferPointer<UInt8>
  ) -> Base64Error? {
    for offset in from..<to where values[Int(text[offset])] > 63 {
      return text[offset] == UInt8(ascii: "=")
        ? .misplacedPadding(offsetBytes: offset) : .invalidCharacter(offsetBytes: offset)
    }
    return nil
  }

  private static let alphabet = [UInt8](
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The bits of each character, shifted for each of the four positions. Characters outside the alphabet have bit 31
  /// set, which no valid value uses.
  private static let quartets: [UInt32] = [18, 12, 6, 0].flatMap { shift in
    values.map { $0 > 63 ? 1 << 31 : UInt32($0) << shift }
  }

  /// The six-bit value of each character; 255 if the character is not in the alphabet.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 255, count: 256)
    for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
    return values
  }()
}
