// UUIDs (RFC 9562): random ones and name-based ones.
import CCrypto

/// The 16 bytes of a UUID.
package struct UUID16: Hashable, Sendable, CustomStringConvertible {
  package static let byteCount = 16
  private let high: UInt64
  private let low: UInt64

  private init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Sets the version and variant bits and keeps all others.
  private init(high: UInt64, low: UInt64, version: UInt64) {
    self.high = high & ~0xF000 | version << 12
    self.low = low & ~(0b11 << 62) | 0b10 << 62
  }

  /// Copies a UUID; nil unless there are exactly 16 bytes.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Self.byteCount else { return nil }
    high = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
    low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
  }

  /// Makes a version 4 UUID from 16 random bytes; nil unless there are 16.
  package init?(random bytes: [UInt8]) {
    guard let plain = bytes.withUnsafeBytes({ UUID16($0) }) else { return nil }
    self.init(high: plain.high, low: plain.low, version: 4)
  }

  /// Reads the form `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, in either case; nil for anything else.
  package init?(_ text: String) {
    var digits: (high: UInt64, low: UInt64) = (0, 0)
    var count = 0
    for (index, byte) in text.utf8.enumerated() {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = Hex.value(anyCase: byte).map(UInt64.init) else { return nil }
      if count < 16 { digits.high = digits.high << 4 | digit }
      if count >= 16 { digits.low = digits.low << 4 | digit }
      count += 1
      if count > 32 { return nil }
    }
    guard count == 32 else { return nil }
    (high, low) = digits
  }

  /// A random UUID (version 4).
  package static func random() -> UUID16 {
    var generator = SystemRandomNumberGenerator()
    return UUID16(high: generator.next(), low: generator.next(), version: 4)
  }

  /// The UUID of a name within a namespace (version 5: SHA-1).
  package static func named(_ name: UnsafeRawBufferPointer, in namespace: UUID16) -> UUID16 {
    // The buffer holds the digest, followed by the hashed bytes.
    let (high, low) = withUnsafeTemporaryAllocation(
      byteCount: 24 + byteCount + name.count, alignment: 8
    ) { room in
      let input = UnsafeMutableRawBufferPointer(rebasing: room[24...])
      namespace.withUnsafeBytes { input.copyMemory(from: $0) }
      UnsafeMutableRawBufferPointer(rebasing: input[byteCount...]).copyMemory(from: name)
      let digest = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
      guard EVP_Digest(input.baseAddress, input.count, digest, nil, sha1, nil) == 1 else {
        fatalError("SHA-1: libcrypto failed")
      }
      return (
        UInt64(bigEndian: room.load(fromByteOffset: 0, as: UInt64.self)),
        UInt64(bigEndian: room.load(fromByteOffset: 8, as: UInt64.self))
      )
    }
    return UUID16(high: high, low: low, version: 5)
  }

  // Fetched once: fetching it costs more than computing the digest.
  nonisolated(unsafe) private static let sha1: OpaquePointer? =
    EVP_MD_fetch(nil, "SHA1", nil) ?? EVP_sha1()

  /// Passes the 16 bytes to a closure.
  package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    Swift.withUnsafeBytes(of: (high.bigEndian, low.bigEndian), body)
  }

  /// Lower case, in the form that `init(_:)` reads.
  package var description: String {
    String(unsafeUninitializedCapacity: Self.textByteCount) { write(to: $0) }
  }

  private static let textByteCount = 36

  /// Passes the bytes of `description` to a closure, without allocating.
  package func withText<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.textByteCount) { text in
      _ = write(to: text)
      return body(UnsafeRawBufferPointer(text))
    }
  }

  private func write(to text: UnsafeMutableBufferPointer<UInt8>) -> Int {
    withUnsafeBytes { bytes in
      var offset = 0
      for (index, byte) in bytes.enumerated() {
        if index == 4 || index == 6 || index == 8 || index == 10 {
          text.initializeElement(at: offset, to: UInt8(ascii: "-"))
          offset += 1
        }
        text.initializeElement(at: offset, to: Hex.digit(byte >> 4))
        text.initializeElement(at: offset + 1, to: Hex.digit(byte & 15))
        offset += 2
      }
      return offset
    }
  }
}
