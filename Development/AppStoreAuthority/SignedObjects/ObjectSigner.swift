// Signs objects by the thousand, well or with a fault.
private import Base

/// Signs payloads as the App Store does, or with a fault.
package final class ObjectSigner: Sendable {
  package let authority: SignedObjectAuthority
  /// The first part of each good object, with the point behind it.
  private let prefix: [UInt8]
  private let faulty = Monitor<[ObjectFault: SignedObjectAuthority]>([:])

  package init(authority: SignedObjectAuthority) {
    self.authority = authority
    prefix = Base64.encode(SignedObjectForm().writtenHeader(authority.chain), .url) + [0x2E]
  }

  /// Signs bytes, which need not be JSON.
  /// - Returns: the JWS in compact serialization.
  package func sign(_ payload: [UInt8]) throws(AuthorityError) -> [UInt8] {
    var text = prefix
    text.reserveCapacity(prefix.count + payload.count * 4 / 3 + 92)
    text += Base64.encode(payload, .url)
    let signature = try authority.leaf.key.signES256(text)
    text.append(0x2E)
    text += Base64.encode(signature, .url)
    return text
  }

  /// Signs bytes with a fault. Certificates with faults are made once for each signer.
  package func sign(_ payload: [UInt8], _ fault: ObjectFault?) throws(AuthorityError) -> [UInt8] {
    guard let fault else { return try sign(payload) }
    let signer = try faulty.withLock { faulty throws(AuthorityError) in
      if let made = faulty[fault] { return made }
      let made = try authority.certificates(for: fault)
      faulty[fault] = made
      return made ?? authority
    }
    return fault.bend(try signer.sign(payload: payload, fault.form(signer.chain)))
  }
}

/// What is wrong with a signed object; its payload is as asked for in any case.
package enum ObjectFault: String, CaseIterable, Sendable {
  // The text.
  case twoParts = "two_parts"
  case fourParts = "four_parts"
  case padded
  /// The last character of the signature sets bits that belong to no byte.
  case notCanonical = "not_canonical"
  case headerNotJSON = "header_not_json"
  // The header.
  case missingAlgorithm = "missing_algorithm"
  case algorithmNone = "algorithm_none"
  case algorithmHS256 = "algorithm_hs256"
  case algorithmRS256 = "algorithm_rs256"
  case algorithmES384 = "algorithm_es384"
  case missingCertificates = "missing_certificates"
  case noCertificates = "no_certificates"
  case twoCertificates = "two_certificates"
  case fourCertificates = "four_certificates"
  case swappedCertificates = "swapped_certificates"
  case malformedCertificate = "malformed_certificate"
  // The signature.
  case wrongSignature = "wrong_signature"
  case shortSignature = "short_signature"
  case derSignature = "der_signature"
  case zeroR = "zero_r"
  case zeroS = "zero_s"
  case orderR = "order_r"
  case orderS = "order_s"
  // The certificates.
  /// Other keys all along, the same names.
  case selfMadeRoot = "self_made_root"
  /// A leaf that the intermediate did not sign.
  case foreignLeaf = "foreign_leaf"
  case missingPurpose = "missing_purpose"
  case missingIntermediatePurpose = "missing_intermediate_purpose"
  case noAuthority = "no_authority"
  case leafOnP384 = "leaf_on_p384"
  /// An intermediate on P-521, which no verifier takes.
  case intermediateOnP521 = "intermediate_on_p521"
  case expiredLeaf = "expired_leaf"
  case notYetValidLeaf = "not_yet_valid_leaf"
  case expiredIntermediate = "expired_intermediate"
  /// One certificate that signed itself, as Xcode has it.
  case localTesting = "local_testing"
}

