// Checks receipts of both styles against pinned roots, with a fast path for signers whose chain is already verified.
package import Base

/// Checks the signatures of receipts. Safe to use from several threads at once.
package final class ReceiptVerifier: Sendable {
  /// Which certificates to trust.
  package struct Configuration: Sendable {
    /// SHA-256 fingerprints of trusted root certificates. A root inside a receipt is used if and only if its
    /// fingerprint is listed here.
    package var pinnedRoots: Set<SHA256Digest>
    /// DER certificates for transaction receipts, in addition to Apple's, which are built in; these receipts
    /// contain only their signer. The list contains intermediates (trusted as configured) and, if the chain
    /// is to be checked up to the root, the root (its fingerprint must be pinned).
    package var transactionIntermediates: [[UInt8]]
    /// SHA-256 fingerprints of self-signed certificates whose receipts are accepted with the environment `Xcode` or
    /// `LocalTesting`. If empty, such receipts are rejected.
    package var localTestingSigners: Set<SHA256Digest>

    package init(
      pinnedRoots: Set<SHA256Digest> = [.appleRoot], transactionIntermediates: [[UInt8]] = [],
      localTestingSigners: Set<SHA256Digest> = []
    ) {
      self.pinnedRoots = pinnedRoots
      self.transactionIntermediates = transactionIntermediates
      self.localTestingSigners = localTestingSigners
    }
  }

  /// Why a configuration is rejected.
  package enum ConfigurationError: ReportableError, Equatable, Sendable, CustomStringConvertible {
    /// The certificate at this index of `transactionIntermediates` is not exactly one DER certificate.
    case unreadableCertificate(index: Int)
    /// The certificate at this index is neither a pinned root nor an intermediate for receipts.
    case unusableCertificate(index: Int)

    package var description: String {
      switch self {
      case .unreadableCertificate(let index):
        "configure receipt verification: transaction intermediate \(index): "
          + "not a certificate in DER"
      case .unusableCertificate(let index):
        "configure receipt verification: transaction intermediate \(index): "
          + "neither a pinned root nor an intermediate that signs receipt signers"
      }
    }

    package func lines(for command: String) -> [String] { [description] }
  }

  /// Environments that the App Store never signs.
  package static let localTestingEnvironments: Set<String> = ["Xcode", "LocalTesting"]

  /// The most verified signers kept in the cache; Apple has used about a dozen.
  static let knownSignerLimit = 256

  private let configuration: Configuration
  /// The certificates configured for transaction receipts, including roots: common name and fingerprint of
  /// each.
  package let configuredCertificates: [(name: String, fingerprint: SHA256Digest)]
  private let transactionRoots: [Certificate]
  private let transactionIntermediates: [Certificate]
  private let knownSigners = Monitor<[SignerKey: KnownSigner]>([:])

  /// A signer is cached for one use, because each use has its own rules for the chain.
  private struct SignerKey: Hashable {
    enum Use: Hashable { case unified, localTesting, transaction(TransactionSignature.Version) }
    let use: Use
    let certificates: SHA256Digest
  }

  /// Creates a verifier and parses the configured certificates.
  package init(configuration: Configuration) throws(ConfigurationError) {
    var roots: [Certificate] = []
    var intermediates: [Certificate] = []
    var names: [(name: String, fingerprint: SHA256Digest)] = []
    for (index, der) in configuration.transactionIntermediates.enumerated() {
      guard let certificate = Certificate.parse(der) else {
        throw .unreadableCertificate(index: index)
      }
      names.append((certificate.commonName, certificate.fingerprint))
      if configuration.pinnedRoots.contains(certificate.fingerprint) {
        roots.append(certificate)
      } else if certificate.bears(.iTunesStoreIntermediate)
        || certificate.bears(.developerRelationsIntermediate)
      {
        intermediates.append(certificate)
      } else {
        throw .unusableCertificate(index: index)
      }
    }
    self.configuration = configuration
    configuredCertificates = names
    transactionRoots = roots
    transactionIntermediates = intermediates
  }

  /// Checks a receipt file's signature. `receipt` must be what `ReceiptFile.decode` returned for the same
  /// `bytes`: its date and environment decide, once the signature is known to cover them.
  package func verify(
    _ bytes: UnsafeRawBufferPointer, receipt: Receipt
  ) -> SignatureVerdict {
    do {
      switch receipt.style {
      case .unified: return try verifyUnified(bytes, receipt)
      case .transaction: return try verifyTransaction(bytes, receipt)
      }
    } catch { return .invalid(error) }
  }

  /// Checks a receipt file in an array.
  package func verify(_ bytes: [UInt8], receipt: Receipt) -> SignatureVerdict {
    bytes.withUnsafeBytes { verify($0, receipt: receipt) }
  }

  // MARK: Unified receipts

  private func verifyUnified(
    _ bytes: UnsafeRawBufferPointer, _ receipt: Receipt
  ) throws(SignatureFault) -> SignatureVerdict {
    let isLocalTesting = receipt.environment.map(Self.localTestingEnvironments.contains) ?? false
    guard !isLocalTesting || !configuration.localTestingSigners.isEmpty else {
      throw .localTestingEnvironment
    }
    guard let signedData = Self.signedData(bytes) else { throw .malformedEnvelope }
    guard let creationDateMs = receipt.creationDateMs else { throw .missingDate }
    let certificates = UnsafeRawBufferPointer(rebasing: bytes[signedData.certificates])
    let signer = try knownSigner(isLocalTesting ? .localTesting : .unified, certificates) {
      () throws(SignatureFault) in
      isLocalTesting
        ? try proveLocalTestingSigner(certificates) : try proveUnifiedSigner(certificates)
    }
    guard bytes[signedData.signerName].elementsEqual(signer.certificate.signerName) else {
      throw .wrongSigner
    }
    let isSigned = signedData.content.withBytes(of: bytes) { content in
      signer.hasSigned(
        prefix: nil, content, digest: signedData.digest,
        signature: UnsafeRawBufferPointer(rebasing: bytes[signedData.signature]))
    }
    guard isSigned else { throw .wrongSignature }
    return signer.timeFault(atMs: creationDateMs).map { .timeOnly($0) } ?? .valid
  }

  private static func signedData(_ bytes: UnsafeRawBufferPointer) -> SignedData? {
    do { return try SignedData(bytes) } catch { return nil }
  }

  /// Signer, intermediate and root, in this order and nothing else, as Apple embeds them.
  private func proveUnifiedSigner(
    _ certificates: UnsafeRawBufferPointer
  ) throws(SignatureFault) -> KnownSigner {
    let chain = try Self.parse(certificates, count: 3)
    guard configuration.pinnedRoots.contains(chain[2].fingerprint) else { throw .untrustedRoot }
    guard CertificateChain.leads(from: chain[0], over: chain[1], to: chain[2]) else {
      throw .brokenChain
    }
    guard chain[1].bears(.developerRelationsIntermediate), chain[0].bears(.receiptSigning) else {
      throw .wrongPurpose
    }
    guard let signer = KnownSigner(certificate: chain[0], chains: [chain]) else {
      throw .malformedCertificate
    }
    return signer
  }

  /// One self-signed certificate, trusted by its fingerprint.
  private func proveLocalTestingSigner(
    _ certificates: UnsafeRawBufferPointer
  ) throws(SignatureFault) -> KnownSigner {
    let chain = try Self.parse(certificates, count: 1)
    guard configuration.localTestingSigners.contains(chain[0].fingerprint) else {
      throw .localTestingEnvironment
    }
    guard let signer = KnownSigner(certificate: chain[0], chains: [chain]) else {
      throw .malformedCertificate
    }
    return signer
  }

  /// Parses exactly `count` consecutive certificates.
  private static func parse(
    _ certificates: UnsafeRawBufferPointer, count: Int
  ) throws(SignatureFault) -> [Certificate] {
    var reader = DERReader(certificates)
    var parsed: [Certificate] = []
    while !reader.isAtEnd {
      guard parsed.count < count else { throw .unexpectedCertificates }
      let range: Range<Int>
      do { range = try reader.next(DERIdentifier.sequence).range } catch {
        throw .malformedCertificate
      }
      let der = UnsafeRawBufferPointer(rebasing: certificates[range])
      guard let certificate = Certificate(der: der) else { throw .malformedCertificate }
      parsed.append(certificate)
    }
    guard parsed.count == count else { throw .unexpectedCertificates }
    return parsed
  }

  // MARK: Transaction receipts

  private func verifyTransaction(
    _ bytes: UnsafeRawBufferPointer, _ receipt: Receipt
  ) throws(SignatureFault) -> SignatureVerdict {
    guard let file = Self.transactionReceipt(bytes) else { throw .malformedEnvelope }
    guard let blob = file.signature else { throw .missingSignature }
    if TransactionSignature.hasUnknownVersion(blob) { return .undecided(.unknownSignatureVersion) }
    guard let parts = TransactionSignature(blob) else { throw .malformedEnvelope }
    guard let purchaseDateMs = receipt.purchases.first?.purchaseDateMs else { throw .missingDate }
    return try blob.withUnsafeBufferPointer { buffer throws(SignatureFault) in
      let blob = UnsafeRawBufferPointer(buffer)
      let certificate = UnsafeRawBufferPointer(rebasing: blob[parts.certificate])
      let signer: KnownSigner
      var isProven = true
      do throws(SignatureFault) {
        signer = try knownSigner(.transaction(parts.version), certificate) {
          () throws(SignatureFault) in
          try proveTransactionSigner(certificate, parts.version)
        }
      } catch .intermediateNotConfigured {
        signer = try Self.claimedSigner(certificate, parts.version)
        isProven = false
      }
      let isSigned = file.purchaseInfo.withUnsafeBytes { purchaseInfo in
        signer.hasSigned(
          prefix: parts.version.rawValue, purchaseInfo, digest: parts.version.digest,
          signature: UnsafeRawBufferPointer(rebasing: blob[parts.signature]))
      }
      guard isSigned else { throw .wrongSignature }
      guard isProven else { return .undecided(.intermediateNotConfigured) }
      return signer.timeFault(atMs: purchaseDateMs).map { .timeOnly($0) } ?? .valid
    }
  }

  private static func transactionReceipt(_ bytes: UnsafeRawBufferPointer) -> TransactionReceipt? {
    do { return try TransactionReceipt(bytes) } catch { return nil }
  }

  private func proveTransactionSigner(
    _ certificate: UnsafeRawBufferPointer, _ version: TransactionSignature.Version
  ) throws(SignatureFault) -> KnownSigner {
    guard let signer = Certificate(der: certificate) else { throw .malformedCertificate }
    let chains = transactionChains(from: signer, version)
    if chains.isEmpty {
      // Apple issues new intermediates, so a signer with an unknown issuer name may be genuine.
      throw !signer.isSelfIssued && !isIssuerKnown(of: signer)
        ? .intermediateNotConfigured : .brokenChain
    }
    guard signer.bears(version.signerPurpose) else { throw .wrongPurpose }
    guard let known = KnownSigner(certificate: signer, chains: chains) else {
      throw .malformedCertificate
    }
    return known
  }

  /// Apple's own intermediates, if Apple's root is pinned.
  private var appleIntermediates: [Certificate] {
    configuration.pinnedRoots.contains(.appleRoot) ? AppleCertificates.intermediates : []
  }

  private func isIssuerKnown(of signer: Certificate) -> Bool {
    let known = [transactionIntermediates, transactionRoots, appleIntermediates]
    return known.contains { $0.contains(where: signer.namesAsIssuer) }
  }

  /// Every chain through an intermediate that is intended for this version.
  private func transactionChains(
    from signer: Certificate, _ version: TransactionSignature.Version
  ) -> [[Certificate]] {
    var chains: [[Certificate]] = []
    for intermediate in appleIntermediates where intermediate.bears(version.intermediatePurpose) {
      let root = AppleCertificates.root
      if CertificateChain.leads(from: signer, over: intermediate, to: root) {
        chains.append([signer, intermediate, root])
      }
    }
    for intermediate in transactionIntermediates
    where intermediate.bears(version.intermediatePurpose) {
      if let chain = configuredChain(from: signer, over: intermediate) { chains.append(chain) }
    }
    return chains
  }

  private func configuredChain(
    from signer: Certificate, over intermediate: Certificate
  ) -> [Certificate]? {
    if transactionRoots.isEmpty {
      return CertificateChain.leads(from: signer, over: nil, to: intermediate)
        ? [signer, intermediate] : nil
    }
    for root in transactionRoots
    where CertificateChain.leads(from: signer, over: intermediate, to: root) {
      return [signer, intermediate, root]
    }
    return nil
  }

  /// The signer as the receipt names it, not verified: enough to detect altered content.
  private static func claimedSigner(
    _ certificate: UnsafeRawBufferPointer, _ version: TransactionSignature.Version
  ) throws(SignatureFault) -> KnownSigner {
    guard let signer = Certificate(der: certificate),
      let claimed = KnownSigner(certificate: signer, chains: [[signer]])
    else { throw .malformedCertificate }
    guard signer.bears(version.signerPurpose) else { throw .wrongPurpose }
    return claimed
  }

  // MARK: Known signers

  /// Returns the signer from the cache, or verifies and caches it. Only verified signers are cached, so only
  /// the pinned authorities can fill the cache.
  private func knownSigner(
    _ use: SignerKey.Use, _ certificates: UnsafeRawBufferPointer,
    prove: () throws(SignatureFault) -> KnownSigner
  ) throws(SignatureFault) -> KnownSigner {
    let key = SignerKey(use: use, certificates: SHA256.hash(certificates))
    if let known = knownSigners.withLock({ $0[key] }) { return known }
    let proven = try prove()
    knownSigners.withLock { signers in
      if signers.count >= Self.knownSignerLimit { signers.removeAll() }
      signers[key] = proven
    }
    return proven
  }
}

