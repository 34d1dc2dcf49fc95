// SHA-256 through libcrypto, with a reusable context.
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
