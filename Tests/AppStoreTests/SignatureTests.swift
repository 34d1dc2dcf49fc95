// Signatures of unified receipts: which are valid, which are refused and why, which fail for time alone.

import AppStore
import AppStoreAuthority
import TestSupport
import Testing

@Suite("Signatures of unified receipts")
struct SignatureTests {
  let authority: TestAuthority
  let verifier: ReceiptVerifier

  init() throws {
    authority = try TestAuthority.shared.get()
    verifier = try authority.verifier()
  }

  func verdict(_ file: [UInt8]) throws -> SignatureVerdict {
    verifier.verify(file, receipt: try ReceiptFile.decode(file))
  }

  @Test(
    "a signed receipt is valid, first with an unknown, then with a known signer",
    arguments: SigningDigest.allCases)
  func signedIsValid(digest: SigningDigest) throws {
    let file = try UnifiedReceiptPlan(digest: digest).signed(by: authority)
    try expectEqual(verdict(file), .valid)
    try expectEqual(verdict(file), .valid)
  }

  @Test("an altered receipt leaves no trace on its signer's next ones, whatever their digest")
  func alteredBetweenGoodOnes() throws {
    for round in 0..<3 {
      for digest in SigningDigest.allCases {
        var plan = UnifiedReceiptPlan(digest: digest)
        try expectEqual(verdict(plan.signed(by: authority)), .valid)
        let signature = try authority.signer.key.sign(plan.content, digest)
        plan.creationDate = "2020-01-0\(round + 1)T00:00:00Z"
        let altered = plan.frame(
          content: plan.content, certificates: authority.chain, signer: authority.signer,
          signature: signature)
        try expectEqual(verdict(altered), .invalid(.wrongSignature))
      }
    }
  }

  @Test("a signed receipt in indefinite-length BER is valid")
  func indefiniteIsValid() throws {
    let file = try UnifiedReceiptPlan(isIndefinite: true).signed(by: authority)
    try expectEqual(verdict(file), .valid)
  }

  @Test(
    "with a known signer, a receipt's own date still decides",
    arguments: [
      ("2013-12-31T23:59:59Z", SignatureVerdict.timeOnly(.notYetValid)),
      ("2014-01-01T00:00:00Z", .valid), ("2034-12-31T23:59:59.999Z", .valid),
      ("2035-01-01T00:00:00Z", .timeOnly(.expired)),
    ])
  func dateDecides(date: String, expected: SignatureVerdict) throws {
    try expectEqual(verdict(UnifiedReceiptPlan().signed(by: authority)), .valid)
    try expectEqual(verdict(UnifiedReceiptPlan(creationDate: date).signed(by: authority)), expected)
  }

  @Test("an altered receipt outside the certificates' time is forged, not late")
  func alteredAndLateIsInvalid() throws {
    var plan = UnifiedReceiptPlan(creationDate: "2040-01-01T00:00:00Z")
    let signature = try authority.signer.key.sign(plan.content, .sha256)
    plan.creationDate = "2041-01-01T00:00:00Z"
    let file = plan.frame(
      content: plan.content, certificates: authority.chain, signer: authority.signer,
      signature: signature)
    try expectEqual(verdict(file), .invalid(.wrongSignature))
  }

  @Test("an expired intermediate is a fault of time alone")
  func expiredIntermediate() throws {
    let expired = try CertificatePlan(
      name: "Test Developer Relations", isAuthority: true,
      purposes: [CertificatePlan.developerRelations], notAfter: "160101000000Z"
    ).issue(authority.intermediate.key, by: authority.root)
    let chain = [authority.signer.der, expired.der, authority.root.der]
    let late = try UnifiedReceiptPlan(certificates: chain).signed(by: authority)
    try expectEqual(verdict(late), .timeOnly(.expired))
    let early = try UnifiedReceiptPlan(
      creationDate: "2015-12-31T23:59:59Z", certificates: chain
    ).signed(by: authority)
    try expectEqual(verdict(early), .valid)
  }

  @Test("certificates that are never valid at the same time are a fault of time alone")
  func disjointValidity() throws {
    let early = try CertificatePlan(
      name: "Test Developer Relations", isAuthority: true,
      purposes: [CertificatePlan.developerRelations], notAfter: "150101000000Z"
    ).issue(authority.intermediate.key, by: authority.root)
    let later = try CertificatePlan(
      name: "Test Receipt Signing", purposes: [CertificatePlan.receiptSigning],
      notBefore: "160101000000Z"
    ).issue(authority.signer.key, by: early)
    let file = try UnifiedReceiptPlan().signed(
      by: later, certificates: [later.der, early.der, authority.root.der])
    try expectEqual(verdict(file), .timeOnly(.expired))
  }

