// The output of `verify` for a signed object: certificates, verdict, payload, and the objects inside it.
import AppStore
import Base

/// A signed object with its verdict, and the same for each object inside it.
struct SignedObjectFinding {
  private let object: SignedObject
  private let kind: SignedObjectKind
  private let verdict: SignedObjectVerdict
  /// As named by the object, otherwise by the notification that contains it.
  private var environment: String?
  private var bundleID: String?
  private var inner: [Inner] = []

  /// An object inside a notification; one that cannot be parsed has only a fault.
  private struct Inner {
    let member: String
    let finding: Result<SignedObjectFinding, SignedObjectFault>
  }

  /// - Parameter depth: how many levels of nested objects are allowed; Apple's notifications have at most one.
  init(
    _ object: SignedObject, _ verifier: SignedObjectVerifier, nowMs: Int64, depth: Int = 1,
    environment stated: String? = nil
  ) throws(JSONError) {
    self.object = object
    kind = object.kind
    var verdict = verifier.verify(object, nowMs: nowMs)
    if case .invalid = verdict {
    } else if let fault = object.missingFact {
      verdict = .invalid(fault)
    }
    self.verdict = verdict
    let keeper = TextKeeper()
    let members: [(String, [UInt8]?)]
    do {
      members = try object.payload.withUnsafeBytes { bytes in
        func bytesOf(_ text: JSONBytes?) -> [UInt8]? { text.map { [UInt8]($0) } }
        func stringOf(_ text: JSONBytes?) -> String? {
          text.map { String(decoding: $0, as: UTF8.self) }
        }
        if kind == .notification {
          let facts = try SignedNotification(payload: bytes, keeper)
          environment = stringOf(facts.environment)
          bundleID = stringOf(facts.bundleID)
          return [
            ("signedTransactionInfo", bytesOf(facts.signedTransactionInfo)),
            ("signedRenewalInfo", bytesOf(facts.signedRenewalInfo)),
            ("signedAppTransactionInfo", bytesOf(facts.signedAppTransactionInfo)),
          ]
        }
        let facts = try SignedTransaction(payload: bytes, keeper)
        environment = stringOf(facts.environment)
        bundleID = stringOf(facts.bundleID)
        if kind == .appTransaction {
          environment = stringOf(try SignedAppTransaction(payload: bytes, keeper).environment)
        }
        return []
      }
    } catch { throw (error as? JSONError) ?? JSONError(.wrongKind, at: 0) }
    environment = environment ?? stated
    if depth == 0 { return }
    for case (let member, .some(let text)) in members {
      let finding: Result<SignedObjectFinding, SignedObjectFault>
      do throws(SignedObjectFault) {
        finding = .success(
          try Self.parsed(
            try SignedObject(text), verifier, nowMs, depth: depth - 1, environment: environment))
      } catch { finding = .failure(error) }
      inner.append(Inner(member: member, finding: finding))
    }
  }

  private static func parsed(
    _ object: SignedObject, _ verifier: SignedObjectVerifier, _ nowMs: Int64, depth: Int,
    environment: String?
  ) throws(SignedObjectFault) -> SignedObjectFinding {
    do throws(JSONError) {
      return try SignedObjectFinding(
        object, verifier, nowMs: nowMs, depth: depth, environment: environment)
    } catch { throw .payloadNotJSON }
  }

  /// Whether it and every object inside it have a trusted signature.
  var isGood: Bool {
    if case .invalid = verdict { return false }
    return inner.allSatisfy {
      if case .success(let finding) = $0.finding { finding.isGood } else { false }
    }
  }

  // MARK: Text

  func write(to sheet: inout TextSections) throws {
    try sheet.fields(fields)
    let certificates = object.certificateSummaries.map { Self.record($0) }
    try sheet.table(
      "Certificates", TextTable(["subject", "valid_from", "valid_until", "sha256"], certificates))
    try sheet.heading("Payload")
    for line in ReadableEvent.lines(of: object.payload) { try sheet.line(visible(line)) }
    for part in inner {
      try sheet.heading(part.member)
      switch part.finding {
      case .success(let finding): try finding.write(to: &sheet)
      case .failure(let fault): try sheet.fields([("signature", "bad: \(fault)")])
      }
    }
  }

