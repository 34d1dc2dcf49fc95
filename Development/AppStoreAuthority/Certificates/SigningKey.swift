// RSA and EC keys of the test authority: made, saved, loaded, signed with.
private import CCrypto

/// Why the authority could not do something.
package struct AuthorityError: Error, CustomStringConvertible, Sendable {
  package let description: String

  package init(_ operation: String, _ object: String, _ cause: String) {
    description = "\(operation) \(object): \(cause)"
  }

  /// What libcrypto refused; its queue of errors is emptied.
  init(_ operation: String, libcrypto object: String) {
    var text = [CChar](repeating: 0, count: 256)
    let code = ERR_get_error()
    ERR_clear_error()
    ERR_error_string_n(code, &text, text.count)
    let end = text.firstIndex(of: 0) ?? text.endIndex
    let cause = String(decoding: text[..<end].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.init(operation, object, code == 0 ? "libcrypto gives no cause" : cause)
  }
}

/// The digests that receipts are signed with.
package enum SigningDigest: String, CaseIterable, Sendable {
  case sha1
  case sha256

  package var algorithm: [UInt8] {
    DER.algorithm(self == .sha1 ? "1.3.14.3.2.26" : "2.16.840.1.101.3.4.2.1")
  }

  package var withRSA: [UInt8] {
    DER.algorithm("1.2.840.113549.1.1.\(self == .sha1 ? "5" : "11")")
  }

  /// The digest of some bytes.
  package func hash(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 64)
    var count: UInt32 = 0
    let status = EVP_Digest(bytes, bytes.count, &digest, &count, libcrypto, nil)
    precondition(status == 1, "\(self): libcrypto cannot hash")
    return Array(digest.prefix(Int(count)))
  }

  fileprivate var libcrypto: OpaquePointer? { self == .sha1 ? EVP_sha1() : EVP_sha256() }
}

/// The curves of signed objects' certificates.
package enum SigningCurve: Sendable {
  case p256
  case p384
  case p521

  fileprivate var identifier: Int32 {
    switch self {
    case .p256: NID_X9_62_prime256v1
    case .p384: NID_secp384r1
    case .p521: NID_secp521r1
    }
  }
}

