// Checks that a signer's certificate leads to a trusted anchor, regardless of dates.

internal import Base
internal import CCrypto

/// A signer whose chain has been verified, with what is needed to check its signatures.
final class KnownSigner: @unchecked Sendable {
  // Unchecked: an EVP_PKEY is only read after creation, and one thread at a time uses a check.
  let certificate: Certificate
  /// For each chain above the signer, the period in which all of its certificates are valid, in epoch
  /// seconds. There are two chains if an intermediate was reissued with the same name and key.
  let commonValidities: [ClosedRange<Int64>]
  /// The fingerprint of the last certificate of its first chain.
  let anchor: SHA256Digest
  private let key: OpaquePointer
  /// Reused: setting up a check takes a third as long as the check itself.
  private let spareChecks = Monitor<[SignatureCheck]>([])

  /// Twice what the App Store uses. A larger key would only cost time.
  private static let maximumKeySizeBits: Int32 = 4_096

  /// The kinds of keys: receipts are signed with RSA, signed objects with an elliptic curve.
  enum KeyKind {
    case rsa, elliptic

    fileprivate var identifier: Int32 { self == .rsa ? EVP_PKEY_RSA : EVP_PKEY_EC }
  }

  /// Nil if the certificate's key is of another kind or is too large.
  init?(certificate: Certificate, chains: [[Certificate]], key kind: KeyKind = .rsa) {
    guard let key = X509_get_pubkey(certificate.handle) else {
      ERR_clear_error()
      return nil
    }
    guard EVP_PKEY_get_base_id(key) == kind.identifier,
      EVP_PKEY_get_bits(key) <= Self.maximumKeySizeBits
    else {
      EVP_PKEY_free(key)
      return nil
    }
    self.certificate = certificate
    self.key = key
    anchor = chains.first?.last?.fingerprint ?? certificate.fingerprint
    commonValidities = chains.compactMap { chain in
      let first = chain.map(\.validity.lowerBound).max() ?? certificate.validity.lowerBound
      let last = chain.map(\.validity.upperBound).min() ?? certificate.validity.upperBound
      return first <= last ? first...last : nil
    }
  }

  deinit { EVP_PKEY_free(key) }

  /// Nil if every certificate of a chain was valid at this time.
  func timeFault(atMs milliseconds: Int64) -> SignatureFault? {
    // Round down: a certificate's last second lasts until the next one begins.
    let seconds = floorDivide(milliseconds, 1_000)
    if commonValidities.contains(where: { $0.contains(seconds) }) { return nil }
    guard let first = commonValidities.map(\.lowerBound).min() else { return .expired }
    return seconds < first ? .notYetValid : .expired
  }

  /// Checks a signature over the prefix followed by the content: RSA's (PKCS#1 v1.5), or ECDSA's in DER.
  func hasSigned(
    prefix: UInt8?, _ content: UnsafeRawBufferPointer, digest: DigestAlgorithm,
    signature: UnsafeRawBufferPointer
  ) -> Bool {
    let spare = spareChecks.withLock { checks in
      checks.lastIndex { $0.digest == digest }.map { checks.remove(at: $0) }
    }
    guard let check = spare ?? SignatureCheck(key, digest),
      check.isGood(prefix: prefix, content, signature: signature)
    else {
      // A failed check is not reused.
      ERR_clear_error()
      return false
    }
    spareChecks.withLock { $0.append(check) }
    return true
  }
}

/// libcrypto's state for checks with one key and one digest. One thread at a time uses it.
private final class SignatureCheck: @unchecked Sendable {
  let digest: DigestAlgorithm
  private let digestContext: OpaquePointer
  private let keyContext: OpaquePointer

