// Three certificates and a signer as a receipt embeds them: well-formed, of real size, of no authority.

struct CertificateSet: Sendable {
  /// The content of the `certificates` field.
  let certificates: [UInt8]
  let issuerName: [UInt8]
  let serial: [UInt8]

  /// `keyBytes`: size of keys and signatures; `fillerBytes`: what the three hold beyond what a certificate
  /// needs.
  init(seed: UInt64, usesSHA256: Bool, keyBytes: Int, fillerBytes: [Int]) {
    var random = RandomSource(seed: seed, 20, usesSHA256 ? 1 : 0)
    let rootName = Self.name("Example Trust Root")
    let intermediateName = Self.name("Example Developer Relations Authority")
    let leafName = Self.name("Example Store Receipt Signing")
    let algorithm = usesSHA256 ? ObjectIdentifier.sha256WithRSA : ObjectIdentifier.sha1WithRSA
    var writer = DERWriter()
    var serials: [[UInt8]] = []
    let chain = [
      (leafName, intermediateName), (intermediateName, rootName), (rootName, rootName),
    ]
    for (index, (subject, issuer)) in chain.enumerated() {
      var serial = random.bytes(8)
      serial[0] = serial[0] & 0x3F | 0x40
      serials.append(serial)
      writer.raw(
        Self.certificate(
          subject: subject, issuer: issuer, serial: serial, algorithm: algorithm,
          keyBytes: keyBytes, fillerBytes: fillerBytes[index], random: &random))
    }
    certificates = writer.bytes
    issuerName = intermediateName
    serial = serials[0]
  }

  static func name(_ commonName: String) -> [UInt8] {
    var writer = DERWriter()
    writer.element(DERWriter.Tag.sequence) { name in
      let parts = [
        (ObjectIdentifier.commonName, commonName),
        (ObjectIdentifier.organization, "Example"),
      ]
      for (identifier, text) in parts {
        name.element(DERWriter.Tag.set) {
          $0.element(DERWriter.Tag.sequence) {
            $0.objectIdentifier(identifier)
            $0.string(DERWriter.Tag.utf8String, text)
          }
        }
      }
    }
    return writer.bytes
  }

  static func certificate(
    subject: [UInt8], issuer: [UInt8], serial: [UInt8], algorithm: [UInt8],
    keyBytes: Int, fillerBytes: Int, random: inout RandomSource
  ) -> [UInt8] {
    let key = publicKey(bytes: keyBytes, &random)
    let filler = random.bytes(fillerBytes)
    let signature = random.bytes(keyBytes)
    var writer = DERWriter()
    writer.element(DERWriter.Tag.sequence) { certificate in
      certificate.element(DERWriter.Tag.sequence) { body in
        body.element(DERWriter.Tag.context(0)) { $0.integer(2) }
        body.element(DERWriter.Tag.integer, serial)
        body.algorithm(algorithm)
        body.raw(issuer)
        body.element(DERWriter.Tag.sequence) {
          $0.string(DERWriter.Tag.utcTime, "150101000000Z")
          $0.string(DERWriter.Tag.utcTime, "490101000000Z")
        }
        body.raw(subject)
        body.raw(key)
        body.element(DERWriter.Tag.context(3)) {
          $0.element(DERWriter.Tag.sequence) {
            $0.element(DERWriter.Tag.sequence) {
              $0.objectIdentifier(ObjectIdentifier.certificatePolicies)
              $0.element(DERWriter.Tag.octetString) {
                $0.element(DERWriter.Tag.sequence) {
                  $0.element(DERWriter.Tag.octetString, filler)
                }
              }
            }
          }
        }
      }
      certificate.algorithm(algorithm)
      certificate.element(DERWriter.Tag.bitString, [0] + signature)
    }
    return writer.bytes
  }

  /// An RSA key whose modulus is nobody's.
  private static func publicKey(bytes count: Int, _ random: inout RandomSource) -> [UInt8] {
    var modulus = random.bytes(count)
    modulus[0] |= 0x80
    modulus[count - 1] |= 1
    var key = DERWriter()
    key.element(DERWriter.Tag.sequence) {
      $0.element(DERWriter.Tag.integer, [0] + modulus)
      $0.integer(65537)
    }
    var writer = DERWriter()
    writer.element(DERWriter.Tag.sequence) {
      $0.algorithm(ObjectIdentifier.rsaEncryption)
      $0.element(DERWriter.Tag.bitString, [0] + key.bytes)
    }
    return writer.bytes
  }
}
