// SHA-256 through libcrypto, with a context that is made once and reused.
import CCrypto

/// A SHA-256 computation that can be used again and again; one thread at a time.
package final class SHA256 {
  // Fetched once: a fetch for each digest costs more than hashing a small record.
  private nonisolated(unsafe) static let algorithm: OpaquePointer? =
    EVP_MD_fetch(nil, "SHA256", nil) ?? EVP_sha256()

  private let context: OpaquePointer

  package init() {
    guard let context = EVP_MD_CTX_new() else { fatalError("SHA-256: out of memory") }
    self.context = context
    start()
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Adds bytes to the digest under way.
  package func update(_ bytes: UnsafeRawBufferPointer) {
    Self.check(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count))
  }

  /// Ends the digest under way and starts an empty one.
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

  /// The digest of these bytes alone; no digest may be under way.
  package func hash(_ bytes: UnsafeRawBufferPointer) -> SHA256Digest {
    update(bytes)
    return finish()
  }

  /// The digest of these bytes; for one-off use, since libcrypto makes a context for it.
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
    // The calls fail for want of memory only, never because of the bytes.
    if status != 1 { fatalError("SHA-256: libcrypto failed") }
  }
}