  /// Nil if libcrypto fails, for lack of memory.
  init?(_ key: OpaquePointer, _ digest: DigestAlgorithm) {
    guard let digestContext = EVP_MD_CTX_new() else { return nil }
    guard let keyContext = EVP_PKEY_CTX_new(key, nil) else {
      EVP_MD_CTX_free(digestContext)
      return nil
    }
    self.digest = digest
    self.digestContext = digestContext
    self.keyContext = keyContext
    let isRSA = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA
    guard EVP_PKEY_verify_init(keyContext) == 1,
      !isRSA || EVP_PKEY_CTX_set_rsa_padding(keyContext, RSA_PKCS1_PADDING) == 1,
      EVP_PKEY_CTX_set_signature_md(keyContext, digest.messageDigest) == 1
    else { return nil }
  }

  deinit {
    EVP_MD_CTX_free(digestContext)
    EVP_PKEY_CTX_free(keyContext)
  }

  func isGood(
    prefix: UInt8?, _ content: UnsafeRawBufferPointer, signature: UnsafeRawBufferPointer
  ) -> Bool {
    guard EVP_DigestInit_ex(digestContext, digest.messageDigest, nil) == 1 else { return false }
    if var prefix, EVP_DigestUpdate(digestContext, &prefix, 1) != 1 { return false }
    guard EVP_DigestUpdate(digestContext, content.baseAddress, content.count) == 1 else {
      return false
    }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(EVP_MAX_MD_SIZE)) { room in
      var count: UInt32 = 0
      guard EVP_DigestFinal_ex(digestContext, room.baseAddress, &count) == 1 else { return false }
      return EVP_PKEY_verify(
        keyContext, signature.bindMemory(to: UInt8.self).baseAddress, signature.count,
        room.baseAddress, Int(count)) == 1
    }
  }
}

/// Chain building by libcrypto, with a given anchor as the only trusted certificate.
package enum CertificateChain {
  /// What a chain must satisfy beside its signatures, its names and the authorities' extensions.
  package enum Rules {
    /// Old receipts use SHA-1 throughout and RSA with 1024 bits.
    case receipts
    /// At least 112 bits of security, and the anchor's own signature.
    case signedObjects
  }

  /// Whether `signer` leads to `anchor` through `intermediate` (nil: directly) and through nothing else.
  /// `KnownSigner` checks the dates, so a fault of time alone can be distinguished.
  package static func leads(
    from signer: Certificate, over intermediate: Certificate?, to anchor: Certificate,
    rules: Rules = .receipts
  ) -> Bool {
    defer { ERR_clear_error() }
    guard let store = X509_STORE_new() else { return false }
    defer { X509_STORE_free(store) }
    guard X509_STORE_add_cert(store, anchor.handle) == 1,
      let untrusted = OPENSSL_sk_new_null()
    else { return false }
    defer { OPENSSL_sk_free(untrusted) }
    if let intermediate {
      guard OPENSSL_sk_push(untrusted, UnsafeRawPointer(intermediate.handle)) == 1 else {
        return false
      }
    }
    guard let context = X509_STORE_CTX_new() else { return false }
    defer { X509_STORE_CTX_free(context) }
    guard X509_STORE_CTX_init(context, store, signer.handle, untrusted) == 1,
      let parameters = X509_STORE_CTX_get0_param(context)
    else { return false }
    var flags = UInt(X509_V_FLAG_NO_CHECK_TIME)
    // A configured intermediate may be the anchor although it did not sign itself.
    if intermediate == nil { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
    if rules == .signedObjects { flags |= UInt(X509_V_FLAG_CHECK_SS_SIGNATURE) }
    X509_VERIFY_PARAM_set_flags(parameters, flags)
    X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_ANY)
    X509_VERIFY_PARAM_set_auth_level(parameters, rules == .receipts ? 0 : 2)
    guard X509_verify_cert(context) == 1 else { return false }

    let expected = [signer, intermediate, anchor].compactMap { $0 }
    guard let chain = X509_STORE_CTX_get0_chain(context),
      OPENSSL_sk_num(chain) == Int32(expected.count)
    else { return false }
    return expected.indices.allSatisfy { place in
      guard let found = OPENSSL_sk_value(chain, Int32(place)) else { return false }
      return X509_cmp(OpaquePointer(found), expected[place].handle) == 0
    }
  }
}
