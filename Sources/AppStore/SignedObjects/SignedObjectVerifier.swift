// Verifies signed objects against pinned roots, at the time at which each was signed.
package import Base

/// Verifies signed objects. Safe to use from several threads at once.
///
/// It uses `signedDate`, not the clock: a signing certificate is valid for about two years, and an object must have the
/// same verdict in ten.
package final class SignedObjectVerifier: Sendable {
  /// SHA-256 fingerprints of trusted roots. A root inside an object is used if and only if it is listed here.
  private let pinnedRoots: Set<SHA256Digest>
  private let localTestingSigners: Set<SHA256Digest>
  private let knownSigners = Monitor<[SignerKey: KnownSigner]>([:])

  /// The most verified signers kept in the cache; the App Store has used a handful.
  package static let knownSignerLimit = 256
  /// How far an object's `signedDate` may be ahead of the clock here, in milliseconds.
  package static let clockToleranceMs: Int64 = 60_000
  /// An object signed up to this many milliseconds ahead may be good once the clocks agree; it has not been altered.
  package static let clockDriftMs: Int64 = 300_000

  private struct SignerKey: Hashable {
    let isLocalTesting: Bool
    /// SHA-256 of all certificates of the object.
    let certificates: SHA256Digest
  }

  /// - Parameters:
  ///   - pinnedRoots: SHA-256 fingerprints of trusted roots; Apple's is `.appleRootG3`.
  ///   - localTestingSigners: fingerprints of certificates whose objects are accepted with the environment `Xcode` or
  ///     `LocalTesting`. If empty, such objects are rejected.
  package init(
    pinnedRoots: Set<SHA256Digest> = [.appleRootG3], localTestingSigners: Set<SHA256Digest> = []
  ) {
    self.pinnedRoots = pinnedRoots
    self.localTestingSigners = localTestingSigners
  }

  /// Verifies one object. An object without an environment is valid if the App Store signed it: its container must name
  /// the environment.
  /// - Parameter nowMs: the clock, in epoch milliseconds; it only limits how far in the future `signedDate` may be.
  package func verify(_ object: SignedObject, nowMs: Int64) -> SignedObjectVerdict {
    do throws(SignedObjectFault) {
      switch object.facts.environment {
      case .production, .sandbox, .missing: return try verifyAppStore(object, nowMs)
      case .xcode, .localTesting: return try verifyLocalTesting(object, nowMs)
      case .unknown: throw .unknownEnvironment
      }
    } catch { return .invalid(error) }
  }

  private func verifyAppStore(
    _ object: SignedObject, _ nowMs: Int64
  ) throws(SignedObjectFault) -> SignedObjectVerdict {
    let signedDateMs = try object.readableSignedDateMs
    guard object.certificateEnds.count == 3 else { throw .unexpectedCertificates }
    let signer = try knownSigner(object, isLocalTesting: false)
    try check(object, signedDateMs, nowMs, signer)
    return .valid(root: signer.anchor)
  }

  /// Trusted by the leaf's fingerprint, regardless of the other certificates.
  private func verifyLocalTesting(
    _ object: SignedObject, _ nowMs: Int64
  ) throws(SignedObjectFault) -> SignedObjectVerdict {
    guard !localTestingSigners.isEmpty else { throw .localTestingEnvironment }
    let signedDateMs = try object.readableSignedDateMs
    let signer = try knownSigner(object, isLocalTesting: true)
    try check(object, signedDateMs, nowMs, signer)
    return .locallyValid(signer: signer.anchor)
  }

  private func check(
    _ object: SignedObject, _ signedDateMs: Int64, _ nowMs: Int64, _ signer: KnownSigner
  ) throws(SignedObjectFault) {
    try ES256Signature.withDER(of: object.signature) { (signature) throws(SignedObjectFault) in
      let isSigned = object.text.withUnsafeBytes { text in
        signer.hasSigned(
          prefix: nil, UnsafeRawBufferPointer(rebasing: text[..<object.signedCount]),
          digest: .sha256, signature: signature)
      }
      guard isSigned else { throw .wrongSignature }
    }
    switch signer.timeFault(atMs: signedDateMs) {
    case nil: break
    case .notYetValid: throw .certificateNotYetValid
    default: throw .certificateExpired
    }
    let (lead, overflow) = signedDateMs.subtractingReportingOverflow(nowMs)
    guard !overflow, lead <= Self.clockToleranceMs else { throw .signedInFuture }
  }

  // MARK: Known signers

  /// Returns the signer from the cache, or verifies its chain and caches it. Only verified signers are cached,
  /// so only the pinned authorities can fill the cache.
  private func knownSigner(
    _ object: SignedObject, isLocalTesting: Bool
  ) throws(SignedObjectFault) -> KnownSigner {
    try object.certificates.withBytes { (bytes) throws(SignedObjectFault) in
      let key = SignerKey(isLocalTesting: isLocalTesting, certificates: SHA256.hash(bytes))
      if let known = knownSigners.withLock({ $0[key] }) { return known }
      let leaf = UnsafeRawBufferPointer(rebasing: bytes[object.certificateRange(0)])
      let proven =
        isLocalTesting
        ? try proveLocalTestingSigner(leaf) : try proveAppStoreSigner(object, bytes)
      knownSigners.withLock { signers in
        if signers.count >= Self.knownSignerLimit { signers.removeAll() }
        signers[key] = proven
      }
      return proven
    }
  }

  private func proveLocalTestingSigner(
    _ leaf: UnsafeRawBufferPointer
  ) throws(SignedObjectFault) -> KnownSigner {
    guard let certificate = Certificate(der: leaf) else { throw .malformedCertificate }
    guard localTestingSigners.contains(certificate.fingerprint) else {
      throw .localTestingEnvironment
    }
    guard certificate.curve == .p256,
      let signer = KnownSigner(certificate: certificate, chains: [[certificate]], key: .elliptic)
    else { throw .wrongKey }
    return signer
  }

  /// Leaf, intermediate and root, in this order and nothing else.
  private func proveAppStoreSigner(
    _ object: SignedObject, _ bytes: UnsafeRawBufferPointer
  ) throws(SignedObjectFault) -> KnownSigner {
    let chain = try SignedObjectChain(object, bytes)
    guard pinnedRoots.contains(chain.root.fingerprint) else { throw .untrustedRoot }
    try chain.requireTrust()
    guard
      let signer = KnownSigner(
        certificate: chain.leaf, chains: [chain.certificates], key: .elliptic)
    else { throw .wrongKey }
    return signer
  }
}

