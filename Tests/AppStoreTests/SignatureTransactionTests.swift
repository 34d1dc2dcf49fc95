// Signatures of transaction receipts, whose intermediate comes from the configuration.

import AppStore
import AppStoreAuthority
import TestSupport
import Testing

@Suite("Signatures of transaction receipts")
struct SignatureTransactionTests {
  let authority: TestAuthority
  let verifier: ReceiptVerifier

  init() throws {
    authority = try TestAuthority.shared.get()
    verifier = try authority.verifier()
  }

  func verdict(_ file: [UInt8], by verifier: ReceiptVerifier? = nil) throws -> SignatureVerdict {
    (verifier ?? self.verifier).verify(file, receipt: try ReceiptFile.decode(file))
  }

  func verifier(intermediates: [IssuedCertificate]) throws -> ReceiptVerifier {
    try ReceiptVerifier(
      configuration: .init(
        pinnedRoots: [authority.root.fingerprint],
        transactionIntermediates: intermediates.map(\.der)))
  }

  @Test("each version is valid, first with an unknown, then with a known signer")
  func everyVersion() throws {
    let second = try TransactionReceiptPlan(version: 2).signed(by: authority.purchaseSigner)
    let third = try TransactionReceiptPlan(version: 3).signed(by: authority.signer)
    let fourth = try TransactionReceiptPlan(version: 4).signed(by: authority.signer)
    for file in [second, second, third, third, fourth, fourth] {
      try expectEqual(verdict(file), .valid)
    }
  }

  @Test("each version's signer and intermediate are its own")
  func crossedVersions() throws {
    let second = try TransactionReceiptPlan(version: 2).signed(by: authority.signer)
    let third = try TransactionReceiptPlan(version: 3).signed(by: authority.purchaseSigner)
    // The two intermediates share a key in this authority: their names distinguish them.
    try expectEqual(verdict(second), .invalid(.brokenChain))
    try expectEqual(verdict(third), .invalid(.brokenChain))
  }

  @Test("a signer under the right intermediate without its OID is refused")
  func wrongPurpose() throws {
    let signer = try CertificatePlan(name: "Developer")
      .issue(SigningKey(bits: 1_024), by: authority.iTunesStore)
    let file = try TransactionReceiptPlan().signed(by: signer)
    try expectEqual(verdict(file), .invalid(.wrongPurpose))
    let unconfigured = try verifier(intermediates: [])
    try expectEqual(verdict(file, by: unconfigured), .invalid(.wrongPurpose))
  }

  @Test("strangers and self-signed signers are refused")
  func strangers() throws {
    let stranger = try TestAuthority.stranger.get()
    let foreign = try TransactionReceiptPlan().signed(by: stranger.purchaseSigner)
    try expectEqual(verdict(foreign), .invalid(.brokenChain))
    let own = try CertificatePlan(name: "Self", purposes: [CertificatePlan.purchaseSigning])
      .issue(SigningKey(bits: 1_024), by: nil)
    let selfSigned = try TransactionReceiptPlan().signed(by: own)
    try expectEqual(verdict(selfSigned), .invalid(.brokenChain))
    try expectEqual(verdict(selfSigned, by: verifier(intermediates: [])), .invalid(.brokenChain))
  }

  @Test("without the version's intermediate a good signature is undecided, a bad one refused")
  func noIntermediate() throws {
    let file = try TransactionReceiptPlan().signed(by: authority.purchaseSigner)
    let other = try verifier(intermediates: [authority.intermediate, authority.root])
    try expectEqual(verdict(file, by: other), .undecided(.intermediateNotConfigured))
    let plan = TransactionReceiptPlan()
    let forged = plan.file(
      signature: try authority.purchaseSigner.key.sign([2] + plan.purchaseInfo + [0], .sha1),
      certificate: authority.purchaseSigner.der, purchaseInfo: plan.purchaseInfo)
    try expectEqual(verdict(forged, by: other), .invalid(.wrongSignature))
  }

  @Test(
    "an unknown version is left to the App Store, whatever follows",
    arguments: [0, 1, 5, 255] as [UInt8])
  func unknownVersion(_ version: UInt8) throws {
    let plan = TransactionReceiptPlan()
    for (rest, expected) in [
      ([UInt8](repeating: 7, count: 127), .undecided(.unknownSignatureVersion)),
      (authority.signer.der, .undecided(.unknownSignatureVersion)),
      // Too short for a signature of any kind.
      ([], .invalid(.malformedEnvelope)), ([0, 0], .invalid(.malformedEnvelope)),
    ] as [([UInt8], SignatureVerdict)] {
      let file = plan.list(blob: [version] + rest, purchaseInfo: plan.purchaseInfo)
      try expectEqual(verdict(file), expected)
    }
  }

