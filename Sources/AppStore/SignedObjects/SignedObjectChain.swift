// The certificates of a signed object, and what the App Store's have in common.
internal import Base

/// Three certificates of a signed object.
struct SignedObjectChain {
  let leaf: Certificate
  let intermediate: Certificate
  let root: Certificate

  var certificates: [Certificate] { [leaf, intermediate, root] }

  /// Parses the certificates of an object that has three.
  init(
    _ object: SignedObject, _ bytes: UnsafeRawBufferPointer
  ) throws(SignedObjectFault) {
    leaf = try Self.certificate(object, bytes, 0)
    intermediate = try Self.certificate(object, bytes, 1)
    root = try Self.certificate(object, bytes, 2)
  }

  private static func certificate(
    _ object: SignedObject, _ bytes: UnsafeRawBufferPointer, _ place: Int
  ) throws(SignedObjectFault) -> Certificate {
    let der = UnsafeRawBufferPointer(rebasing: bytes[object.certificateRange(place)])
    guard let certificate = Certificate(der: der) else { throw .malformedCertificate }
    return certificate
  }

  /// Throws unless the certificates are as the App Store's, given that the root is trusted. Dates are checked
  /// for each object.
  /// Source: `ChainVerifier` of Apple's App Store Server Library.
  func requireTrust() throws(SignedObjectFault) {
    // Under Apple's root both authorities are on P-384; Apple's published test data is on P-256 throughout.
    let isApple = root.fingerprint == .appleRootG3
    for authority in [intermediate, root] {
      guard authority.curve == .p384 || (!isApple && authority.curve == .p256) else {
        throw .wrongKey
      }
    }
    guard leaf.curve == .p256 else { throw .wrongKey }
    guard
      CertificateChain.leads(from: leaf, over: intermediate, to: root, rules: .signedObjects)
    else { throw .brokenChain }
    guard leaf.bears(.receiptSigning), intermediate.bears(.developerRelationsIntermediate),
      !leaf.isAuthority
    else { throw .wrongPurpose }
  }
}
