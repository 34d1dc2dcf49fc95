// Ed25519 (RFC 8032) through libcrypto.
import CCrypto

/// Signatures over whole messages.
enum Ed25519 {
  static let keyByteCount = 32
  static let signatureByteCount = 64

  /// The public key of a 32-byte seed; nil for any other size.
  static func publicKey(seed: [UInt8]) -> [UInt8]? {
    guard let key = privateKey(seed) else { return nil }
    defer { EVP_PKEY_free(key) }
    var bytes = [UInt8](repeating: 0, count: keyByteCount)
    var count = bytes.count
    guard EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == keyByteCount
    else { return nil }
    return bytes
  }

  /// The 64-byte signature; nil if the seed has another size or libcrypto is out of memory.
  static func sign(_ message: [UInt8], seed: [UInt8]) -> [UInt8]? {
    guard let key = privateKey(seed) else { return nil }
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { return nil }
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: signatureByteCount)
    var count = signature.count
    guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1,
      count == signatureByteCount
    else { return nil }
    return signature
  }

  /// Whether the key signed the message; false if anything has the wrong size.
  static func verify(_ signature: [UInt8], of message: [UInt8], publicKey: [UInt8]) -> Bool {
    guard signature.count == signatureByteCount, publicKey.count == keyByteCount,
      let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, publicKey.count)
    else { return false }
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    // libcrypto puts the reason for a rejected signature into its error queue, which is not read.
    defer { ERR_clear_error() }
    return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  private static func privateKey(_ seed: [UInt8]) -> OpaquePointer? {
    guard seed.count == keyByteCount else { return nil }
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count)
  }
}
