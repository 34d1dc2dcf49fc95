// Certificates of the test authority: what one says, and its issuing.
package import Base

/// A certificate with its private key.
package struct IssuedCertificate: Sendable {
  package let der: [UInt8]
  /// The subject's name as DER.
  package let name: [UInt8]
  package let issuerName: [UInt8]
  package let serial: Int64
  package let key: SigningKey

  package init(der: [UInt8], name: [UInt8], issuerName: [UInt8], serial: Int64, key: SigningKey) {
    self.der = der
    self.name = name
    self.issuerName = issuerName
    self.serial = serial
    self.key = key
  }

  /// SHA-256 of the whole certificate.
  package var fingerprint: SHA256Digest { der.withUnsafeBytes { SHA256.hash($0) } }
}

/// What one certificate is to say.
package struct CertificatePlan {
  package var name: String
  package var isAuthority: Bool
  /// The most intermediates below this authority; nil for any number.
  package var pathLength: Int64?
  /// OIDs that say what the certificate is for.
  package var purposes: [String]
  /// UTCTime.
  package var notBefore: String
  package var notAfter: String
  package var serial: Int64
  /// Bytes of a comment, which bring a certificate to the size of a real one.
  package var commentBytes: Int

  package static let developerRelations = "1.2.840.113635.100.6.2.1"
  package static let iTunesStore = "1.2.840.113635.100.6.2.2"
  package static let receiptSigning = "1.2.840.113635.100.6.11.1"
  package static let purchaseSigning = "1.2.840.113635.100.6.5.1"

  package init(
    name: String, isAuthority: Bool = false, pathLength: Int64? = nil, purposes: [String] = [],
    notBefore: String = "140101000000Z", notAfter: String = "341231235959Z", serial: Int64 = 7,
    commentBytes: Int = 0
  ) {
    self.name = name
    self.isAuthority = isAuthority
    self.pathLength = pathLength
    self.purposes = purposes
    self.notBefore = notBefore
    self.notAfter = notAfter
    self.serial = serial
    self.commentBytes = commentBytes
  }

  /// Signs the certificate; without an issuer, with its own key.
  package func issue(
    _ key: SigningKey, by issuer: IssuedCertificate?
  ) throws(AuthorityError) -> IssuedCertificate {
    let name = Self.distinguishedName([(ObjectIdentifier.commonName, name)])
    let issuerName = issuer?.name ?? name
    let signingKey = issuer?.key ?? key
    let publicKeyInfo = try key.publicKeyInfo()
    let body = CertificateBody(
      subject: name, issuer: issuerName, serial: DER.integer(serial),
      algorithm: signingKey.signatureAlgorithm, notBefore: notBefore, notAfter: notAfter,
      publicKeyInfo: publicKeyInfo,
      extensions: extensions + Self.identifiers(publicKeyInfo, try issuer?.key.publicKeyInfo())
    ).der
    let signature = try signingKey.sign(body, .sha256)
    return IssuedCertificate(
      der: CertificateBody.signed(body, signingKey.signatureAlgorithm, signature), name: name,
      issuerName: issuerName, serial: serial, key: key)
  }

  /// Which key the certificate is of, and which one signed it. Strict verifiers want both.
  private static func identifiers(_ publicKeyInfo: [UInt8], _ issuer: [UInt8]?) -> [[UInt8]] {
    // The first 160 bits of the SHA-256 (RFC 7093).
    func identifier(_ info: [UInt8]) -> [UInt8] {
      Array(info.withUnsafeBytes { SHA256.hash($0) }.bytes.prefix(20))
    }
    let own = DER.sequence(
      DER.objectIdentifier(ObjectIdentifier.subjectKeyIdentifier),
      DER.octets(DER.octets(identifier(publicKeyInfo))))
    guard let issuer else { return [own] }
    let signer = DER.sequence(
      DER.objectIdentifier(ObjectIdentifier.authorityKeyIdentifier),
      DER.octets(DER.sequence(DER.element(0x80, identifier(issuer)))))
    return [own, signer]
  }

  private var extensions: [[UInt8]] {
    let yes: [UInt8] = [DER.Tag.boolean, 0x01, 0xFF]
    // It signs certificates and lists of revoked ones, or nothing but content.
    let usage: [UInt8] = isAuthority ? [1, 0b0000_0110] : [7, 0b1000_0000]
    let length = pathLength.map(DER.integer) ?? []
    var extensions = [
      DER.sequence(
        DER.objectIdentifier(ObjectIdentifier.basicConstraints), yes,
        DER.octets(isAuthority ? DER.sequence(yes, length) : DER.sequence())),
      DER.sequence(
        DER.objectIdentifier(ObjectIdentifier.keyUsage), yes,
        DER.octets(DER.element(DER.Tag.bitString, usage))),
    ]
    for purpose in purposes {
      extensions.append(DER.sequence(DER.objectIdentifier(purpose), DER.octets(DER.null)))
    }
    if commentBytes > 0 {
      let comment = String(repeating: "No certificate of Apple's. ", count: commentBytes / 27 + 1)
      extensions.append(
        DER.sequence(
          DER.objectIdentifier(ObjectIdentifier.comment),
          DER.octets(DER.ia5(String(comment.prefix(commentBytes))))))
    }
    return extensions
  }

  /// A name of attributes by their OIDs, in the order given.
  package static func distinguishedName(_ attributes: [(String, String)]) -> [UInt8] {
    DER.element(
      DER.Tag.sequence,
      joining: attributes.map { identifier, text in
        DER.set(DER.sequence(DER.objectIdentifier(identifier), DER.utf8(text)))
      })
  }
}

/// TBSCertificate of X.509 version 3, from parts that are DER already.
package struct CertificateBody {
  package var subject: [UInt8]
  package var issuer: [UInt8]
  package var serial: [UInt8]
  package var algorithm: [UInt8]
  package var notBefore: String
  package var notAfter: String
  package var publicKeyInfo: [UInt8]
  package var extensions: [[UInt8]]

  package init(
    subject: [UInt8], issuer: [UInt8], serial: [UInt8], algorithm: [UInt8], notBefore: String,
    notAfter: String, publicKeyInfo: [UInt8], extensions: [[UInt8]]
  ) {
    self.subject = subject
    self.issuer = issuer
    self.serial = serial
    self.algorithm = algorithm
    self.notBefore = notBefore
    self.notAfter = notAfter
    self.publicKeyInfo = publicKeyInfo
    self.extensions = extensions
  }

  package var der: [UInt8] {
    DER.sequence(
      DER.element(DER.Tag.context(0), DER.integer(2)), serial, algorithm, issuer,
      DER.sequence(
        DER.element(DER.Tag.utcTime, Array(notBefore.utf8)),
        DER.element(DER.Tag.utcTime, Array(notAfter.utf8))), subject, publicKeyInfo,
      DER.element(
        DER.Tag.context(3), DER.element(DER.Tag.sequence, joining: extensions)))
  }

  /// The certificate of a body and its signature.
  package static func signed(
    _ body: [UInt8], _ algorithm: [UInt8], _ signature: [UInt8]
  ) -> [UInt8] {
    DER.sequence(body, algorithm, DER.element(DER.Tag.bitString, [0], signature))
  }
}