// MARK: - Verdicts

/// The result of checking one receipt's signature.
package enum SignatureVerdict: Equatable, Sendable {
  /// Signed by the App Store, with certificates that were valid when the receipt was created.
  case valid
  /// Not the App Store's: altered or forged.
  case invalid(SignatureFault)
  /// Everything is correct except the dates of the certificates. This is not fraud: the App Store decides.
  case timeOnly(SignatureFault)
  /// A transaction receipt that cannot be judged here. Either its own signature is correct but its signer's
  /// intermediate is neither one of Apple's known ones nor configured, or this program does not know the
  /// version of its signature. The App Store decides.
  case undecided(SignatureFault)
}

/// Why a signature is not valid. The raw value is stable and may be stored.
package enum SignatureFault: String, Error, Equatable, Sendable, CustomStringConvertible {
  case localTestingEnvironment = "local_testing_environment"
  case malformedEnvelope = "malformed_envelope"
  case missingSignature = "missing_signature"
  case missingDate = "missing_date"
  case malformedCertificate = "malformed_certificate"
  case unexpectedCertificates = "unexpected_certificates"
  case untrustedRoot = "untrusted_root"
  case brokenChain = "broken_chain"
  case wrongPurpose = "wrong_purpose"
  case wrongSigner = "wrong_signer"
  case wrongSignature = "wrong_signature"
  case notYetValid = "certificate_not_yet_valid"
  case expired = "certificate_expired"
  case intermediateNotConfigured = "intermediate_not_configured"
  case unknownSignatureVersion = "unknown_signature_version"

  /// Whether the fault lies in the chain of trust, rather than in the signed content.
  package var isOfTrust: Bool {
    switch self {
    case .untrustedRoot, .brokenChain, .wrongPurpose, .intermediateNotConfigured: true
    default: false
    }
  }

  package var description: String {
    switch self {
    case .localTestingEnvironment: "made by Xcode or a local test, not by the App Store"
    case .malformedEnvelope: "not in the App Store's receipt format"
    case .missingSignature: "has no signature"
    case .missingDate: "has no date for checking the certificates"
    case .malformedCertificate: "a certificate cannot be read"
    case .unexpectedCertificates:
      "the certificates are not signer, intermediate and root in this order"
    case .untrustedRoot: "the root certificate is not trusted"
    case .brokenChain: "the certificates do not form a chain from the signer to the trusted root"
    case .wrongPurpose: "the certificates are not intended for signing receipts"
    case .wrongSigner: "the signer's name does not match the certificate"
    case .wrongSignature: "the signature does not match the content"
    case .notYetValid: "a certificate was not yet valid when the receipt was made"
    case .expired: "a certificate had expired when the receipt was made"
    case .intermediateNotConfigured:
      "the signer's intermediate certificate is neither known nor configured"
    case .unknownSignatureVersion: "the version of its signature is unknown"
    }
  }
}