extension SignedObject {
  fileprivate var readableSignedDateMs: Int64 {
    get throws(SignedObjectFault) {
      if let signedDateMs { return signedDateMs }
      throw facts.hasSignedDate ? .unreadableSignedDate : .missingSignedDate
    }
  }
}

// MARK: - Certificates of a signed object

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
    _ object: SignedObject, _ bytes: UnsafeRawBufferPointer, _ index: Int
  ) throws(SignedObjectFault) -> Certificate {
    let der = UnsafeRawBufferPointer(rebasing: bytes[object.certificateRange(index)])
    guard let certificate = Certificate(der: der) else { throw .malformedCertificate }
    return certificate
  }

  /// Throws unless the certificates have the form of the App Store's, given that the root is trusted. Dates are checked
  /// for each object. Source: `ChainVerifier` of Apple's App Store Server Library.
  func requireTrust() throws(SignedObjectFault) {
    // Under Apple's root both authorities are on P-384; Apple's published test data uses P-256 throughout.
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

// MARK: - ES256 signatures

/// An ECDSA signature on P-256 as JWS has it (RFC 7518 §3.4): R, then S, 32 bytes each, big-endian; libcrypto reads
/// DER.
enum ES256Signature {
  private static let numberSizeBytes = 32
  /// SEQUENCE of two INTEGERs: each has a header of two bytes and possibly a leading zero.
  private static let maximumDERSizeBytes = 2 + 2 * (2 + 1 + numberSizeBytes)

  /// The order of P-256's group (SP 800-186 §3.2.1.3).
  private static let order: [UInt8] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
  ]

  /// Passes the signature in DER to a closure. Throws unless both numbers are at least 1 and below the order.
  static func withDER<Result>(
    of signature: [UInt8],
    _ body: (UnsafeRawBufferPointer) throws(SignedObjectFault) -> Result
  ) throws(SignedObjectFault) -> Result {
    guard signature.count == 2 * numberSizeBytes else { throw .malformedSignature }
    let numbers = [signature[..<numberSizeBytes], signature[numberSizeBytes...]]
    var der: [UInt8] = [DERIdentifier.sequence, 0]
    der.reserveCapacity(maximumDERSizeBytes)
    for number in numbers {
      guard number.contains(where: { $0 != 0 }), number.lexicographicallyPrecedes(order) else {
        throw .malformedSignature
      }
      append(number, to: &der)
    }
    der[1] = UInt8(der.count - 2)
    return try der.withBytes { (bytes) throws(SignedObjectFault) in try body(bytes) }
  }

  /// Appends an INTEGER: the shortest form that is not negative.
  private static func append(_ number: ArraySlice<UInt8>, to der: inout [UInt8]) {
    let digits = number.drop { $0 == 0 }
    let needsZero = digits.first.map { $0 >= 0x80 } ?? true
    der.append(DERIdentifier.integer)
    der.append(UInt8(digits.count + (needsZero ? 1 : 0)))
    if needsZero { der.append(0) }
    der.append(contentsOf: digits)
  }
}
