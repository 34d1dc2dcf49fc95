// Unified receipts: attributes in, a signed file out; every part can be bent.

package struct UnifiedReceiptPlan {
  package var environment: String?
  package var creationDate: String?
  package var purchases: [[UInt8]]
  package var extraAttributes: [[UInt8]]
  package var digest: SigningDigest
  /// Nil: signer, intermediate, root.
  package var certificates: [[UInt8]]?
  package var isIndefinite: Bool
  package var trailing: [UInt8]

  package init(
    environment: String? = "Production", creationDate: String? = "2024-05-06T07:08:09Z",
    purchases: [[UInt8]] = [UnifiedReceiptPlan.purchase()], extraAttributes: [[UInt8]] = [],
    digest: SigningDigest = .sha256, certificates: [[UInt8]]? = nil, isIndefinite: Bool = false,
    trailing: [UInt8] = []
  ) {
    self.environment = environment
    self.creationDate = creationDate
    self.purchases = purchases
    self.extraAttributes = extraAttributes
    self.digest = digest
    self.certificates = certificates
    self.isIndefinite = isIndefinite
    self.trailing = trailing
  }

  package static func attribute(_ type: Int64, _ value: [UInt8]) -> [UInt8] {
    DER.sequence(DER.integer(type), DER.integer(1), DER.octets(value))
  }

  package static func purchase(
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

  package var content: [UInt8] {
    var attributes: [[UInt8]] = []
    if let environment { attributes.append(Self.attribute(0, DER.utf8(environment))) }
    attributes.append(Self.attribute(2, DER.utf8("com.example.game")))
    attributes.append(Self.attribute(3, DER.utf8("42")))
    attributes.append(Self.attribute(4, [1, 2, 3, 4]))
    if let creationDate { attributes.append(Self.attribute(12, DER.ia5(creationDate))) }
    attributes += purchases.map { Self.attribute(17, $0) }
    attributes.append(Self.attribute(19, DER.utf8("1.0")))
    return DER.element(DER.Tag.set, joining: attributes + extraAttributes)
  }

  package func signed(by authority: TestAuthority) throws(AuthorityError) -> [UInt8] {
    try signed(by: authority.signer, certificates: certificates ?? authority.chain)
  }

  package func signed(
    by signer: IssuedCertificate, certificates: [[UInt8]], signerInfoExtra: [UInt8] = []
  ) throws(AuthorityError) -> [UInt8] {
    let content = content
    return frame(
      content: content, certificates: certificates, signer: signer,
      signature: try signer.key.sign(content, digest), signerInfoExtra: signerInfoExtra)
  }

  package func frame(
    content: [UInt8], certificates: [[UInt8]], signer: IssuedCertificate, signature: [UInt8],
    signerInfoExtra: [UInt8] = []
  ) -> [UInt8] {
    SignedDataFrame(
      digest: digest, certificates: certificates, issuerName: signer.issuerName,
      serial: DER.integer(signer.serial), signerInfoExtra: signerInfoExtra,
      isIndefinite: isIndefinite
    ).file(content: content, signature: signature) + trailing
  }
}

/// What stands around the signed content.
package struct SignedDataFrame: Sendable {
  package var digest: SigningDigest
  package var certificates: [[UInt8]]
  package var issuerName: [UInt8]
  /// The serial number as a DER INTEGER.
  package var serial: [UInt8]
  package var signerInfoExtra: [UInt8]
  /// Indefinite lengths and the content in two pieces, as Xcode writes receipts.
  package var isIndefinite: Bool

  package init(
    digest: SigningDigest, certificates: [[UInt8]], issuerName: [UInt8], serial: [UInt8],
    signerInfoExtra: [UInt8] = [], isIndefinite: Bool = false
  ) {
    self.digest = digest
    self.certificates = certificates
    self.issuerName = issuerName
    self.serial = serial
    self.signerInfoExtra = signerInfoExtra
    self.isIndefinite = isIndefinite
  }

  /// The receipt file.
  package func file(content: [UInt8], signature: [UInt8]) -> [UInt8] {
    let signerInfo = DER.sequence(
      DER.integer(1), DER.sequence(issuerName, serial), digest.algorithm,
      DER.algorithm(ObjectIdentifier.rsaEncryption), DER.octets(signature), signerInfoExtra)
    let signedData = constructed(
      DER.Tag.sequence,
      DER.integer(1) + DER.set(digest.algorithm)
        + constructed(
          DER.Tag.sequence,
          DER.objectIdentifier(ObjectIdentifier.data)
            + constructed(DER.Tag.context(0), octets(content)))
        + constructed(DER.Tag.context(0), Array(certificates.joined())) + DER.set(signerInfo))
    return constructed(
      DER.Tag.sequence,
      DER.objectIdentifier(ObjectIdentifier.signedData)
        + constructed(DER.Tag.context(0), signedData))
  }

  private func constructed(_ identifier: UInt8, _ bytes: [UInt8]) -> [UInt8] {
    isIndefinite ? DER.indefinite(identifier, bytes) : DER.element(identifier, bytes)
  }

  private func octets(_ content: [UInt8]) -> [UInt8] {
    guard isIndefinite else { return DER.octets(content) }
    let half = content.count / 2
    return DER.indefinite(
      0x24, DER.octets(Array(content[..<half])), DER.octets(Array(content[half...])))
  }
}
