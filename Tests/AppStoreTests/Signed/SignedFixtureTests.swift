// Apple's published signed objects: their content, and their verdicts.

import AppStore
import Base
import Foundation
import TestSupport
import Testing

@Suite("Apple's signed objects", .enabled(if: Fixtures.folder != nil, "no ../shared/fixtures here"))
struct SignedFixtureTests {
  /// SHA-256 of certs/testCA.der.
  static let testRoot = hex("48aa70550eab2cd71d51dced44e88f9143b6bc0e1a6f430c19ba9a7cf36654e6")

  static func hex(_ text: String) -> SHA256Digest? {
    Array(text.utf8).withUnsafeBytes { SHA256Digest(hex: $0) }
  }

  static func object(_ name: String) throws -> [UInt8] {
    try Fixtures.bytes("storekit2/\(name)").filter { $0 > 0x20 }
  }

  /// The fingerprint of the certificate at an index of an object's `x5c`.
  static func fingerprint(_ name: String, _ place: Int) throws -> SHA256Digest {
    let header = try JSONSerialization.jsonObject(
      with: Data(try SignedObject(try object(name)).header))
    let certificates = try #require((header as? [String: Any])?["x5c"] as? [String])
    return try Base64.decode(Array(certificates[place].utf8)).withUnsafeBytes { SHA256.hash($0) }
  }

  @Test("objects under the test root are valid, and each of the others is refused for its fault")
  func verdicts() throws {
    let root = try #require(Self.testRoot)
    try expectEqual(
      Fixtures.bytes("storekit2/certs/testCA.der").withUnsafeBytes { SHA256.hash($0) }, root)
    let verifier = SignedObjectVerifier(pinnedRoots: [root])
    let nowMs: Int64 = 1_767_323_045_678
    // Two of them have an older certificate of the same root, which by its fingerprint is another root.
    let older = try Self.fingerprint("mock_signed_data/transactionInfo", 2)
    let both = SignedObjectVerifier(pinnedRoots: [root, older])
    let cases: [(String, SignedObjectVerdict, SignedObjectVerdict)] = [
      ("mock_signed_data/renewalInfo", .valid(root: root), .valid(root: root)),
      ("mock_signed_data/transactionInfo", .invalid(.untrustedRoot), .valid(root: older)),
      ("mock_signed_data/testNotification", .invalid(.untrustedRoot), .valid(root: older)),
      (
        "mock_signed_data/wrongBundleId", .invalid(.missingSignedDate),
        .invalid(.missingSignedDate)
      ),
      (
        "mock_signed_data/missingX5CHeaderClaim", .invalid(.missingCertificates),
        .invalid(.missingCertificates)
      ),
      ("mock_signed_data/legacyTransaction", .invalid(.notThreeParts), .invalid(.notThreeParts)),
      (
        "xcode/xcode-signed-transaction", .invalid(.localTestingEnvironment),
        .invalid(.localTestingEnvironment)
      ),
      (
        "xcode/xcode-signed-renewal-info", .invalid(.localTestingEnvironment),
        .invalid(.localTestingEnvironment)
      ),
      (
        "xcode/xcode-signed-app-transaction", .invalid(.localTestingEnvironment),
        .invalid(.localTestingEnvironment)
      ),
    ]
    for (name, alone, beside) in cases {
      let text = try Self.object(name)
      expectEqual(SignedSample.verdict(text, verifier, nowMs: nowMs), alone, "\(name)")
      expectEqual(SignedSample.verdict(text, both, nowMs: nowMs), beside, "\(name)")
    }
  }

  @Test(
    "Xcode's are valid where their certificate is configured",
    arguments: ["transaction", "renewal-info", "app-transaction"])
  func xcode(name: String) throws {
    let name = "xcode/xcode-signed-\(name)"
    let signer = try Self.fingerprint(name, 0)
    let verifier = SignedObjectVerifier(localTestingSigners: [signer])
    let text = try Self.object(name)
    expectEqual(SignedSample.verdict(text, verifier), .locallyValid(signer: signer))
  }

  @Test("the facts of Xcode's transaction are read")
  func xcodeFacts() throws {
    let payload = try SignedObject(try Self.object("xcode/xcode-signed-transaction")).payload
    let keeper = TextKeeper()
    try payload.withUnsafeBytes { bytes in
      let facts = try SignedTransaction(payload: bytes, keeper)
      expectEqual(facts.signedDateMs, 1_697_679_936_056)
      expectEqual(facts.row.purchaseDateMs, 1_697_679_936_049)
      expectEqual(text(facts.row.productID), "pass.premium")
      #expect(facts.row.webOrderLineItemID == nil && facts.row.isInIntroOfferPeriod)
      expectEqual(text(facts.storefront), "USA")
    }
  }
}
