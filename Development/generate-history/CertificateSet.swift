// Three certificates and a signer as a receipt embeds them: well-formed, of real size, of no authority.
import AppStoreAuthority
import ProgramSupport

struct CertificateSet: Sendable {
  /// Signer, intermediate, root.
  let certificates: [[UInt8]]
  let issuerName: [UInt8]
  let serial: [UInt8]

  /// `keyBytes`: size of keys and signatures; `fillerBytes`: what the three hold beyond what a certificate
  /// needs.
  init(seed: UInt64, usesSHA256: Bool, keyBytes: Int, fillerBytes: [Int]) {
    var random = RandomSource(seed: seed, 20, usesSHA256 ? 1 : 0)
    let rootName = Self.name("Example Trust Root")
    let intermediateName = Self.name("Example Developer Relations Authority")
    let leafName = Self.name("Example Store Receipt Signing")
    var certificates: [[UInt8]] = []
    var serials: [[UInt8]] = []
    let chain = [
      (leafName, intermediateName), (intermediateName, rootName), (rootName, rootName),
    ]
    for (index, (subject, issuer)) in chain.enumerated() {
      var serial = random.bytes(8)
      serial[0] = serial[0] & 0x3F | 0x40
      serials.append(serial)
      certificates.append(
        Self.certificate(
          subject: subject, issuer: issuer, serial: serial,
          digest: usesSHA256 ? .sha256 : .sha1,
          keyBytes: keyBytes, fillerBytes: fillerBytes[index], random: &random))
    }
    self.certificates = certificates
    issuerName = intermediateName
    serial = serials[0]
  }

  static func name(_ commonName: String) -> [UInt8] {
    CertificatePlan.distinguishedName([
      (ObjectIdentifier.commonName, commonName), (ObjectIdentifier.organization, "Example"),
    ])
  }

  static func certificate(
    subject: [UInt8], issuer: [UInt8], serial: [UInt8], digest: SigningDigest,
    keyBytes: Int, fillerBytes: Int, random: inout RandomSource
  ) -> [UInt8] {
    let key = publicKey(bytes: keyBytes, &random)
    let filler = random.bytes(fillerBytes)
    let signature = random.bytes(keyBytes)
    let policies = DER.sequence(
      DER.objectIdentifier(ObjectIdentifier.certificatePolicies),
      DER.octets(DER.sequence(DER.octets(filler))))
    let body = CertificateBody(
      subject: subject, issuer: issuer, serial: DER.element(DER.Tag.integer, serial),
      algorithm: digest.withRSA, notBefore: "150101000000Z", notAfter: "490101000000Z",
      publicKeyInfo: key, extensions: [policies])
    return CertificateBody.signed(body.der, digest.withRSA, signature)
  }

  /// An RSA key whose modulus is nobody's.
  private static func publicKey(bytes count: Int, _ random: inout RandomSource) -> [UInt8] {
    var modulus = random.bytes(count)
    modulus[0] |= 0x80
    modulus[count - 1] |= 1
    let key = DER.sequence(
      DER.element(DER.Tag.integer, [0], modulus), DER.integer(65_537))
    return DER.sequence(
      DER.algorithm(ObjectIdentifier.rsaEncryption), DER.element(DER.Tag.bitString, [0], key))
  }
}