  private var fields: Fields {
    var fields: Fields = [
      ("signed object", Self.title(kind)),
      ("environment", environment ?? "unknown: the object names none"),
    ]
    if let bundleID { fields.append(("bundle id", bundleID)) }
    fields.append(("signed", object.signedDateMs.map(instantText) ?? "not given"))
    fields.append(("algorithm", "ES256"))
    fields.append(("signature", verdict.explanation))
    switch verdict {
    case .valid(let root): fields.append(("root", root.hex))
    case .locallyValid(let signer): fields.append(("signer", signer.hex))
    case .invalid(.localTestingEnvironment):
      fields.append(
        ("", "trust.local_testing_signers_sha256 in config.json can name its certificate"))
    case .invalid: break
    }
    return fields
  }

  private static func title(_ kind: SignedObjectKind) -> String {
    switch kind {
    case .transaction: "transaction"
    case .renewalInfo: "renewal info"
    case .appTransaction: "app transaction"
    case .notification: "notification"
    case .unknown: "of an unknown kind"
    }
  }

  // MARK: JSON

  var record: Record {
    [
      "is_good": isGood, "kind": kind.rawValue, "environment": environment,
      "bundle_id": bundleID, "signed_at": object.signedDateMs.map(instantText),
      "signature": [
        "verdict": verdict.name, "fault": verdict.fault?.rawValue,
        "explanation": verdict.explanation, "root_sha256": verdict.root?.hex,
        "signer_sha256": verdict.signer?.hex,
      ] as Record,
      "algorithm": "ES256",
      "certificates": object.certificateSummaries.map { Self.record($0) },
      "header": Self.compact(object.header), "payload": Self.compact(object.payload),
      "objects": inner.map { part in
        ["member": part.member] + Self.record(part.finding)
      },
    ]
  }

  private static func record(
    _ finding: Result<SignedObjectFinding, SignedObjectFault>
  ) -> Record {
    switch finding {
    case .success(let finding): finding.record
    case .failure(let fault):
      [
        "is_good": false,
        "signature": [
          "verdict": "invalid", "fault": fault.rawValue, "explanation": "bad: \(fault)",
        ] as Record,
      ]
    }
  }

  private static func record(_ certificate: SignedObject.CertificateSummary) -> Record {
    [
      "subject": certificate.name,
      "valid_from": certificate.validityMs.map { timeText($0.lowerBound) },
      "valid_until": certificate.validityMs.map { timeText($0.upperBound) },
      "sha256": certificate.fingerprint.hex,
    ]
  }

  /// Without white space between tokens; the object was validated.
  private static func compact(_ json: [UInt8]) -> RawJSON {
    var compact: [UInt8] = []
    json.withUnsafeBytes { bytes in try? JSONValidator.compact(bytes, to: &compact) }
    return RawJSON(bytes: compact)
  }
}

extension SignedObjectVerdict {
  /// The verdict in JSON.
  fileprivate var name: String {
    switch self {
    case .valid: "valid"
    case .locallyValid: "locally_valid"
    case .invalid: "invalid"
    }
  }

  fileprivate var fault: SignedObjectFault? {
    if case .invalid(let fault) = self { fault } else { nil }
  }

  fileprivate var root: SHA256Digest? {
    if case .valid(let root) = self { root } else { nil }
  }

  fileprivate var signer: SHA256Digest? {
    if case .locallyValid(let signer) = self { signer } else { nil }
  }

  /// The verdict as text.
  fileprivate var explanation: String {
    switch self {
    case .valid: "good: signed under a trusted root, content unchanged"
    case .locallyValid: "good, but only a test: signed with a named testing certificate"
    case .invalid(let fault): "bad: \(fault)"
    }
  }
}