extension SignedObjectAuthority {
  /// The certificates of one fault, for those that lie in certificates; nil for all others.
  func certificates(for fault: ObjectFault) throws(AuthorityError) -> SignedObjectAuthority? {
    switch fault {
    case .selfMadeRoot: return try SignedObjectAuthority(Plan.realSize)
    case .foreignLeaf:
      let stranger = try SignedObjectAuthority(Plan.realSize)
      return SignedObjectAuthority(root: root, intermediate: intermediate, leaf: stranger.leaf)
    case .missingPurpose: return try withLeaf { $0.purposes = [] }
    case .expiredLeaf:
      return try withLeaf { ($0.notBefore, $0.notAfter) = ("140101000000Z", "150101000000Z") }
    case .notYetValidLeaf:
      return try withLeaf { ($0.notBefore, $0.notAfter) = ("330101000000Z", "341201000000Z") }
    case .leafOnP384: return try withLeaf(curve: .p384) { _ in }
    case .missingIntermediatePurpose: return try withIntermediate { $0.purposes = [] }
    case .noAuthority:
      return try withIntermediate { plan in
        plan.isAuthority = false
        plan.pathLength = nil
      }
    case .intermediateOnP521: return try withIntermediate(curve: .p521) { _ in }
    case .expiredIntermediate:
      return try withIntermediate {
        ($0.notBefore, $0.notAfter) = ("140101000000Z", "150101000000Z")
      }
    case .localTesting:
      var plan = Plan.realSize.leaf
      plan.name = "StoreKit Testing in Xcode"
      plan.purposes = []
      let signer = try plan.issue(SigningKey(curve: .p256), by: nil)
      return SignedObjectAuthority(root: root, intermediate: intermediate, leaf: signer)
    default: return nil
    }
  }

  private func withLeaf(
    curve: SigningCurve = .p256, _ change: (inout CertificatePlan) -> Void
  ) throws(AuthorityError) -> SignedObjectAuthority {
    var plan = Plan.realSize.leaf
    change(&plan)
    let leaf = try plan.issue(SigningKey(curve: curve), by: intermediate)
    return SignedObjectAuthority(root: root, intermediate: intermediate, leaf: leaf)
  }

  private func withIntermediate(
    curve: SigningCurve = .p384, _ change: (inout CertificatePlan) -> Void
  ) throws(AuthorityError) -> SignedObjectAuthority {
    let plan = Plan.realSize
    var changed = plan.intermediate
    change(&changed)
    let intermediate = try changed.issue(SigningKey(curve: curve), by: root)
    let leaf = try plan.leaf.issue(SigningKey(curve: plan.leafCurve), by: intermediate)
    return SignedObjectAuthority(root: root, intermediate: intermediate, leaf: leaf)
  }
}

extension ObjectFault {
  /// How an object with this fault is written, with the certificates of `chain`.
  func form(_ chain: [[UInt8]]) -> SignedObjectForm {
    var form = SignedObjectForm()
    switch self {
    case .missingAlgorithm: form.algorithm = nil
    case .algorithmNone: form.algorithm = "none"
    case .algorithmHS256: form.algorithm = "HS256"
    case .algorithmRS256: form.algorithm = "RS256"
    case .algorithmES384: form.algorithm = "ES384"
    case .headerNotJSON: form.header = Array("no header".utf8)
    case .missingCertificates: form.header = Array(#"{"alg":"ES256"}"#.utf8)
    case .noCertificates: form.certificates = []
    case .twoCertificates: form.certificates = Array(chain.prefix(2))
    case .fourCertificates: form.certificates = chain + chain.suffix(1)
    case .swappedCertificates: form.certificates = [chain[1], chain[0], chain[2]]
    case .malformedCertificate: form.certificates = [Array(chain[0].dropLast())] + chain.dropFirst()
    case .localTesting: form.certificates = Array(chain.prefix(1))
    case .derSignature: form.signature = .der
    case .leafOnP384: form.signature = .given(Array(repeating: 0x21, count: 64))
    case .wrongSignature: form.signature = .edited { $0.dropLast() + [$0[63] ^ 1] }
    case .shortSignature: form.signature = .edited { Array($0.dropLast()) }
    case .zeroR: form.signature = .edited { Array(repeating: 0, count: 32) + $0[32...] }
    case .zeroS: form.signature = .edited { $0[..<32] + Array(repeating: 0, count: 32) }
    case .orderR: form.signature = .edited { SignedObjectForm.order + $0[32...] }
    case .orderS: form.signature = .edited { $0[..<32] + SignedObjectForm.order }
    default: break
    }
    return form
  }

  /// Bends the text of a signed object, for the faults that lie in it.
  func bend(_ text: [UInt8]) -> [UInt8] {
    switch self {
    case .twoParts: return Array(text[..<(text.lastIndex(of: 0x2E) ?? text.endIndex)])
    case .fourParts: return text + Array(".AAAA".utf8)
    case .padded: return text + Array("==".utf8)
    case .notCanonical:
      // 64 bytes end in a character of which two bits count: A, Q, g or w.
      return text.dropLast() + [(text.last ?? 0) + 1]
    default: return text
    }
  }
}
