// Salts: 16 random bytes and their canonical base64, which always has 24 characters.

/// The written form of an event's salt.
enum SaltText {
  static let byteCount = 16
  static let characterCount = 24

  private static let alphabet: [UInt8] = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func append(_ salt: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
    buffer.reserve(characterCount)
    let target = buffer.base + buffer.count
    alphabet.withUnsafeBufferPointer { alphabet in
      for group in 0..<6 {
        let first = salt[3 * group]
        let second = group < 5 ? salt[3 * group + 1] : 0
        let third = group < 5 ? salt[3 * group + 2] : 0
        let bits = Int(first) << 16 | Int(second) << 8 | Int(third)
        for place in 0..<4 {
          target.storeBytes(
            of: alphabet[bits >> (18 - 6 * place) & 63], toByteOffset: 4 * group + place,
            as: UInt8.self)
        }
      }
    }
    target.storeBytes(of: 0x3D, toByteOffset: 22, as: UInt8.self)
    target.storeBytes(of: 0x3D, toByteOffset: 23, as: UInt8.self)
    buffer.count += characterCount
  }

  /// Decodes into 16 bytes; false unless the text is canonical.
  static func decode(
    _ text: UnsafeRawBufferPointer, into salt: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard isCanonical(text), salt.count >= byteCount else { return false }
    var bits = 0
    var bitCount = 0
    var index = 0
    for character in text.prefix(22) {
      bits = (bits << 6 | Int(value(character))) & 0xFFFF
      bitCount += 6
      if bitCount >= 8, index < byteCount {
        bitCount -= 8
        salt[index] = UInt8(truncatingIfNeeded: bits >> bitCount)
        index += 1
      }
    }
    return true
  }

  static func isCanonical(_ text: UnsafeRawBufferPointer) -> Bool {
    guard text.count == characterCount, text[22] == 0x3D, text[23] == 0x3D else { return false }
    for index in 0..<22 where value(text[index]) > 63 { return false }
    // 22 characters hold 132 bits: the last 4 belong to no byte and must be 0.
    return value(text[21]) & 15 == 0
  }

  /// The six bits that a character stands for; 255 where it stands for none.
  private static func value(_ character: UInt8) -> UInt8 {
    switch character {
    case 0x41...0x5A: character - 0x41
    case 0x61...0x7A: character - 0x61 + 26
    case 0x30...0x39: character - 0x30 + 52
    case 0x2B: 62
    case 0x2F: 63
    default: 255
    }
  }
}