/// A key pair, RSA or EC. Safe to use from several threads at once.
package final class SigningKey: @unchecked Sendable {
  // Unchecked: libcrypto locks what it computes late inside a key; nothing else changes it.
  private let handle: OpaquePointer

  /// Makes a key; 2,048 bits take a good part of a second.
  package init(bits: Int32) throws(AuthorityError) {
    var made: OpaquePointer?
    if let context = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil) {
      defer { EVP_PKEY_CTX_free(context) }
      if EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) == 1 {
        _ = EVP_PKEY_keygen(context, &made)
      }
    }
    guard let made else { throw AuthorityError("make", libcrypto: "an RSA key") }
    handle = made
  }

  /// Makes a key on a curve, in less than a millisecond.
  package init(curve: SigningCurve) throws(AuthorityError) {
    var made: OpaquePointer?
    if let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) {
      defer { EVP_PKEY_CTX_free(context) }
      if EVP_PKEY_keygen_init(context) == 1,
        EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, curve.identifier) == 1
      {
        _ = EVP_PKEY_keygen(context, &made)
      }
    }
    guard let made else { throw AuthorityError("make", libcrypto: "an EC key") }
    handle = made
  }

  /// Reads a private key in PEM, as OpenSSL writes it.
  package init(pem: [UInt8]) throws(AuthorityError) {
    let read = pem.withUnsafeBytes { text -> OpaquePointer? in
      // It refers to the text, and copies nothing.
      guard let memory = BIO_new_mem_buf(text.baseAddress, Int32(clamping: text.count)) else {
        return nil
      }
      defer { BIO_free(memory) }
      return PEM_read_bio_PrivateKey(memory, nil, nil, nil)
    }
    guard let read else { throw AuthorityError("read", libcrypto: "a private key in PEM") }
    handle = read
  }

  deinit { EVP_PKEY_free(handle) }

  /// The private key in PEM (PKCS#8, not encrypted).
  package func pem() throws(AuthorityError) -> [UInt8] {
    guard let memory = BIO_new(BIO_s_mem()) else {
      throw AuthorityError("write", libcrypto: "a private key in PEM")
    }
    defer { BIO_free(memory) }
    guard PEM_write_bio_PrivateKey(memory, handle, nil, nil, 0, nil, nil) == 1 else {
      throw AuthorityError("write", libcrypto: "a private key in PEM")
    }
    var text = [UInt8](repeating: 0, count: 16_384)
    let count = BIO_read(memory, &text, Int32(text.count))
    guard count > 0 else { throw AuthorityError("write", libcrypto: "a private key in PEM") }
    return Array(text.prefix(Int(count)))
  }

  /// SubjectPublicKeyInfo in DER.
  package func publicKeyInfo() throws(AuthorityError) -> [UInt8] {
    var buffer: UnsafeMutablePointer<UInt8>?
    let count = i2d_PUBKEY(handle, &buffer)
    guard count > 0, let buffer else { throw AuthorityError("write", libcrypto: "a public key") }
    defer { CRYPTO_free(buffer, "", 0) }
    return Array(UnsafeBufferPointer(start: buffer, count: Int(count)))
  }

  package var isRSA: Bool { EVP_PKEY_get_base_id(handle) == EVP_PKEY_RSA }

  /// The AlgorithmIdentifier of this key's signatures over SHA-256.
  package var signatureAlgorithm: [UInt8] {
    isRSA
      ? SigningDigest.sha256.withRSA
      : DER.sequence(DER.objectIdentifier(ObjectIdentifier.ecdsaWithSHA256))
  }

  /// Signs with RSASSA-PKCS1-v1_5, or with ECDSA, whose signature is DER and differs each time.
  package func sign(_ content: [UInt8], _ digest: SigningDigest) throws(AuthorityError) -> [UInt8] {
    guard let context = EVP_MD_CTX_new() else {
      throw AuthorityError("make", libcrypto: "a digest")
    }
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: 1_024)
    var count = signature.count
    guard EVP_DigestSignInit(context, nil, digest.libcrypto, nil, handle) == 1,
      EVP_DigestSign(context, &signature, &count, content, content.count) == 1
    else { throw AuthorityError("sign", libcrypto: "with RSA or EC") }
    return Array(signature.prefix(count))
  }

  /// Signs with ECDSA on P-256 and SHA-256, in the form of ES256: R, then S, 32 bytes each (RFC 7518 §3.4).
  package func signES256(_ content: [UInt8]) throws(AuthorityError) -> [UInt8] {
    let signature = try sign(content, .sha256)
    let parsed = signature.withUnsafeBufferPointer { buffer in
      var cursor = buffer.baseAddress
      return d2i_ECDSA_SIG(nil, &cursor, buffer.count)
    }
    guard let parsed else { throw AuthorityError("sign", libcrypto: "with EC") }
    defer { ECDSA_SIG_free(parsed) }
    var raw = [UInt8](repeating: 0, count: 64)
    let isWhole = raw.withUnsafeMutableBufferPointer { raw in
      BN_bn2binpad(ECDSA_SIG_get0_r(parsed), raw.baseAddress, 32) == 32
        && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), raw.baseAddress.map { $0 + 32 }, 32) == 32
    }
    guard isWhole else { throw AuthorityError("sign", "an object", "the key is not on P-256") }
    return raw
  }

  /// Whether a signature in the form of ES256 is this key's.
  package func verifies(es256 signature: [UInt8], of content: [UInt8]) -> Bool {
    guard signature.count == 64, let parsed = ECDSA_SIG_new() else { return false }
    defer { ECDSA_SIG_free(parsed) }
    let (r, s) = signature.withUnsafeBufferPointer {
      (BN_bin2bn($0.baseAddress, 32, nil), BN_bin2bn($0.baseAddress.map { $0 + 32 }, 32, nil))
    }
    // From here on the numbers are the signature's.
    guard ECDSA_SIG_set0(parsed, r, s) == 1 else {
      BN_free(r)
      BN_free(s)
      return false
    }
    var buffer: UnsafeMutablePointer<UInt8>?
    let count = i2d_ECDSA_SIG(parsed, &buffer)
    guard count > 0, let buffer, let context = EVP_MD_CTX_new() else { return false }
    defer {
      CRYPTO_free(buffer, "", 0)
      EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    return EVP_DigestVerifyInit(context, nil, SigningDigest.sha256.libcrypto, nil, handle) == 1
      && EVP_DigestVerify(context, buffer, Int(count), content, content.count) == 1
  }
}
