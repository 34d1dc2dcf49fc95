// A certificate authority made at test run time: keys, certificates, and receipts signed by them.

import AppStore
import Bytes
import CCrypto
import Testing

/// An RSA key pair that lives as long as the test run needs it.
final class TestKey: @unchecked Sendable {
  private let handle: OpaquePointer

  init(bits: Int32) throws {
    let context = try #require(EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil))
    defer { EVP_PKEY_CTX_free(context) }
    try #require(EVP_PKEY_keygen_init(context) == 1)
    try #require(EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) == 1)
    var made: OpaquePointer?
    try #require(EVP_PKEY_keygen(context, &made) == 1)
    handle = try #require(made)
  }

  deinit { EVP_PKEY_free(handle) }

  var publicKeyInfo: [UInt8] {
    get throws {
      var buffer: UnsafeMutablePointer<UInt8>?
      let count = i2d_PUBKEY(handle, &buffer)
      let start = try #require(buffer)
      defer { CRYPTO_free(start, "", 0) }
      return Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }
  }

  func sign(_ content: [UInt8], _ digest: TestDigest) throws -> [UInt8] {
    let context = try #require(EVP_MD_CTX_new())
    defer { EVP_MD_CTX_free(context) }
    let messageDigest = digest == .sha1 ? EVP_sha1() : EVP_sha256()
    try #require(EVP_DigestSignInit(context, nil, messageDigest, nil, handle) == 1)
    var signature = [UInt8](repeating: 0, count: 1_024)
    var count = signature.count
    try #require(EVP_DigestSign(context, &signature, &count, content, content.count) == 1)
    return Array(signature.prefix(count))
  }
}

enum TestDigest: String, CaseIterable {
  case sha1
  case sha256

  var algorithm: [UInt8] {
    DER.sequence(
      DER.objectIdentifier(self == .sha1 ? "1.3.14.3.2.26" : "2.16.840.1.101.3.4.2.1"), DER.null)
  }

  var withRSA: [UInt8] {
    let last = self == .sha1 ? "5" : "11"
    return DER.sequence(DER.objectIdentifier("1.2.840.113549.1.1.\(last)"), DER.null)
  }
}

struct TestCertificate: Sendable {
  let der: [UInt8]
  /// The subject's name as DER.
  let name: [UInt8]
  let issuerName: [UInt8]
  let serial: Int64
  let key: TestKey

  var fingerprint: Digest32 { der.withUnsafeBytes { SHA256.hash($0) } }
}

/// What one certificate is to say.
struct CertificatePlan {
  var name: String
  var isAuthority = false
  var purposes: [String] = []
  var notBefore = "140101000000Z"
  var notAfter = "341231235959Z"
  var serial: Int64 = 7

  static let developerRelations = "1.2.840.113635.100.6.2.1"
  static let iTunesStore = "1.2.840.113635.100.6.2.2"
  static let receiptSigning = "1.2.840.113635.100.6.11.1"
  static let purchaseSigning = "1.2.840.113635.100.6.5.1"

  static func name(_ text: String) -> [UInt8] {
    DER.sequence(
      DER.set(DER.sequence(DER.objectIdentifier("2.5.4.3"), DER.utf8(text))))
  }

  /// Signs the certificate; without an issuer, with its own key.
  func issue(_ key: TestKey, by issuer: TestCertificate?) throws -> TestCertificate {
    let name = Self.name(name)
    let issuerName = issuer?.name ?? name
    var extensions = DER.sequence(
      DER.objectIdentifier("2.5.29.19"), [0x01, 0x01, 0xFF],
      DER.octets(isAuthority ? DER.sequence([0x01, 0x01, 0xFF]) : DER.sequence()))
    for purpose in purposes {
      extensions += DER.sequence(DER.objectIdentifier(purpose), DER.octets(DER.null))
    }
    let body = DER.sequence(
      DER.element(0xA0, DER.integer(2)), DER.integer(serial), TestDigest.sha256.withRSA,
      issuerName,
      DER.sequence(
        DER.element(0x17, Array(notBefore.utf8)), DER.element(0x17, Array(notAfter.utf8))),
      name, try key.publicKeyInfo, DER.element(0xA3, DER.sequence(extensions)))
    let signature = try (issuer?.key ?? key).sign(body, .sha256)
    let der = DER.sequence(body, TestDigest.sha256.withRSA, DER.element(0x03, [0] + signature))
    return TestCertificate(der: der, name: name, issuerName: issuerName, serial: serial, key: key)
  }
}

/// A root with the two intermediates and the two signers that receipts know.
struct TestAuthority: Sendable {
  let root: TestCertificate
  let intermediate: TestCertificate
  let signer: TestCertificate
  let iTunesStore: TestCertificate
  let purchaseSigner: TestCertificate

  /// One for the whole run: keys take time.
  static let shared = Result { try TestAuthority() }
  /// A stranger with the same names and other keys.
  static let stranger = Result { try TestAuthority() }

  init() throws {
    let intermediateKey = try TestKey(bits: 2_048)
    root = try CertificatePlan(name: "Test Root", isAuthority: true, serial: 1)
      .issue(TestKey(bits: 2_048), by: nil)
    intermediate = try CertificatePlan(
      name: "Test Developer Relations", isAuthority: true,
      purposes: [CertificatePlan.developerRelations]
    ).issue(intermediateKey, by: root)
    signer = try CertificatePlan(
      name: "Test Receipt Signing", purposes: [CertificatePlan.receiptSigning]
    ).issue(TestKey(bits: 2_048), by: intermediate)
    iTunesStore = try CertificatePlan(
      name: "Test Store", isAuthority: true, purposes: [CertificatePlan.iTunesStore]
    ).issue(intermediateKey, by: root)
    purchaseSigner = try CertificatePlan(
      name: "Test Purchase Signing", purposes: [CertificatePlan.purchaseSigning]
    ).issue(TestKey(bits: 1_024), by: iTunesStore)
  }

  var chain: [[UInt8]] { [signer.der, intermediate.der, root.der] }

  var configuration: ReceiptVerifier.Configuration {
    ReceiptVerifier.Configuration(
      pinnedRoots: [root.fingerprint],
      transactionIntermediates: [iTunesStore.der, intermediate.der, root.der])
  }

  func verifier() throws -> ReceiptVerifier { try ReceiptVerifier(configuration: configuration) }
}
