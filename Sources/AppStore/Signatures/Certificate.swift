// X.509 certificates, parsed by libcrypto and owned by Swift objects, and the check of their chains.
package import Base
import CCrypto
import Glibc

/// An X.509 certificate. Immutable.
package final class Certificate: @unchecked Sendable {
  // Unchecked: libcrypto locks the fields that it computes lazily in an X509; nothing else changes it.
  let handle: OpaquePointer
  package let fingerprint: SHA256Digest
  /// First and last second of validity, in epoch seconds.
  let validity: ClosedRange<Int64>
  /// The issuer and serial number as SignerInfo gives them.
  let signerName: [UInt8]

  /// The largest certificate accepted; limits what libcrypto has to parse.
  static let maximumSizeBytes = 16_384

  /// Parses one certificate, which must fill `der`; nil if it does not.
  init?(der: UnsafeRawBufferPointer) {
    guard der.count <= Self.maximumSizeBytes, let signerName = Self.signerName(in: der) else {
      return nil
    }
    var cursor = der.bindMemory(to: UInt8.self).baseAddress
    guard let handle = d2i_X509(nil, &cursor, der.count) else {
      ERR_clear_error()
      return nil
    }
    guard UnsafeRawPointer(cursor) == der.baseAddress.map({ $0 + der.count }),
      let notBefore = Self.epochSeconds(X509_get0_notBefore(handle)),
      let notAfter = Self.epochSeconds(X509_get0_notAfter(handle)), notBefore <= notAfter
    else {
      X509_free(handle)
      ERR_clear_error()
      return nil
    }
    self.handle = handle
    self.signerName = signerName
    fingerprint = SHA256.hash(der)
    validity = notBefore...notAfter
  }

  deinit { X509_free(handle) }

  /// Parses one certificate in an array.
  static func parse(_ der: [UInt8]) -> Certificate? {
    der.withUnsafeBytes { Certificate(der: $0) }
  }

  /// Whether the certificate names itself as its issuer.
  var isSelfIssued: Bool { X509_NAME_cmp(issuerName, subjectName) == 0 }

  /// Whether `other` has the name of this certificate's issuer, even if it did not sign this certificate.
  func namesAsIssuer(_ other: Certificate) -> Bool {
    X509_NAME_cmp(issuerName, other.subjectName) == 0
  }

  private var issuerName: OpaquePointer? { X509_get_issuer_name(handle) }
  private var subjectName: OpaquePointer? { X509_get_subject_name(handle) }

  /// Whether the certificate has an extension with this OID, whatever its value.
  package func bears(_ purpose: CertificatePurpose) -> Bool {
    guard let object = OBJ_txt2obj(purpose.rawValue, 1) else { return false }
    defer { ASN1_OBJECT_free(object) }
    return X509_get_ext_by_OBJ(handle, object, -1) >= 0
  }

  /// Whether it may issue certificates, by its extensions or because it is a root of version 1, which has none.
  var isAuthority: Bool { X509_check_ca(handle) > 0 }

  /// The curve of its key; nil if the key is of another kind or on another curve.
  var curve: CertificateCurve? {
    guard let key = X509_get0_pubkey(handle) else {
      ERR_clear_error()
      return nil
    }
    var name = [CChar](repeating: 0, count: 32)
    var count = 0
    guard EVP_PKEY_get_base_id(key) == EVP_PKEY_EC,
      EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1, count < name.count
    else {
      ERR_clear_error()
      return nil
    }
    return CertificateCurve(
      rawValue: String(decoding: name[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self))
  }

  /// The subject's common name, cut to 256 bytes; empty if there is none.
  var commonName: String {
    guard let subjectName else { return "" }
    let index = X509_NAME_get_index_by_NID(subjectName, NID_commonName, -1)
    guard index >= 0, let entry = X509_NAME_get_entry(subjectName, index),
      let text = X509_NAME_ENTRY_get_data(entry)
    else { return "" }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = ASN1_STRING_to_UTF8(&bytes, text)
    guard count >= 0, let bytes else {
      ERR_clear_error()
      return ""
    }
    // The macro OPENSSL_free expands to this call.
    defer { CRYPTO_free(bytes, #file, #line) }
    return String(
      decoding: UnsafeBufferPointer(start: bytes, count: min(Int(count), 256)), as: UTF8.self)
  }

  /// Issuer and serial number, taken from the certificate's bytes: TBSCertificate is SEQUENCE { [0] version,
  /// serialNumber, signature, issuer, ... }.
  private static func signerName(in der: UnsafeRawBufferPointer) -> [UInt8]? {
    do {
      var file = DERReader(der)
      var certificate = try file.enter(DERIdentifier.sequence)
      var body = try certificate.enter(DERIdentifier.sequence)
      // The version is omitted for version 1, which some roots have.
      if body.nextIdentifier == DERIdentifier.context0 { _ = try body.next() }
      let serial = try body.next(DERIdentifier.integer)
      _ = try body.next(DERIdentifier.sequence)
      let issuer = try body.next(DERIdentifier.sequence)
      return [UInt8](der[issuer.range]) + [UInt8](der[serial.range])
    } catch { return nil }
  }

  private static func epochSeconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    var parts = tm()
    guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
    let dayNumber = CivilDate.dayNumber(
      year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday))
    return Int64(dayNumber) * 86_400 + Int64(parts.tm_hour) * 3_600 + Int64(parts.tm_min) * 60
      + Int64(parts.tm_sec)
  }
}

/// The curves of signed objects' certificates, by libcrypto's names.
enum CertificateCurve: String {
  case p256 = "prime256v1"
  case p384 = "secp384r1"
}

/// Apple's OIDs for the purpose of a certificate. Without these checks, any developer's certificate could
/// sign a receipt.
package enum CertificatePurpose: String {
  case developerRelationsIntermediate = "1.2.840.113635.100.6.2.1"
  case iTunesStoreIntermediate = "1.2.840.113635.100.6.2.2"
  case receiptSigning = "1.2.840.113635.100.6.11.1"
  case iTunesStorePurchaseSigning = "1.2.840.113635.100.6.5.1"
}

// MARK: - Known signers and chains

/// A signer whose chain leads to a trusted anchor, regardless of dates, with what is needed to check its signatures.
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
  /// The requirements of a chain in addition to its signatures, its names and the authorities' extensions.
  package enum Rules {
    /// Old receipts use SHA-1 throughout and RSA with 1024 bits.
    case receipts
    /// At least 112 bits of security, and the anchor's own signature.
    case signedObjects
  }

  /// Whether `signer` leads to `anchor` through `intermediate` (nil: directly) and through nothing else. `KnownSigner`
  /// checks the dates, so that a fault of time alone can be told apart.
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
