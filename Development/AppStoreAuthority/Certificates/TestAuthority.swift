// A certificate authority for tests, the demo and measurements: it stands in for Apple's.
package import AppStore

/// A root with the two intermediates and the two signers that receipts know.
package struct TestAuthority: Sendable {
  package let root: IssuedCertificate
  package let intermediate: IssuedCertificate
  package let signer: IssuedCertificate
  package let iTunesStore: IssuedCertificate
  package let purchaseSigner: IssuedCertificate

  /// One for the whole process: keys take time.
  package static let shared = Result { try TestAuthority() }
  /// A stranger with the same names and other keys.
  package static let stranger = Result { try TestAuthority() }

  /// The private keys that an authority consists of; everything else follows from them.
  package struct Keys: Sendable {
    package let root: SigningKey
    /// Of both intermediates, whose names keep them apart.
    package let intermediate: SigningKey
    package let signer: SigningKey
    /// 1,024 bits, as version 2 of transaction receipts has it.
    package let purchaseSigner: SigningKey

    package init() throws(AuthorityError) {
      root = try SigningKey(bits: 2_048)
      intermediate = try SigningKey(bits: 2_048)
      signer = try SigningKey(bits: 2_048)
      purchaseSigner = try SigningKey(bits: 1_024)
    }

    init(
      root: SigningKey, intermediate: SigningKey, signer: SigningKey, purchaseSigner: SigningKey
    ) {
      self.root = root
      self.intermediate = intermediate
      self.signer = signer
      self.purchaseSigner = purchaseSigner
    }
  }

  /// An authority with new keys and small certificates.
  package init() throws(AuthorityError) { try self.init(keys: Keys()) }

  /// The authority of these keys: the same certificates each time, since RSA signs deterministically.
  /// - Parameter isRealSize: certificates as large as Apple's, so that receipts are too.
  package init(keys: Keys, isRealSize: Bool = false) throws(AuthorityError) {
    let comment = isRealSize ? 320 : 0
    root = try CertificatePlan(
      name: "Test Root", isAuthority: true, serial: 1, commentBytes: comment
    ).issue(keys.root, by: nil)
    intermediate = try CertificatePlan(
      name: "Test Developer Relations", isAuthority: true,
      purposes: [CertificatePlan.developerRelations], commentBytes: comment
    ).issue(keys.intermediate, by: root)
    signer = try CertificatePlan(
      name: "Test Receipt Signing", purposes: [CertificatePlan.receiptSigning],
      commentBytes: comment
    ).issue(keys.signer, by: intermediate)
    iTunesStore = try CertificatePlan(
      name: "Test Store", isAuthority: true, purposes: [CertificatePlan.iTunesStore],
      commentBytes: comment
    ).issue(keys.intermediate, by: root)
    purchaseSigner = try CertificatePlan(
      name: "Test Purchase Signing", purposes: [CertificatePlan.purchaseSigning],
      commentBytes: comment
    ).issue(keys.purchaseSigner, by: iTunesStore)
  }

  /// The certificates as unified receipts embed them.
  package var chain: [[UInt8]] { [signer.der, intermediate.der, root.der] }

  /// DER certificates that transaction receipts need.
  package var transactionIntermediates: [[UInt8]] {
    [iTunesStore.der, intermediate.der, root.der]
  }

  /// A verifier's configuration that trusts this authority alone.
  package var configuration: ReceiptVerifier.Configuration {
    ReceiptVerifier.Configuration(
      pinnedRoots: [root.fingerprint], transactionIntermediates: transactionIntermediates)
  }

  package func verifier() throws -> ReceiptVerifier {
    try ReceiptVerifier(configuration: configuration)
  }
}
