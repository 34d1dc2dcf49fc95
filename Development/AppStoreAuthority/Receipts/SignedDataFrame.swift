// PKCS#7 SignedData as unified receipts have it: one signer, no signed attributes.

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
