// `sign-objects`: given payloads signed unchanged, with faults on request.
import AppStore
import AppStoreAuthority
import Base
import TestSupport
import Testing

@Suite("Signing objects")
struct SignObjectsTests {
  let directory: TemporaryDirectory

  init() throws { directory = try SharedAuthority.directory.get() }

  func sign(_ lines: String...) throws -> Outcome {
    try Outcome(
      of: "app-store-stand-in", ["sign-objects", "--authority", "authority"],
      in: directory.path, input: lines.joined(separator: "\n") + "\n")
  }

  func parts(_ object: Substring) -> [Substring] {
    object.split(separator: ".", omittingEmptySubsequences: false)
  }

  func decoded(_ part: Substring) throws -> [UInt8] {
    try Base64.decode(Array(part.utf8), .url)
  }

  func certificates(_ object: Substring) throws -> [[UInt8]] {
    let header = try JSONValue(decoded(parts(object)[0]))
    return try #require(header["x5c"]?.arrayValue).map {
      try Base64.decode(Array(try #require($0.stringValue).utf8))
    }
  }

  @Test(
    "the signed bytes are those of the line",
    arguments: [
      (#"{"payload":{"b": 1 ,"a":[ ]}}"#, #"{"b": 1 ,"a":[ ]}"#),
      (#" { "payload" : {"a":"\u0041\/"} , "fault" : "der_signature" }"#, #"{"a":"\u0041\/"}"#),
      (#"{"payload":{"a":1,"a":1.50e3}}"#, #"{"a":1,"a":1.50e3}"#), (#"{"payload":7}"#, "7"),
      (#"{"payload_text":"no\nJSON \u00e9"}"#, "no\nJSON é"), (#"{"payload_text":""}"#, ""),
    ])
  func exactBytes(line: String, payload: String) throws {
    let outcome = try sign(line)
    expectEqual(outcome.exitCode, 0, "\(outcome.diagnostics)")
    let object = try #require(outcome.output.split(separator: "\n").first)
    expectEqual(parts(object).count, 3)
    try expectEqual(decoded(parts(object)[1]), Array(payload.utf8))
  }

  @Test("each line gives an object under the directory's chain, in order")
  func inOrder() throws {
    let outcome = try sign(#"{"payload":1}"#, "", #"{"payload":2}"#, #"{"payload":3}"#)
    let objects = outcome.output.split(separator: "\n")
    try expectEqual(objects.map { try decoded(parts($0)[1]) }, [[0x31], [0x32], [0x33]])
    let authority = try AuthorityDirectory.loadSignedObjects(directory.path("authority"))
    for object in objects {
      try expectEqual(certificates(object), authority.chain)
      try expectEqual(decoded(parts(object)[2]).count, 64)
    }
    // Real ones have 1007, 778 and 583 bytes.
    for (der, size) in zip(authority.chain, [1_000, 780, 580]) {
      #expect(abs(der.count - size) < 25)
    }
  }

  @Test("every fault changes the object, but never its payload", arguments: ObjectFault.allCases)
  func faults(fault: ObjectFault) throws {
    let authority = try AuthorityDirectory.loadSignedObjects(directory.path("authority"))
    let signer = ObjectSigner(authority: authority)
    let good = Substring(String(decoding: try signer.sign([0x37]), as: UTF8.self))
    let bad = Substring(String(decoding: try signer.sign([0x37], fault), as: UTF8.self))
    try expectEqual(decoded(parts(bad)[1]), [0x37])
    if [.twoParts, .fourParts].contains(fault) {
      expectEqual(parts(bad).count, (fault == .twoParts ? 2 : 4))
      return
    }
    let isOtherHeader = parts(bad)[0] != parts(good)[0]
    let signature = try? decoded(parts(bad)[2])
    switch fault {
    case .padded, .notCanonical: #expect(!isOtherHeader && signature == nil)
    case .wrongSignature: #expect(!isOtherHeader && signature?.count == 64)
    case .shortSignature: #expect(!isOtherHeader && signature?.count == 63)
    case .derSignature: #expect(!isOtherHeader && signature?.first == 0x30)
    case .zeroR: #expect(signature?.prefix(32).allSatisfy { $0 == 0 } == true)
    case .zeroS: #expect(signature?.suffix(32).allSatisfy { $0 == 0 } == true)
    case .orderR: expectEqual(signature.map { Array($0.prefix(32)) }, SignedObjectForm.order)
    case .orderS: expectEqual(signature.map { Array($0.suffix(32)) }, SignedObjectForm.order)
    default: #expect(isOtherHeader && signature?.count == 64)
    }
  }

  /// The shipped verifier's verdict on each fault.
  static let verdicts: [ObjectFault: SignedObjectFault] = [
    .twoParts: .notThreeParts, .fourParts: .notThreeParts, .padded: .notBase64URL,
    .notCanonical: .notBase64URL, .headerNotJSON: .headerNotJSON,
    .missingAlgorithm: .wrongAlgorithm, .algorithmNone: .wrongAlgorithm,
    .algorithmHS256: .wrongAlgorithm, .algorithmRS256: .wrongAlgorithm,
    .algorithmES384: .wrongAlgorithm, .missingCertificates: .missingCertificates,
    .noCertificates: .missingCertificates, .twoCertificates: .unexpectedCertificates,
    .fourCertificates: .unexpectedCertificates, .swappedCertificates: .wrongKey,
    .malformedCertificate: .malformedCertificate, .wrongSignature: .wrongSignature,
    .shortSignature: .malformedSignature, .derSignature: .malformedSignature,
    .zeroR: .malformedSignature, .zeroS: .malformedSignature, .orderR: .malformedSignature,
    .orderS: .malformedSignature, .selfMadeRoot: .untrustedRoot, .foreignLeaf: .brokenChain,
    .missingPurpose: .wrongPurpose, .missingIntermediatePurpose: .wrongPurpose,
    .noAuthority: .brokenChain, .leafOnP384: .wrongKey, .intermediateOnP521: .wrongKey,
    .expiredLeaf: .certificateExpired, .notYetValidLeaf: .certificateNotYetValid,
    .expiredIntermediate: .certificateExpired, .localTesting: .unexpectedCertificates,
  ]

  @Test("the shipped verifier accepts objects without a fault, and names the faults")
  func verdicts() throws {
    let authority = try AuthorityDirectory.loadSignedObjects(directory.path("authority"))
    let signer = ObjectSigner(authority: authority)
    let verifier = SignedObjectVerifier(
      pinnedRoots: [authority.root.fingerprint], localTestingSigners: [])
    let nowMs: Int64 = 1_795_000_000_000
    let payload = Array(
      #"{"bundleId":"com.example.game","environment":"Production","signedDate":\#(nowMs)}"#.utf8)
    func verdict(_ fault: ObjectFault?) throws -> SignedObjectVerdict {
      do {
        return verifier.verify(try SignedObject(signer.sign(payload, fault)), nowMs: nowMs)
      } catch let fault as SignedObjectFault { return .invalid(fault) }
    }
    try expectEqual(verdict(nil), .valid(root: authority.root.fingerprint))
    for fault in ObjectFault.allCases {
      let expected = try #require(Self.verdicts[fault])
      try expectEqual(verdict(fault), .invalid(expected), "\(fault)")
    }
  }

  @Test(
    "a wrong line is named, and ends the program with 1",
    arguments: [
      (#"{"payload":1"#, "not an object with payload and fault"),
      ("7", "not an object with payload and fault"),
      ("{}", "payload is missing"), (#"{"payload":1,"x":2}"#, "unknown member 'x'"),
      (#"{"payload":1} 2"#, "not an object with payload and fault"),
    ])
  func wrongLines(line: String, cause: String) throws {
    let outcome = try sign(#"{"payload":1}"#, line)
    expectEqual(outcome.diagnostics, "app-store-stand-in: standard input, line 2: \(cause)\n")
    expectEqual(outcome.exitCode, 1)
  }

  @Test("an unknown fault is reported with all names")
  func wrongFault() throws {
    let outcome = try sign(#"{"payload":1,"fault":"odd"}"#)
    expectEqual(outcome.exitCode, 1)
    for fault in ObjectFault.allCases { #expect(outcome.diagnostics.contains(fault.rawValue)) }
  }
}
