// A certificate authority for signed objects (JWS): it stands in for Apple's, and can misbehave.
package import AppStore
private import Base

/// A root, an intermediate and a leaf as signed objects carry them: on P-384, P-384 and P-256, with Apple's
/// OIDs.
package struct SignedObjectAuthority: Sendable {
  package let root: IssuedCertificate
  package let intermediate: IssuedCertificate
  package let leaf: IssuedCertificate

  /// One for the whole process.
  package static let shared = Result { try SignedObjectAuthority() }
  /// A stranger with the same names and other keys.
  package static let stranger = Result { try SignedObjectAuthority() }

  /// What the three certificates say, and their curves.
  package struct Plan: Sendable {
    package var root = CertificatePlan(name: "Test Root CA - G3", isAuthority: true, serial: 1)
    package var rootCurve = SigningCurve.p384
    package var intermediate = CertificatePlan(
      name: "Test Developer Relations G6", isAuthority: true, pathLength: 0,
      purposes: [CertificatePlan.developerRelations], serial: 2)
    package var intermediateCurve = SigningCurve.p384
    package var leaf = CertificatePlan(
      name: "Test ECC Mac App Store and iTunes Store Receipt Signing",
      purposes: [CertificatePlan.receiptSigning], serial: 3)
    package var leafCurve = SigningCurve.p256

    package init() {}
  }

  /// Makes keys and certificates.
  package init(_ plan: Plan = Plan()) throws(AuthorityError) {
    root = try plan.root.issue(SigningKey(curve: plan.rootCurve), by: nil)
    intermediate = try plan.intermediate.issue(SigningKey(curve: plan.intermediateCurve), by: root)
    leaf = try plan.leaf.issue(SigningKey(curve: plan.leafCurve), by: intermediate)
  }

  /// An authority of certificates that were made before. ECDSA signs differently each time, so that they do
  /// not follow from the keys.
  package init(root: IssuedCertificate, intermediate: IssuedCertificate, leaf: IssuedCertificate) {
    self.root = root
    self.intermediate = intermediate
    self.leaf = leaf
  }

  /// The certificates as an object's `x5c` has them: leaf, intermediate, root.
  package var chain: [[UInt8]] { [leaf.der, intermediate.der, root.der] }

  /// A verifier that trusts this authority's root alone.
  package var verifier: SignedObjectVerifier {
    SignedObjectVerifier(pinnedRoots: [root.fingerprint], localTestingSigners: [])
  }

  /// Signs a payload.
  /// - Returns: the JWS in compact serialization.
  package func sign(
    payload: [UInt8], _ form: SignedObjectForm = SignedObjectForm()
  ) throws(AuthorityError) -> [UInt8] {
    let header = form.header ?? form.writtenHeader(form.certificates ?? chain)
    let signed = Base64.encode(header, .url) + [0x2E] + Base64.encode(payload, .url)
    let signature: [UInt8]
    switch form.signature {
    case .raw: signature = try leaf.key.signES256(signed)
    case .der: signature = try leaf.key.sign(signed, .sha256)
    case .given(let bytes): signature = bytes
    case .edited(let edit): signature = edit(try leaf.key.signES256(signed))
    }
    return signed + [0x2E] + Base64.encode(signature, .url)
  }
}

/// How one object is written; by default as the App Store writes it.
package struct SignedObjectForm: Sendable {
  /// `alg`; nil leaves it out.
  package var algorithm: String? = "ES256"
  /// `x5c` in place of the authority's chain.
  package var certificates: [[UInt8]]?
  /// The whole header, in place of one made from the above.
  package var header: [UInt8]?
  package var signature = Signature.raw

  package enum Signature: Sendable {
    /// 64 bytes, R and S, as ES256 has it.
    case raw
    /// The DER that most libraries write.
    case der
    case given([UInt8])
    case edited(@Sendable ([UInt8]) -> [UInt8])
  }

  package init() {}

  /// The order of P-256: R and S lie below it.
  package static let order: [UInt8] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
  ]

  func writtenHeader(_ certificates: [[UInt8]]) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    if let algorithm {
      writer.key("alg")
      writer.string(algorithm)
    }
    writer.key("x5c")
    writer.beginArray()
    for certificate in certificates { writer.string(Base64.text(certificate)) }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }
}

extension SignedObjectAuthority.Plan {
  /// Certificates of about 1.0, 0.8 and 0.6 KB, so that objects are as large as real ones.
  package static var realSize: Self {
    var plan = Self()
    plan.root.commentBytes = 136
    plan.intermediate.commentBytes = 261
    plan.leaf.commentBytes = 480
    return plan
  }
}