  @Test("each version has its digest, and the version is part of the signed bytes")
  func digests() throws {
    let plan = TransactionReceiptPlan(version: 4)
    for (digest, version) in [(SigningDigest.sha1, 4), (.sha256, 3)] as [(SigningDigest, UInt8)] {
      let signature = try authority.signer.key.sign([version] + plan.purchaseInfo, digest)
      let file = plan.file(
        signature: signature, certificate: authority.signer.der, purchaseInfo: plan.purchaseInfo)
      try expectEqual(verdict(file), .invalid(.wrongSignature))
    }
  }

  @Test("an altered version 4 receipt is refused, and so is a stranger's or a developer's")
  func forgedVersion4() throws {
    var plan = TransactionReceiptPlan(version: 4)
    let signature = try authority.signer.key.sign([4] + plan.purchaseInfo, .sha256)
    plan.fields[8] = ("product-id", "lifetime")
    let altered = plan.file(
      signature: signature, certificate: authority.signer.der, purchaseInfo: plan.purchaseInfo)
    try expectEqual(verdict(altered), .invalid(.wrongSignature))
    let stranger = try TestAuthority.stranger.get()
    try expectEqual(verdict(plan.signed(by: stranger.signer)), .invalid(.brokenChain))
    let developer = try CertificatePlan(name: "Developer")
      .issue(SigningKey(bits: 2_048), by: authority.intermediate)
    try expectEqual(verdict(plan.signed(by: developer)), .invalid(.wrongPurpose))
  }

  @Test("an intermediate reissued with its key serves for both of its periods")
  func reissuedIntermediate() throws {
    func intermediate(_ notBefore: String, _ notAfter: String, _ serial: Int64) throws
      -> IssuedCertificate
    {
      try CertificatePlan(
        name: "Test Developer Relations", isAuthority: true,
        purposes: [CertificatePlan.developerRelations], notBefore: notBefore, notAfter: notAfter,
        serial: serial
      ).issue(authority.intermediate.key, by: authority.root)
    }
    let verifier = try verifier(intermediates: [
      intermediate("140101000000Z", "151231235959Z", 8),
      intermediate("180101000000Z", "231231235959Z", 9), authority.root,
    ])
    let cases: [(String, SignatureVerdict)] = [
      ("1388534399999", .timeOnly(.notYetValid)), ("1388534400000", .valid),
      ("1451606400000", .timeOnly(.expired)), ("1514764800000", .valid),
      ("1704067200000", .timeOnly(.expired)),
    ]
    for (milliseconds, expected) in cases {
      var plan = TransactionReceiptPlan(version: 3)
      plan.fields[2] = ("purchase-date-ms", milliseconds)
      try expectEqual(verdict(plan.signed(by: authority.signer), by: verifier), expected)
    }
  }

  @Test(
    "a signer that claims Apple's intermediate as issuer is judged without configuration")
  func appleNamesClaimed() throws {
    let shipped = try ReceiptVerifier(configuration: .init())
    for name in AppleNames.all {
      let claimed = try AppleNames.signer(under: name)
      let file = try TransactionReceiptPlan(version: name.version).signed(by: claimed)
      try expectEqual(verdict(file, by: shipped), .invalid(.brokenChain), "\(name.commonName)")
    }
  }

  @Test("the intermediate alone is enough; a configured root must be the intermediate's")
  func rootConfigured() throws {
    let file = try TransactionReceiptPlan().signed(by: authority.purchaseSigner)
    try expectEqual(verdict(file, by: verifier(intermediates: [authority.iTunesStore])), .valid)
    let stranger = try TestAuthority.stranger.get()
    let foreignRoot = try ReceiptVerifier(
      configuration: .init(
        pinnedRoots: [stranger.root.fingerprint],
        transactionIntermediates: [authority.iTunesStore.der, stranger.root.der]))
    try expectEqual(verdict(file, by: foreignRoot), .invalid(.brokenChain))
  }

  @Test(
    "the certificates are checked at the purchase's date",
    arguments: [
      ("1388534399999", SignatureVerdict.timeOnly(.notYetValid)), ("1388534400000", .valid),
      ("2051222399999", .valid), ("2051222400000", .timeOnly(.expired)),
    ])
  func dateDecides(milliseconds: String, expected: SignatureVerdict) throws {
    var plan = TransactionReceiptPlan()
    plan.fields[2] = ("purchase-date-ms", milliseconds)
    try expectEqual(verdict(plan.signed(by: authority.purchaseSigner)), expected)
  }

  @Test("the environment line is neither signed nor believed")
  func environmentLine() throws {
    let file = try TransactionReceiptPlan(environmentLine: "\t\"environment\" = \"Production\";\n")
      .signed(by: authority.purchaseSigner)
    let receipt = try ReceiptFile.decode(file)
    #expect(receipt.environment == nil)
    expectEqual(verifier.verify(file, receipt: receipt), .valid)
  }

