// Unified receipts for tests: attributes in, a signed file out; every part can be bent.

import AppStore

struct UnifiedReceiptPlan {
  var environment: String? = "Production"
  var creationDate: String? = "2024-05-06T07:08:09Z"
  var purchases: [[UInt8]] = [UnifiedReceiptPlan.purchase()]
  var extraAttributes: [[UInt8]] = []
  var digest = TestDigest.sha256
  /// Nil: signer, intermediate, root.
  var certificates: [[UInt8]]?
  var isIndefinite = false
  var trailing: [UInt8] = []

  static func attribute(_ type: Int64, _ value: [UInt8]) -> [UInt8] {
    DER.sequence(DER.integer(type), DER.integer(1), DER.octets(value))
  }

  static func purchase(
    product: String = "coins", transaction: String = "1000000180842733",
    webOrder: Int64 = 1_000_000_030_938_713, extra: [UInt8] = []
  ) -> [UInt8] {
    DER.set(
      attribute(1701, DER.integer(1)), attribute(1702, DER.utf8(product)),
      attribute(1703, DER.utf8(transaction)), attribute(1705, DER.utf8(transaction)),
      attribute(1704, DER.ia5("2024-05-06T07:08:08Z")),
      attribute(1706, DER.ia5("2024-05-06T07:08:07Z")), attribute(1708, DER.ia5("")),
      attribute(1712, DER.ia5("")), attribute(1711, DER.integer(webOrder)), extra)
  }

  var content: [UInt8] {
    var attributes: [UInt8] = []
    if let environment { attributes += Self.attribute(0, DER.utf8(environment)) }
    attributes += Self.attribute(2, DER.utf8("com.example.game"))
    attributes += Self.attribute(3, DER.utf8("42"))
    attributes += Self.attribute(4, [1, 2, 3, 4])
    if let creationDate { attributes += Self.attribute(12, DER.ia5(creationDate)) }
    attributes += purchases.flatMap { Self.attribute(17, $0) }
    attributes += Self.attribute(19, DER.utf8("1.0"))
    attributes += extraAttributes.flatMap { $0 }
    return DER.set(attributes)
  }

  func signed(by authority: TestAuthority) throws -> [UInt8] {
    try signed(by: authority.signer, certificates: certificates ?? authority.chain)
  }

  func signed(
    by signer: TestCertificate, certificates: [[UInt8]], signerInfoExtra: [UInt8] = []
  ) throws -> [UInt8] {
    let content = content
    return frame(
      content: content, certificates: certificates, signer: signer,
      signature: try signer.key.sign(content, digest), signerInfoExtra: signerInfoExtra)
  }

  func frame(
    content: [UInt8], certificates: [[UInt8]], signer: TestCertificate, signature: [UInt8],
    signerInfoExtra: [UInt8] = []
  ) -> [UInt8] {
    let signerInfo = DER.sequence(
      DER.integer(1), DER.sequence(signer.issuerName, DER.integer(signer.serial)),
      digest.algorithm, DER.sequence(DER.objectIdentifier("1.2.840.113549.1.1.1"), DER.null),
      DER.octets(signature), signerInfoExtra)
    let constructed: (UInt8, [UInt8]) -> [UInt8] = { identifier, bytes in
      isIndefinite ? DER.indefinite(identifier, bytes) : DER.element(identifier, bytes)
    }
    let half = content.count / 2
    let octets =
      isIndefinite
      ? DER.indefinite(
        0x24, DER.octets(Array(content[..<half])), DER.octets(Array(content[half...])))
      : DER.octets(content)
    let signedData = constructed(
      0x30,
      DER.integer(1) + DER.set(digest.algorithm)
        + constructed(
          0x30, DER.objectIdentifier("1.2.840.113549.1.7.1") + constructed(0xA0, octets))
        + constructed(0xA0, certificates.flatMap { $0 }) + DER.set(signerInfo))
    return constructed(
      0x30, DER.objectIdentifier("1.2.840.113549.1.7.2") + constructed(0xA0, signedData))
      + trailing
  }
}
