// SHA-256 values as fixed-size, hashable words.

internal import CCrypto

/// A SHA-256 value: a certificate's fingerprint, or the name of a signer in the cache.
package struct SHA256Digest: Hashable, Sendable, CustomStringConvertible {
  // Words, not an array: no allocation, and equality is four comparisons.
  private let words: (UInt64, UInt64, UInt64, UInt64)

  /// The digest of bytes.
  package init(of bytes: UnsafeRawBufferPointer) {
    var output: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    withUnsafeMutableBytes(of: &output) { buffer in
      let start = buffer.bindMemory(to: UInt8.self).baseAddress
      _ = SHA256(bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, start)
    }
    words = (
      UInt64(bigEndian: output.0), UInt64(bigEndian: output.1), UInt64(bigEndian: output.2),
      UInt64(bigEndian: output.3)
    )
  }

  /// A digest given as 64 hexadecimal digits of either case; nil where the text is none.
  package init?(hexadecimal text: String) {
    guard text.utf8.count == 64 else { return nil }
    var parts: [UInt64] = []
    var word: UInt64 = 0
    for (place, character) in text.utf8.enumerated() {
      guard let digit = Character(Unicode.Scalar(character)).hexDigitValue else { return nil }
      word = word << 4 | UInt64(digit)
      if place % 16 == 15 { parts.append(word) }
    }
    words = (parts[0], parts[1], parts[2], parts[3])
  }

  init(_ first: UInt64, _ second: UInt64, _ third: UInt64, _ fourth: UInt64) {
    words = (first, second, third, fourth)
  }

  package static func == (left: Self, right: Self) -> Bool { left.words == right.words }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
  }

  /// 64 lower-case hexadecimal digits.
  package var description: String {
    [words.0, words.1, words.2, words.3].map { word in
      let digits = String(word, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }
}

extension SHA256Digest {
  /// The fingerprint of the Apple Inc. Root certificate, which signs every receipt's intermediate.
  package static let appleRoot = SHA256Digest(
    0xB0B1_730E_CBC7_FF45, 0x0514_2C49_F129_5E6E, 0xDA6B_CAED_7E2C_68C5, 0xBE91_B5A1_1001_F024)
}