  @Test(
    "only signer, intermediate and root in this order are a chain",
    arguments: [
      ([], SignatureFault.unexpectedCertificates), ([0], .unexpectedCertificates),
      ([0, 1], .unexpectedCertificates), ([0, 1, 2, 2], .unexpectedCertificates),
      ([0, 1, 2, 1], .unexpectedCertificates), ([0, 1, 1], .untrustedRoot),
      ([1, 0, 2], .brokenChain), ([0, 2, 1], .untrustedRoot), ([2, 1, 0], .untrustedRoot),
      ([1, 2, 0], .untrustedRoot), ([0, 0, 2], .brokenChain), ([0, 2, 2], .brokenChain),
    ])
  func chainShape(places: [Int], fault: SignatureFault) throws {
    let chain = places.map { authority.chain[$0] }
    let file = try UnifiedReceiptPlan(certificates: chain).signed(by: authority)
    try expectEqual(verdict(file), .invalid(fault))
  }

  @Test("a stranger's receipt is refused, even with the genuine certificates included")
  func strangers() throws {
    let stranger = try TestAuthority.stranger.get()
    let own = try UnifiedReceiptPlan().signed(by: stranger)
    try expectEqual(verdict(own), .invalid(.untrustedRoot))
    let trueRoot = try UnifiedReceiptPlan().signed(
      by: stranger.signer,
      certificates: [stranger.signer.der, stranger.intermediate.der, authority.root.der])
    try expectEqual(verdict(trueRoot), .invalid(.brokenChain))
    let trueAuthorities = try UnifiedReceiptPlan().signed(
      by: stranger.signer,
      certificates: [stranger.signer.der, authority.intermediate.der, authority.root.der])
    try expectEqual(verdict(trueAuthorities), .invalid(.brokenChain))
    let allTrue = try UnifiedReceiptPlan().signed(
      by: stranger.signer, certificates: authority.chain)
    try expectEqual(verdict(allTrue), .invalid(.wrongSignature))
    let stuffed = try UnifiedReceiptPlan().signed(
      by: stranger.signer, certificates: [stranger.signer.der] + authority.chain)
    try expectEqual(verdict(stuffed), .invalid(.unexpectedCertificates))
  }

  @Test("a self-signed signer is refused")
  func selfSigned() throws {
    let own = try CertificatePlan(
      name: "Self", isAuthority: true,
      purposes: [CertificatePlan.developerRelations, CertificatePlan.receiptSigning]
    ).issue(SigningKey(bits: 1_024), by: nil)
    let alone = try UnifiedReceiptPlan().signed(by: own, certificates: [own.der])
    try expectEqual(verdict(alone), .invalid(.unexpectedCertificates))
    let thrice = try UnifiedReceiptPlan().signed(
      by: own, certificates: [own.der, own.der, own.der])
    try expectEqual(verdict(thrice), .invalid(.untrustedRoot))
    let stuffed = try UnifiedReceiptPlan().signed(
      by: own, certificates: [own.der, authority.intermediate.der, authority.root.der])
    try expectEqual(verdict(stuffed), .invalid(.brokenChain))
  }

  @Test("a certificate under the genuine root that is not for receipts is refused")
  func wrongPurposes() throws {
    let developer = try CertificatePlan(name: "Some Developer")
      .issue(SigningKey(bits: 1_024), by: authority.intermediate)
    let byDeveloper = try UnifiedReceiptPlan().signed(
      by: developer,
      certificates: [developer.der, authority.intermediate.der, authority.root.der])
    try expectEqual(verdict(byDeveloper), .invalid(.wrongPurpose))
    let unmarked = try CertificatePlan(name: "Other Intermediate", isAuthority: true)
      .issue(authority.intermediate.key, by: authority.root)
    let signer = try CertificatePlan(
      name: "Signer", purposes: [CertificatePlan.receiptSigning]
    ).issue(authority.signer.key, by: unmarked)
    let underUnmarked = try UnifiedReceiptPlan().signed(
      by: signer, certificates: [signer.der, unmarked.der, authority.root.der])
    try expectEqual(verdict(underUnmarked), .invalid(.wrongPurpose))
  }

  @Test("a signer other than the owner of the first certificate is refused")
  func wrongSerial() throws {
    let other = try CertificatePlan(
      name: "Test Receipt Signing", purposes: [CertificatePlan.receiptSigning], serial: 8
    ).issue(authority.signer.key, by: authority.intermediate)
    let file = try UnifiedReceiptPlan().signed(by: other, certificates: authority.chain)
    try expectEqual(verdict(file), .invalid(.wrongSigner))
  }

