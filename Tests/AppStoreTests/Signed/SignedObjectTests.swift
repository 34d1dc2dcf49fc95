// Verdicts of signed objects: good, malformed, forged, and out of time.

import AppStore
import AppStoreAuthority
import Base
import TestSupport
import Testing

@Suite("Signed objects")
struct SignedObjectTests {
  let authority: SignedObjectAuthority
  let good: [UInt8]

  init() throws {
    authority = try SignedObjectAuthority.shared.get()
    good = try authority.sign(payload: SignedSample.transaction())
  }

  private func verdict(_ text: [UInt8]) -> SignedObjectVerdict {
    SignedSample.verdict(text, authority.verifier)
  }

  private func sign(
    _ payload: [UInt8] = SignedSample.transaction(), _ edit: (inout SignedObjectForm) -> Void
  ) throws -> [UInt8] {
    var form = SignedObjectForm()
    edit(&form)
    return try authority.sign(payload: payload, form)
  }

  @Test("an object signed under the pinned root is valid, also a second time")
  func valid() throws {
    let verifier = authority.verifier
    for _ in 0..<3 {
      expectEqual(SignedSample.verdict(good, verifier), .valid(root: authority.root.fingerprint))
    }
    let production = try authority.sign(
      payload: SignedSample.transaction(environment: "Production"))
    expectEqual(
      SignedSample.verdict(production, verifier), .valid(root: authority.root.fingerprint))
  }

  @Test("its parts are as sent, and give the same text again")
  func parts() throws {
    let object = try SignedObject(good)
    expectEqual(object.payload, SignedSample.transaction())
    expectEqual(object.signedDateMs, SignedSample.signedDateMs)
    expectEqual(object.text, good)
    expectEqual(
      SignedObject.text(
        header: object.header, payload: object.payload, signature: Array(object.signatureText)),
      good)
  }

  @Test("only three parts that begin as base64 of a JSON object look like a signed object")
  func looks() {
    let cases: [(String, Bool)] = [
      (String(decoding: good, as: UTF8.self), true), ("ey.a.b", true), ("eyJ.-_.", true),
      ("ey.a", false), ("ey.a.b.c", false), ("ey.a=.b", false), ("MII.a.b", false), ("ey", false),
      ("", false), ("ey.a.b\n", false), ("ey+.a.b", false),
    ]
    for (text, expected) in cases {
      expectEqual(
        Array(text.utf8).withUnsafeBytes { SignedObject.looksLike($0) }, expected, "\(text)")
    }
  }

  // MARK: Malformed

