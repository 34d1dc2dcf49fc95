// Base64 and base64url (RFC 4648 §4 and §5), decoded strictly: each byte sequence has exactly one accepted text.

/// Why a text is not canonical base64. Offsets count bytes from the start of the text.
package enum Base64Error: Error, Equatable, Sendable, CustomStringConvertible {
  /// The number of characters is not a multiple of four (padding is required).
  case invalidLength(characterCount: Int)
  /// One character more than a multiple of four, without padding: no byte sequence has such a text.
  case truncated(characterCount: Int)
  /// A character outside the alphabet, including white space.
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
    case .truncated(let count):
      "base64: length \(count) is one more than a multiple of 4 (truncated)"
    case .invalidCharacter(let offset):
      "base64: character at offset \(offset) is outside the alphabet"
    case .misplacedPadding(let offset):
      "base64: '=' at offset \(offset) is not at the end"
    case .unusedBitsSet(let offset):
      "base64: character at offset \(offset) has unused bits that are not zero"
    }
  }
}

/// Canonical base64, in one of two variants.
package enum Base64 {
  /// An alphabet, and whether padding fills the last group of four characters. Decoding rejects the other variant's
  /// characters, and padding in the unpadded variant.
  package struct Variant: Sendable {
    fileprivate let isPadded: Bool
    fileprivate let alphabet: [UInt8]
    /// The six-bit value of each character; 255 if the character is not in the alphabet.
    fileprivate let values: [UInt8]
    /// The bits of each character, shifted for each of the four positions. Characters outside the alphabet have bit
    /// 31 set, which no valid value uses.
    fileprivate let quartets: [UInt32]

    /// RFC 4648 §4: `+`, `/` and padding.
    package static let standard = Variant(last: "+/", isPadded: true)
    /// RFC 4648 §5 as JWS uses it (RFC 7515 §2): `-`, `_` and no padding.
    package static let url = Variant(last: "-_", isPadded: false)

    private init(last: String, isPadded: Bool) {
      self.isPadded = isPadded
      alphabet = [UInt8](
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789\(last)".utf8)
      var values = [UInt8](repeating: 255, count: 256)
      for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
      self.values = values
      quartets = [18, 12, 6, 0].flatMap { shift in
        values.map { $0 > 63 ? 1 << 31 : UInt32($0) << shift }
      }
    }

    /// How many of the last characters are not a whole group that stands for three bytes: 0, 2 or 3.
    fileprivate func tailCount(_ text: UnsafeRawBufferPointer) throws(Base64Error) -> Int {
      let rest = text.count % 4
      guard isPadded else {
        if rest == 1 { throw .truncated(characterCount: text.count) }
        return rest
      }
      guard rest == 0 else { throw .invalidLength(characterCount: text.count) }
      guard text.last == UInt8(ascii: "=") else { return 0 }
      return text[text.count - 2] == UInt8(ascii: "=") ? 2 : 3
    }
  }

  /// Decodes a whole text. The empty text decodes to no bytes.
  package static func decode(
    _ text: UnsafeRawBufferPointer, _ variant: Variant = .standard
  ) throws(Base64Error) -> [UInt8] {
    var failure: Base64Error?
    let decoded = [UInt8](unsafeUninitializedCapacity: capacity(text)) { output, count in
      do throws(Base64Error) { count = try decode(text, variant, into: output) } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return decoded
  }

  /// Decodes a whole text without allocating. The target must hold three bytes for every four characters, and one byte
  /// less than the number of remaining characters.
  /// - Returns: the number of bytes written.
  package static func decode(
    _ text: UnsafeRawBufferPointer, _ variant: Variant = .standard,
    into target: UnsafeMutableBufferPointer<UInt8>
  ) throws(Base64Error) -> Int {
    let tail = try variant.tailCount(text)
    if text.isEmpty { return 0 }
    precondition(target.count >= capacity(text), "the target is too small")
    var failure: Base64Error?
    let count = variant.values.withUnsafeBufferPointer { values in
      variant.quartets.withUnsafeBufferPointer { quartets in
        let wholeCount = tail == 0 ? text.count : (text.count - 1) / 4 * 4
        return decodeQuartets(
          text, wholeCount: wholeCount, tail: tail, values: values, quartets: quartets,
          into: target, failure: &failure)
      }
    }
    if let failure { throw failure }
    return count
  }

  /// Decodes a whole text held in an array.
  package static func decode(
    _ text: [UInt8], _ variant: Variant = .standard
  ) throws(Base64Error) -> [UInt8] {
    try text.withUnsafeBufferPointer { buffer throws(Base64Error) in
      try decode(UnsafeRawBufferPointer(buffer), variant)
    }
  }

  /// The most bytes that a text stands for.
  private static func capacity(_ text: UnsafeRawBufferPointer) -> Int {
    text.count / 4 * 3 + max(text.count % 4 - 1, 0)
  }

  /// The number of characters that encode a number of bytes, including padding.
  package static func characterCount(byteCount: Int, _ variant: Variant = .standard) -> Int {
    variant.isPadded ? (byteCount + 2) / 3 * 4 : (byteCount * 4 + 2) / 3
  }

  /// Encodes bytes without line breaks.
  package static func encode(
    _ bytes: UnsafeRawBufferPointer, _ variant: Variant = .standard
  ) -> [UInt8] {
    let capacity = characterCount(byteCount: bytes.count, variant)
    return [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
      count = encode(bytes, variant, into: output)
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
    _ bytes: UnsafeRawBufferPointer, _ variant: Variant = .standard,
    into target: UnsafeMutableBufferPointer<UInt8>
  ) -> Int {
    precondition(
      target.count >= characterCount(byteCount: bytes.count, variant), "the target is too small")
    return variant.alphabet.withUnsafeBufferPointer { alphabet in
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
      for index in 0...rest {
        let character = alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)]
        target.initializeElement(at: count + index, to: character)
      }
      count += rest + 1
      guard variant.isPadded else { return count }
      for _ in rest..<3 {
        target.initializeElement(at: count, to: UInt8(ascii: "="))
        count += 1
      }
      return count
    }
  }

  /// Encodes an array of bytes.
  package static func encode(_ bytes: [UInt8], _ variant: Variant = .standard) -> [UInt8] {
    bytes.withUnsafeBytes { encode($0, variant) }
  }

  /// Returns the number of bytes written. If the text is invalid, returns 0 and sets `failure`.
  private static func decodeQuartets(
    _ text: UnsafeRawBufferPointer, wholeCount: Int, tail: Int,
    values: UnsafeBufferPointer<UInt8>, quartets: UnsafeBufferPointer<UInt32>,
    into output: UnsafeMutableBufferPointer<UInt8>, failure: inout Base64Error?
  ) -> Int {
    var read = 0
    var written = 0
    let target = UnsafeMutableRawBufferPointer(output)
    while read < wholeCount {
      let bits =
        quartets[Int(text[read])] | quartets[256 + Int(text[read + 1])]
        | quartets[512 + Int(text[read + 2])] | quartets[768 + Int(text[read + 3])]
      // One comparison checks all four characters.
      if bits > 0xFF_FFFF { break }
      // If there is room, stores four bytes at once: the next three overwrite the fourth.
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
    guard read == wholeCount else {
      failure = fault(text, from: read, to: read + 4, values: values)
      return 0
    }
    guard tail > 0 else { return written }
    failure = fault(text, from: read, to: read + tail, values: values)
    guard failure == nil else { return 0 }
    let first = values[Int(text[read])]
    let second = values[Int(text[read + 1])]
    output.initializeElement(at: written, to: first << 2 | second >> 4)
    written += 1
    if tail == 2 {
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
}
