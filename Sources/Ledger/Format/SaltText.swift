// Salts: 16 random bytes and their canonical base64, which always has 24 characters.
import Base

/// The written form of an event's salt.
enum SaltText {
  static let byteCount = 16
  static let characterCount = 24
  /// The buffer size that base64 needs for decoding.
  private static let roomByteCount = 18

  static func append(_ salt: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
    buffer.reserve(characterCount)
    Base64.encode(
      salt,
      into: UnsafeMutableBufferPointer(
        start: (buffer.base + buffer.count).assumingMemoryBound(to: UInt8.self),
        count: characterCount))
    buffer.count += characterCount
  }

  /// Decodes a text and passes the 16 bytes to a closure. If the text is not canonical, returns nil without calling
  /// it.
  static func withDecoded<Result>(
    _ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    guard text.count == characterCount else { return nil }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: roomByteCount) { room in
      guard (try? Base64.decode(text, into: room)) == byteCount else { return nil }
      return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<byteCount]))
    }
  }

  static func isCanonical(_ text: UnsafeRawBufferPointer) -> Bool {
    withDecoded(text) { _ in true } ?? false
  }
}