  @Test("signed or unsigned attributes of the signer are refused")
  func signerAttributes() throws {
    let file = try UnifiedReceiptPlan().signed(
      by: authority.signer, certificates: authority.chain,
      signerInfoExtra: DER.element(0xA1, DER.sequence()))
    try expectEqual(verdict(file), .invalid(.malformedEnvelope))
  }

  @Test("a digest other than the signed one is refused")
  func otherDigest() throws {
    let plan = UnifiedReceiptPlan(digest: .sha256)
    let file = plan.frame(
      content: plan.content, certificates: authority.chain, signer: authority.signer,
      signature: try authority.signer.key.sign(plan.content, .sha1))
    try expectEqual(verdict(file), .invalid(.wrongSignature))
  }

  @Test("a receipt without a creation date is refused")
  func noDate() throws {
    let file = try UnifiedReceiptPlan(creationDate: nil).signed(by: authority)
    try expectEqual(verdict(file), .invalid(.missingDate))
  }

  @Test("without the test root pinned, the test authority is a stranger")
  func shippedConfigurationRefusesTestRoot() throws {
    let shipped = try ReceiptVerifier(configuration: .init())
    let file = try UnifiedReceiptPlan().signed(by: authority)
    expectEqual(
      shipped.verify(file, receipt: try ReceiptFile.decode(file)), .invalid(.untrustedRoot))
  }

  @Test(
    "local testing receipts are refused unless their exact signer is configured",
    arguments: ["Xcode", "LocalTesting"])
  func localTesting(environment: String) throws {
    let own = try CertificatePlan(name: "StoreKit", isAuthority: true)
      .issue(SigningKey(bits: 1_024), by: nil)
    let file = try UnifiedReceiptPlan(environment: environment)
      .signed(by: own, certificates: [own.der])
    try expectEqual(verdict(file), .invalid(.localTestingEnvironment))
    let trulySigned = try UnifiedReceiptPlan(environment: environment).signed(by: authority)
    try expectEqual(verdict(trulySigned), .invalid(.localTestingEnvironment))

    var configuration = authority.configuration
    configuration.localTestingSigners = [own.fingerprint]
    let configured = try ReceiptVerifier(configuration: configuration)
    expectEqual(configured.verify(file, receipt: try ReceiptFile.decode(file)), .valid)
    let production = try UnifiedReceiptPlan().signed(by: own, certificates: [own.der])
    expectEqual(
      configured.verify(production, receipt: try ReceiptFile.decode(production)),
      .invalid(.unexpectedCertificates))
    let other = try CertificatePlan(name: "StoreKit", isAuthority: true)
      .issue(SigningKey(bits: 1_024), by: nil)
    let foreign = try UnifiedReceiptPlan(environment: environment)
      .signed(by: other, certificates: [other.der])
    expectEqual(
      configured.verify(foreign, receipt: try ReceiptFile.decode(foreign)),
      .invalid(.localTestingEnvironment))
  }

  @Test(
    "a receipt with the dates of Xcode 12 is read, recognized as Xcode's, and accepted by its signer"
  )
  func xcode12() throws {
    let own = try CertificatePlan(name: "StoreKit", isAuthority: true)
      .issue(SigningKey(bits: 1_024), by: nil)
    let file = try UnifiedReceiptPlan(
      environment: "Xcode", creationDate: "2020-07-22T18:33:15+0100"
    ).signed(by: own, certificates: [own.der])
    let receipt = try ReceiptFile.decode(file)
    expectEqual(receipt.creationDateMs, 1_595_439_195_000)
    expectEqual(verifier.verify(file, receipt: receipt), .invalid(.localTestingEnvironment))
    var configuration = authority.configuration
    configuration.localTestingSigners = [own.fingerprint]
    let configured = try ReceiptVerifier(configuration: configuration)
    expectEqual(configured.verify(file, receipt: receipt), .valid)
  }

  @Test("many threads at once get the verdicts of one")
  func concurrency() async throws {
    let good = try UnifiedReceiptPlan().signed(by: authority)
    var bad = good
    bad[bad.count - 1] ^= 1
    let verifier = verifier
    let receipt = try ReceiptFile.decode(good)
    let results = await withTaskGroup(of: Bool.self) { [bad] group in
      for index in 0..<200 {
        group.addTask {
          index % 2 == 0
            ? verifier.verify(good, receipt: receipt) == .valid
            : verifier.verify(bad, receipt: receipt) == .invalid(.wrongSignature)
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.count == 200 && results.allSatisfy { $0 })
  }
}