  @Test("a signature blob of another structure is refused")
  func brokenBlobs() throws {
    let plan = TransactionReceiptPlan()
    let info = plan.purchaseInfo
    let signature = try authority.purchaseSigner.key.sign([2] + info, .sha1)
    let certificate = authority.purchaseSigner.der
    let length = (0..<4).map { UInt8(truncatingIfNeeded: certificate.count >> (24 - 8 * $0)) }
    let good = [2] + signature + length + certificate
    try expectEqual(verdict(plan.list(blob: good, purchaseInfo: info)), .valid)
    for count in 0..<good.count {
      let cut = plan.list(blob: Array(good.prefix(count)), purchaseInfo: info)
      try expectEqual(verdict(cut), .invalid(.malformedEnvelope), "cut at \(count)")
    }
    let longer = plan.list(blob: good + [0], purchaseInfo: info)
    try expectEqual(verdict(longer), .invalid(.malformedEnvelope))
  }

  @Test("a flipped bit in any signed byte or in the signature is refused")
  func flippedBits() throws {
    let plan = TransactionReceiptPlan()
    let info = plan.purchaseInfo
    let signature = try authority.purchaseSigner.key.sign([2] + info, .sha1)
    let certificate = authority.purchaseSigner.der
    var random = SeededRandom()
    func check(_ file: [UInt8], _ place: String) {
      guard let receipt = try? ReceiptFile.decode(file) else { return }
      let verdict = verifier.verify(file, receipt: receipt)
      if case .invalid = verdict { return }
      // A changed name of the issuer is an intermediate that is not configured.
      if verdict == .undecided(.intermediateNotConfigured), place.hasPrefix("certificate") {
        return
      }
      Issue.record("\(place), seed \(random.seed): \(verdict)")
    }
    for offset in info.indices {
      var altered = info
      altered[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      check(
        plan.file(signature: signature, certificate: certificate, purchaseInfo: altered),
        "purchase-info \(offset)")
    }
    for offset in signature.indices {
      var altered = signature
      altered[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      check(
        plan.file(signature: altered, certificate: certificate, purchaseInfo: info),
        "signature \(offset)")
    }
    for offset in certificate.indices {
      var altered = certificate
      altered[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      check(
        plan.file(signature: signature, certificate: altered, purchaseInfo: info),
        "certificate \(offset)")
    }
  }

  @Test("a configured certificate that cannot serve is named by its index")
  func configurationErrors() throws {
    func error(_ certificates: [[UInt8]]) -> String? {
      do {
        _ = try ReceiptVerifier(
          configuration: .init(
            pinnedRoots: [authority.root.fingerprint], transactionIntermediates: certificates))
        return nil
      } catch { return "\(error)" }
    }
    let good = authority.iTunesStore.der
    let prefix = "configure receipt verification: transaction intermediate"
    expectEqual(error([good, [1, 2, 3]]), "\(prefix) 1: not a certificate in DER")
    expectEqual(error([good + [0]]), "\(prefix) 0: not a certificate in DER")
    expectEqual(
      error([authority.signer.der]),
      "\(prefix) 0: neither a pinned root nor an intermediate that signs receipt signers")
    #expect(error([good]) == nil)
  }
}

/// Strangers' signers under the names of Apple's intermediates.
private enum AppleNames {
  struct Name {
    var commonName: String
    /// From the outermost attribute on: OIDs and texts.
    var attributes: [(String, String)]
    var version: UInt8
  }

  static func signer(under name: Name) throws -> IssuedCertificate {
    let key = try SigningKey(bits: 1_024)
    let issuer = IssuedCertificate(
      der: [], name: CertificatePlan.distinguishedName(name.attributes), issuerName: [], serial: 1,
      key: key)
    let purpose =
      name.version == 2 ? CertificatePlan.purchaseSigning : CertificatePlan.receiptSigning
    return try CertificatePlan(name: "Claimed", purposes: [purpose]).issue(key, by: issuer)
  }

  private static let country = ("2.5.4.6", "US")
  private static let organisation = ("2.5.4.10", "Apple Inc.")
  private static let relations = "Apple Worldwide Developer Relations"

  static let all: [Name] = [
    Name(
      commonName: "iTunes Store",
      attributes: [
        country, organisation, ("2.5.4.11", "Apple Certification Authority"),
        ("2.5.4.3", "Apple iTunes Store Certification Authority"),
      ], version: 2),
    Name(
      commonName: "WWDR",
      attributes: [
        country, organisation, ("2.5.4.11", relations),
        ("2.5.4.3", "\(relations) Certification Authority"),
      ], version: 3),
    Name(
      commonName: "WWDR G5",
      attributes: [
        ("2.5.4.3", "\(relations) Certification Authority"), ("2.5.4.11", "G5"), organisation,
        country,
      ], version: 4),
  ]
}
