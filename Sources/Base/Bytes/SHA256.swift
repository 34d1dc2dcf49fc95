// SHA-256 through libcrypto, with a reusable context; and its digests.
import CCrypto

/// A reusable SHA-256 computation. Not thread-safe.
package final class SHA256 {
  // Fetched once: fetching it for each digest costs more than hashing a small record.
  private nonisolated(unsafe) static let algorithm: OpaquePointer? =
    EVP_MD_fetch(nil, "SHA256", nil) ?? EVP_sha256()

  private let context: OpaquePointer

  package init() {
    guard let context = EVP_MD_CTX_new() else { fatalError("SHA-256: out of memory") }
    self.context = context
    start()
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Adds bytes to the current digest.
  package func update(_ bytes: UnsafeRawBufferPointer) {
    Self.check(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count))
  }

  /// Returns the current digest and starts a new one.
  package func finish() -> SHA256Digest {
    var digest = SHA256Digest()
    let status = digest.withUnsafeMutableBytes { target in
      EVP_DigestFinal_ex(
        context, target.baseAddress?.assumingMemoryBound(to: UInt8.self), nil)
    }
    Self.check(status)
    start()
    return digest
  }

  /// The digest of these bytes alone. No digest may be in progress.
  package func hash(_ bytes: UnsafeRawBufferPointer) -> SHA256Digest {
    update(bytes)
    return finish()
  }

  /// The digest of these bytes, for one-off use: libcrypto creates a context for each call.
  package static func hash(_ bytes: UnsafeRawBufferPointer) -> SHA256Digest {
    var digest = SHA256Digest()
    let status = digest.withUnsafeMutableBytes { target in
      EVP_Digest(
        bytes.baseAddress, bytes.count,
        target.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, algorithm, nil)
    }
    check(status)
    return digest
  }

  private func start() { Self.check(EVP_DigestInit_ex(context, SHA256.algorithm, nil)) }

  private static func check(_ status: Int32) {
    // These calls fail only if memory runs out, never because of the bytes.
    if status != 1 { fatalError("SHA-256: libcrypto failed") }
  }
}

// MARK: - Digests

/// 32 bytes: a SHA-256 digest, a certificate fingerprint, or a leaf or node of the tree.
package struct SHA256Digest: Sendable, Hashable {
  private var words: (UInt64, UInt64, UInt64, UInt64)

  /// The length of a digest in bytes.
  package static let byteCount = 32

  /// All zeros; the code that computes the digest fills it in.
  init() { words = (0, 0, 0, 0) }

  /// Copies a digest; nil unless there are exactly 32 bytes.
  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == SHA256Digest.byteCount else { return nil }
    words = (0, 0, 0, 0)
    Swift.withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
  }

  /// A constant digest, given as four 16-digit numbers in the order in which its hexadecimal form is read.
  package init(_ first: UInt64, _ second: UInt64, _ third: UInt64, _ fourth: UInt64) {
    words = (first.bigEndian, second.bigEndian, third.bigEndian, fourth.bigEndian)
  }

  /// Reads 64 lower-case hexadecimal digits; nil for anything else.
  package init?(hex: UnsafeRawBufferPointer) {
    guard hex.count == 64 else { return nil }
    words = (0, 0, 0, 0)
    let isValid = Swift.withUnsafeMutableBytes(of: &words) { target in
      guard let digits = hex.baseAddress, let bytes = target.baseAddress else { return false }
      for index in 0..<8 {
        let word = digits.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self)
        guard let four = Hex.bytes(UInt64(littleEndian: word)) else { return false }
        bytes.storeBytes(of: four.littleEndian, toByteOffset: 4 * index, as: UInt32.self)
      }
      return true
    }
    if !isValid { return nil }
  }

  /// Passes the 32 bytes to a closure.
  package func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try Swift.withUnsafeBytes(of: words) { (bytes) throws(Failure) in try body(bytes) }
  }

  /// Lets a closure write the 32 bytes.
  mutating func withUnsafeMutableBytes<Result>(
    _ body: (UnsafeMutableRawBufferPointer) -> Result
  ) -> Result {
    Swift.withUnsafeMutableBytes(of: &words, body)
  }

  /// The bytes, in order.
  package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// 64 lower-case hexadecimal digits.
  package var hex: String { withUnsafeBytes { Hex.text($0) } }

  package static func == (left: SHA256Digest, right: SHA256Digest) -> Bool {
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

// MARK: - The OpenSSL library

package enum CryptoLibrary {
  /// For example `OpenSSL 3.0.16`: the version on this system.
  package static var name: String {
    "OpenSSL "
      + (OpenSSL_version(OPENSSL_VERSION_STRING).map { String(cString: $0) } ?? unknownVersion)
  }

  /// The text for a library that does not report its version.
  package static let unknownVersion = "of an unknown version"
}