  @Test("a text of another form is malformed, with a reason")
  func malformed() throws {
    let parts = SignedSample.parts(good)
    let (header, payload, signature) = (parts[0], parts[1], parts[2])
    let raw = try SignedObject(good).signature
    func encoded(_ text: String) -> [UInt8] { Base64.encode(Array(text.utf8), .url) }
    func with(header: String) -> [UInt8] {
      SignedSample.joined([encoded(header), payload, signature])
    }
    func with(payload: [UInt8]) -> [UInt8] {
      SignedSample.joined([header, Base64.encode(payload, .url), signature])
    }
    func with(signature bytes: [UInt8]) -> [UInt8] {
      SignedSample.joined([header, payload, Base64.encode(bytes, .url)])
    }
    let x5c = authority.chain.map { "\"\(Base64.text($0))\"" }.joined(separator: ",")
    let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
    let order = SignedObjectForm.order
    let cases: [(String, [UInt8], SignedObjectFault)] = [
      ("empty", [], .notThreeParts),
      ("two parts", SignedSample.joined([header, payload]), .notThreeParts),
      ("four parts", good + [0x2E], .notThreeParts),
      ("padding", good + Array("==".utf8), .notBase64URL),
      (
        "standard alphabet", SignedSample.joined([header + [0x2B], payload, signature]),
        .notBase64URL
      ),
      ("a line's end", good + [0x0A], .notBase64URL),
      (
        "unused bits set", SignedSample.joined([header, payload, signature.dropLast() + [0x5F]]),
        .notBase64URL
      ),
      ("1 MiB", [UInt8](repeating: 0x41, count: 1 << 20), .tooLarge),
      ("header no JSON", with(header: "{"), .headerNotJSON),
      ("header a list", with(header: "[]"), .headerNotJSON),
      ("header with a key twice", with(header: #"{"alg":"ES256","alg":"none"}"#), .headerNotJSON),
      ("header 10,000 deep", with(header: #"{"a":\#(deep)}"#), .headerNotJSON),
      ("no algorithm", with(header: #"{"x5c":[\#(x5c)]}"#), .wrongAlgorithm),
      (
        "algorithm none and no signature",
        SignedSample.joined([encoded(#"{"alg":"none"}"#), payload, []]), .wrongAlgorithm
      ),
      ("algorithm null", with(header: #"{"alg":null,"x5c":[\#(x5c)]}"#), .wrongAlgorithm),
      (
        "an extension", with(header: #"{"alg":"ES256","crit":["b64"],"b64":false}"#),
        .criticalHeader
      ),
      ("no x5c", with(header: #"{"alg":"ES256"}"#), .missingCertificates),
      ("x5c of none", with(header: #"{"alg":"ES256","x5c":[]}"#), .missingCertificates),
      ("x5c a text", with(header: #"{"alg":"ES256","x5c":"MII"}"#), .missingCertificates),
      ("x5c of numbers", with(header: #"{"alg":"ES256","x5c":[1,2,3]}"#), .malformedCertificate),
      ("x5c in base64url", with(header: #"{"alg":"ES256","x5c":["MII_"]}"#), .malformedCertificate),
      (
        "x5c of empty texts", with(header: #"{"alg":"ES256","x5c":["","",""]}"#),
        .malformedCertificate
      ),
      ("payload no JSON", with(payload: Array("hello".utf8)), .payloadNotJSON),
      ("payload empty", with(payload: []), .payloadNotJSON),
      ("payload a list", with(payload: Array("[]".utf8)), .payloadNotJSON),
      (
        "payload with a key twice", with(payload: Array(#"{"a":1,"\u0061":2}"#.utf8)),
        .payloadNotJSON
      ),
      ("payload 10,000 deep", with(payload: Array(#"{"a":\#(deep)}"#.utf8)), .payloadNotJSON),
      (
        "payload not UTF-8", with(payload: [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D]),
        .payloadNotJSON
      ),
      ("signature of 63 bytes", with(signature: Array(raw.dropLast())), .malformedSignature),
      ("signature of 65 bytes", with(signature: raw + [0]), .malformedSignature),
      ("no signature", with(signature: []), .malformedSignature),
      (
        "R of 0", with(signature: [UInt8](repeating: 0, count: 32) + raw[32...]),
        .malformedSignature
      ),
      (
        "S of 0", with(signature: raw[..<32] + [UInt8](repeating: 0, count: 32)),
        .malformedSignature
      ),
      ("R of n", with(signature: order + raw[32...]), .malformedSignature),
      ("S of n", with(signature: raw[..<32] + order), .malformedSignature),
    ]
    for (situation, text, fault) in cases {
      expectEqual(verdict(text), .invalid(fault), "\(situation)")
      expectEqual(fault.kind, .malformed, "\(situation)")
    }
  }

  @Test(
    "any other algorithm is refused, whatever the signature",
    arguments: ["none", "None", "HS256", "RS256", "ES384", "es256", "ES256K", ""])
  func algorithms(name: String) throws {
    try expectEqual(verdict(sign { $0.algorithm = name }), .invalid(.wrongAlgorithm))
  }

  @Test("a DER signature is not a signature of ES256")
  func derSignature() throws {
    try expectEqual(verdict(sign { $0.signature = .der }), .invalid(.malformedSignature))
  }

  @Test("a list of certificates of another length is refused")
  func certificateCount() throws {
    let chain = authority.chain
    let cases: [([[UInt8]], SignedObjectFault)] = [
      ([], .missingCertificates), ([chain[0]], .unexpectedCertificates),
      (Array(chain.prefix(2)), .unexpectedCertificates),
      (chain + [chain[2]], .unexpectedCertificates),
    ]
    for (certificates, fault) in cases {
      try expectEqual(
        verdict(sign { $0.certificates = certificates }), .invalid(fault),
        "\(certificates.count)")
    }
  }

  @Test(
    "a payload without a readable date, or of an unknown environment, is refused for that")
  func missingFacts() throws {
    let cases: [(String, SignedObjectFault)] = [
      ("{}", .missingSignedDate),
      (#"{"environment":"Sandbox"}"#, .missingSignedDate),
      (#"{"environment":"Sandbox","signedDate":null}"#, .missingSignedDate),
      (#"{"environment":"Sandbox","signedDate":1767323045678.5}"#, .unreadableSignedDate),
      (#"{"environment":"Sandbox","signedDate":1e12}"#, .unreadableSignedDate),
      (#"{"environment":"Sandbox","signedDate":99999999999999999999}"#, .unreadableSignedDate),
      (#"{"environment":"sandbox","signedDate":1767323045678}"#, .unknownEnvironment),
      (#"{"environment":7,"signedDate":1767323045678}"#, .unknownEnvironment),
    ]
    for (payload, fault) in cases {
      let text = try authority.sign(payload: Array(payload.utf8))
      expectEqual(verdict(text), .invalid(fault), "\(payload)")
    }
  }

  // MARK: Forged

  @Test("certificates in another order or of two authorities are refused")
  func swapped() throws {
    let chain = authority.chain
    let stranger = try SignedObjectAuthority.stranger.get().chain
    let cases: [(String, [[UInt8]], SignedObjectFault)] = [
      ("root first", [chain[2], chain[1], chain[0]], .untrustedRoot),
      ("intermediate first", [chain[1], chain[0], chain[2]], .wrongKey),
      ("the leaf twice", [chain[0], chain[0], chain[2]], .brokenChain),
      ("the root twice", [chain[0], chain[2], chain[2]], .brokenChain),
      ("a stranger's leaf", [stranger[0], chain[1], chain[2]], .brokenChain),
      ("a stranger's intermediate", [chain[0], stranger[1], chain[2]], .brokenChain),
      ("a stranger's leaf and intermediate", [stranger[0], stranger[1], chain[2]], .brokenChain),
      ("a stranger's root", [chain[0], chain[1], stranger[2]], .untrustedRoot),
      ("a certificate cut", [chain[0], chain[1].dropLast(), chain[2]], .malformedCertificate),
      ("a byte too many", [chain[0] + [0], chain[1], chain[2]], .malformedCertificate),
    ]
    for (situation, certificates, fault) in cases {
      try expectEqual(
        verdict(sign { $0.certificates = certificates }), .invalid(fault), "\(situation)")
    }
  }

  @Test("a stranger with the same names is not trusted, and cannot borrow the chain")
  func stranger() throws {
    let stranger = try SignedObjectAuthority.stranger.get()
    let own = try stranger.sign(payload: SignedSample.transaction())
    expectEqual(verdict(own), .invalid(.untrustedRoot))
    var form = SignedObjectForm()
    form.certificates = authority.chain
    let borrowed = try stranger.sign(payload: SignedSample.transaction(), form)
    expectEqual(verdict(borrowed), .invalid(.wrongSignature))
  }

  @Test("a chain that lacks properties of Apple's chains is refused although its root is trusted")
  func flawedChains() throws {
    typealias Edit = (inout SignedObjectAuthority.Plan) -> Void
    let cases: [(String, SignedObjectFault, Edit)] = [
      ("leaf without OID", .wrongPurpose, { $0.leaf.purposes = [] }),
      ("intermediate without OID", .wrongPurpose, { $0.intermediate.purposes = [] }),
      (
        "leaf with another OID", .wrongPurpose,
        { $0.leaf.purposes = [CertificatePlan.purchaseSigning] }
      ),
      (
        "OIDs in each other's place", .wrongPurpose,
        { swap(&$0.leaf.purposes, &$0.intermediate.purposes) }
      ),
      ("leaf an authority", .wrongPurpose, { $0.leaf.isAuthority = true }),
      ("intermediate no authority", .brokenChain, { $0.intermediate.isAuthority = false }),
      ("root no authority", .brokenChain, { $0.root.isAuthority = false }),
      ("root for leaves alone", .brokenChain, { $0.root.pathLength = 0 }),
      ("leaf on P-384", .wrongKey, { $0.leafCurve = .p384 }),
      ("intermediate on P-521", .wrongKey, { $0.intermediateCurve = .p521 }),
      ("root on P-521", .wrongKey, { $0.rootCurve = .p521 }),
    ]
    for (situation, fault, edit) in cases {
      var plan = SignedObjectAuthority.Plan()
      edit(&plan)
      let flawed = try SignedObjectAuthority(plan)
      // A leaf on another curve cannot make a signature of ES256.
      var form = SignedObjectForm()
      if plan.leafCurve != .p256 { form.signature = .given([UInt8](repeating: 1, count: 64)) }
      let text = try flawed.sign(payload: SignedSample.transaction(), form)
      expectEqual(SignedSample.verdict(text, flawed.verifier), .invalid(fault), "\(situation)")
    }
  }

  @Test("a root whose own signature is damaged is refused although it is trusted")
  func damagedRoot() throws {
    let chain = authority.chain
    var root = chain[2]
    root[root.count - 1] ^= 1
    let verifier = SignedObjectVerifier(
      pinnedRoots: [root.withUnsafeBytes { SHA256.hash($0) }])
    let text = try sign { $0.certificates = [chain[0], chain[1], root] }
    expectEqual(SignedSample.verdict(text, verifier), .invalid(.brokenChain))
  }

  @Test("a configured root and its intermediate may be on P-256, as Apple's published test data is")
  func smallCurve() throws {
    var plan = SignedObjectAuthority.Plan()
    (plan.rootCurve, plan.intermediateCurve) = (.p256, .p256)
    let authority = try SignedObjectAuthority(plan)
    let text = try authority.sign(payload: SignedSample.transaction())
    expectEqual(
      SignedSample.verdict(text, authority.verifier), .valid(root: authority.root.fingerprint))
  }

  @Test("an untrusted root decides before any signature is computed")
  func rootFirst() throws {
    typealias Edit = (inout SignedObjectAuthority.Plan) -> Void
    let plans: [Edit] = [
      { _ in }, { $0.leaf.purposes = [] }, { $0.leafCurve = .p384 },
      { $0.intermediateCurve = .p521 }, { $0.intermediate.isAuthority = false },
      { $0.leaf.notAfter = "150101000000Z" },
    ]
    // Broken chains, and a signature that is not the leaf's: each could only be found by computing a signature.
    for edit in plans {
      var plan = SignedObjectAuthority.Plan()
      edit(&plan)
      let stranger = try SignedObjectAuthority(plan)
      var form = SignedObjectForm()
      form.signature = .given([UInt8](repeating: 1, count: 64))
      for chain in [stranger.chain, [authority.chain[0], stranger.chain[1], stranger.chain[2]]] {
        form.certificates = chain
        let text = try stranger.sign(payload: SignedSample.transaction(), form)
        expectEqual(verdict(text), .invalid(.untrustedRoot))
        #expect(SignedSample.verdict(text, stranger.verifier) != .invalid(.untrustedRoot))
      }
    }
  }

  @Test("an RSA chain does not sign objects")
  func rsa() throws {
    let receipts = try TestAuthority.shared.get()
    let verifier = SignedObjectVerifier(pinnedRoots: [receipts.root.fingerprint])
    let text = try sign { $0.certificates = receipts.chain }
    expectEqual(SignedSample.verdict(text, verifier), .invalid(.wrongKey))
  }

  @Test("Apple's root of signed objects is trusted by default, and signs no receipt")
  func appleRoots() throws {
    expectEqual(
      SHA256Digest.appleRootG3.hex,
      "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
    #expect(AppleTrust.certificates.contains(.appleRootG3))
    expectEqual(ReceiptVerifier.Configuration().pinnedRoots, [.appleRoot])
    expectEqual(SignedSample.verdict(good, SignedObjectVerifier()), .invalid(.untrustedRoot))
  }

  // MARK: Time

  @Test("certificates must be valid when the object was signed, whatever the time is now")
  func certificateTimes() throws {
    var plan = SignedObjectAuthority.Plan()
    plan.leaf.notBefore = "250101000000Z"
    plan.leaf.notAfter = "251231235959Z"
    let authority = try SignedObjectAuthority(plan)
    let valid = SignedObjectVerdict.valid(root: authority.root.fingerprint)
    let cases: [(Int64, SignedObjectVerdict)] = [
      (1_735_689_600_000, valid), (1_735_689_599_999, .invalid(.certificateNotYetValid)),
      (1_767_225_599_999, valid), (1_767_225_600_000, .invalid(.certificateExpired)),
      (-1, .invalid(.certificateNotYetValid)),
      (Timestamp.rangeMs.lowerBound, .invalid(.certificateNotYetValid)),
    ]
    for (signedDateMs, verdict) in cases {
      let text = try authority.sign(
        payload: SignedSample.transaction(signedDate: "\(signedDateMs)"))
      let year2035Ms: Int64 = 2_051_222_400_000
      expectEqual(
        SignedSample.verdict(text, authority.verifier, nowMs: year2035Ms), verdict,
        "\(signedDateMs)")
    }
  }

  @Test("an intermediate or a root that had expired is refused too")
  func expiredAuthorities() throws {
    for edit in [
      { $0.intermediate.notAfter = "251231235959Z" }, { $0.root.notAfter = "251231235959Z" },
    ] as [(inout SignedObjectAuthority.Plan) -> Void] {
      var plan = SignedObjectAuthority.Plan()
      edit(&plan)
      let authority = try SignedObjectAuthority(plan)
      let text = try authority.sign(payload: SignedSample.transaction())
      expectEqual(SignedSample.verdict(text, authority.verifier), .invalid(.certificateExpired))
    }
  }

  @Test("an object may be at most 60 seconds ahead of the clock")
  func ahead() {
    let valid = SignedObjectVerdict.valid(root: authority.root.fingerprint)
    let cases: [(Int64, SignedObjectVerdict)] = [
      (0, valid), (60_000, valid), (60_001, .invalid(.signedInFuture)),
    ]
    for (leadMs, verdict) in cases {
      let nowMs = SignedSample.signedDateMs - leadMs
      expectEqual(SignedSample.verdict(good, authority.verifier, nowMs: nowMs), verdict)
    }
  }

  @Test("a forged object out of time is forged")
  func forgedAndLate() throws {
    var form = SignedObjectForm()
    form.signature = .edited { [$0[0] ^ 1] + $0.dropFirst() }
    let text = try authority.sign(
      payload: SignedSample.transaction(signedDate: "4102444800000"), form)
    expectEqual(verdict(text), .invalid(.wrongSignature))
  }

  // MARK: Local testing

  @Test(
    "Xcode's and local objects count only under a configured certificate",
    arguments: ["Xcode", "LocalTesting"])
  func localTesting(environment: String) throws {
    let payload = SignedSample.transaction(environment: environment)
    let whole = try authority.sign(payload: payload)
    let alone = try sign(payload) { $0.certificates = [authority.chain[0]] }
    let signer = authority.leaf.fingerprint
    let naming = SignedObjectVerifier(
      pinnedRoots: [authority.root.fingerprint], localTestingSigners: [signer])
    let namingOther = SignedObjectVerifier(
      pinnedRoots: [authority.root.fingerprint],
      localTestingSigners: [authority.intermediate.fingerprint])
    for text in [whole, alone] {
      expectEqual(verdict(text), .invalid(.localTestingEnvironment))
      expectEqual(SignedSample.verdict(text, namingOther), .invalid(.localTestingEnvironment))
      expectEqual(SignedSample.verdict(text, naming), .locallyValid(signer: signer))
      var parts = SignedSample.parts(text)
      parts[1] =
        SignedSample.parts(
          try authority.sign(payload: payload.dropLast() + Array(",\"a\":1}".utf8)))[1]
      expectEqual(
        SignedSample.verdict(SignedSample.joined(parts), naming), .invalid(.wrongSignature))
    }
    // The configured certificate does not sign for the App Store.
    let claimed = try sign { $0.certificates = [authority.chain[0]] }
    expectEqual(SignedSample.verdict(claimed, naming), .invalid(.unexpectedCertificates))
  }

  @Test(
    "an object that names no environment is valid by its signature, and forged without a good one")
  func noEnvironment() throws {
    let payload = #"{"bundleId":"b","signedDate":\#(SignedSample.signedDateMs)}"#
    let text = try authority.sign(payload: Array(payload.utf8))
    expectEqual(verdict(text), .valid(root: authority.root.fingerprint))
    #expect(try !SignedObject(text).namesEnvironment)
    let stranger = try SignedObjectAuthority.stranger.get().sign(payload: Array(payload.utf8))
    expectEqual(verdict(stranger), .invalid(.untrustedRoot))
    var parts = SignedSample.parts(text)
    parts[1] = Base64.encode(Array(payload.replacing("b", with: "c").utf8), .url)
    expectEqual(verdict(SignedSample.joined(parts)), .invalid(.wrongSignature))
  }

  @Test(
    "an app transaction with an environment of its own is good, and may have a fraction in its date"
  )
  func appTransactionWithEnvironment() throws {
    let date = "\(SignedSample.signedDateMs).447"
    for rest in [#","environment":"Sandbox""#, #","environment":"Production""#, ""] {
      let payload =
        #"{"bundleId":"b","receiptType":"Sandbox","receiptCreationDate":\#(date)\#(rest)}"#
      let text = try authority.sign(payload: Array(payload.utf8))
      expectEqual(verdict(text), .valid(root: authority.root.fingerprint), "\(rest)")
    }
  }

  @Test("Xcode's date may have a fraction, no other may")
  func fraction() throws {
    let naming = SignedObjectVerifier(localTestingSigners: [authority.leaf.fingerprint])
    let xcode = try authority.sign(
      payload: SignedSample.transaction(environment: "Xcode", signedDate: "1767323045678.485"))
    try expectEqual(SignedObject(xcode).signedDateMs, SignedSample.signedDateMs)
    expectEqual(
      SignedSample.verdict(xcode, naming), .locallyValid(signer: authority.leaf.fingerprint))
  }

  // MARK: Stable codes

  @Test("each fault's code is stable")
  func words() {
    expectEqual(
      SignedObjectFault.allCases.map(\.rawValue),
      [
        "too_large", "not_three_parts", "not_base64url", "header_not_json", "payload_not_json",
        "wrong_algorithm", "critical_header", "missing_certificates", "unexpected_certificates",
        "malformed_certificate", "malformed_signature", "missing_signed_date",
        "unreadable_signed_date", "missing_environment", "missing_bundle_id",
        "missing_notification_uuid", "untrusted_root",
        "broken_chain", "wrong_purpose", "wrong_key", "wrong_signature", "certificate_expired",
        "certificate_not_yet_valid", "signed_in_future", "local_testing_environment",
        "unknown_environment",
      ])
  }
}
