// One X.509 certificate, parsed by libcrypto and owned by a Swift object.

package import Base
internal import CCrypto
internal import Glibc

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
      // Version 1, as some roots have it, is left out.
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
