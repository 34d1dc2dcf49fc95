// UUIDs (RFC 9562): random ones, and those that follow from a name.
import CCrypto

/// The 16 bytes of a UUID.
package struct UUID16: Hashable, Sendable, CustomStringConvertible {
  private let high: UInt64
  private let low: UInt64

  private init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Puts version and variant into 16 bytes that are otherwise taken as they are.
  private init(high: UInt64, low: UInt64, version: UInt64) {
    self.high = high & ~0xF000 | version << 12
    self.low = low & ~(0b11 << 62) | 0b10 << 62
  }

  /// Reads the form `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, in either case; nil for anything else.
  package init?(_ text: String) {
    var digits: (high: UInt64, low: UInt64) = (0, 0)
    var count = 0
    for (place, byte) in text.utf8.enumerated() {
      if place == 8 || place == 13 || place == 18 || place == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = Self.hexValue(byte) else { return nil }
      if count < 16 { digits.high = digits.high << 4 | digit }
      if count >= 16 { digits.low = digits.low << 4 | digit }
      count += 1
      if count > 32 { return nil }
    }
    guard count == 32 else { return nil }
    (high, low) = digits
  }

  private static func hexValue(_ byte: UInt8) -> UInt64? {
    switch byte {
    case 0x30...0x39: UInt64(byte - 0x30)
    case 0x41...0x46, 0x61...0x66: UInt64((byte | 0x20) - 0x61 + 10)
    default: nil
    }
  }

  /// A random UUID (version 4).
  package static func random() -> UUID16 {
    var generator = SystemRandomNumberGenerator()
    return UUID16(high: generator.next(), low: generator.next(), version: 4)
  }

  /// The UUID of a name within a namespace (version 5: SHA-1).
  package static func named(_ name: UnsafeRawBufferPointer, in namespace: UUID16) -> UUID16 {
    var input: [UInt8] = []
    input.reserveCapacity(16 + name.count)
    namespace.append(to: &input)
    input.append(contentsOf: name)
    var digest = [UInt8](repeating: 0, count: 20)
    guard EVP_Digest(input, input.count, &digest, nil, sha1, nil) == 1 else {
      fatalError("SHA-1: libcrypto failed")
    }
    let words = digest.withUnsafeBytes {
      (
        UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    return UUID16(high: words.0, low: words.1, version: 5)
  }

  // Fetched once: a fetch costs more than the digest.
  nonisolated(unsafe) private static let sha1: OpaquePointer? =
    EVP_MD_fetch(nil, "SHA1", nil) ?? EVP_sha1()

  private func append(to bytes: inout [UInt8]) {
    for word in [high, low] {
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
  }

  /// Lower case, in the form that `init(_:)` reads.
  package var description: String {
    let digits = Array("0123456789abcdef".utf8)
    var bytes: [UInt8] = []
    append(to: &bytes)
    var text: [UInt8] = []
    text.reserveCapacity(36)
    for (index, byte) in bytes.enumerated() {
      if index == 4 || index == 6 || index == 8 || index == 10 {
        text.append(UInt8(ascii: "-"))
      }
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}
