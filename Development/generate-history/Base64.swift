// Base64 (RFC 4648, section 4).

enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    let count = (bytes.count + 2) / 3 * 4
    return String(unsafeUninitializedCapacity: count) { text in
      alphabet.withUnsafeBufferPointer { alphabet in
        var place = 0
        var index = 0
        while index < bytes.count {
          let left = bytes.count - index
          let word =
            UInt32(bytes[index]) << 16 | (left > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
            | (left > 2 ? UInt32(bytes[index + 2]) : 0)
          text[place] = alphabet[Int(word >> 18)]
          text[place + 1] = alphabet[Int(word >> 12 & 63)]
          text[place + 2] = left > 1 ? alphabet[Int(word >> 6 & 63)] : UInt8(ascii: "=")
          text[place + 3] = left > 2 ? alphabet[Int(word & 63)] : UInt8(ascii: "=")
          index += 3
          place += 4
        }
      }
      return count
    }
  }
}
