// The facts of any signed payload that verification needs: its time and environment; and the verdicts.
package import Base

/// The environment and the time of a transaction, a renewal, an app transaction or a notification.
struct SignedObjectFacts: Sendable {
  /// The environment that a payload names; payloads signed before September 2022 name none.
  enum Environment: Sendable {
    case missing, production, sandbox, xcode, localTesting, unknown

    init(_ value: LenientValue) {
      guard case .string(let text) = value else {
        if case .missing = value { self = .missing } else { self = .unknown }
        return
      }
      if text.isEmpty {
        self = .missing
        return
      }
      let name = JSONString(raw: text, hasEscapes: false)
      if name == EnvironmentName.production {
        self = .production
      } else if name == EnvironmentName.sandbox {
        self = .sandbox
      } else if name == "Xcode" {
        self = .xcode
      } else {
        self = name == "LocalTesting" ? .localTesting : .unknown
      }
    }
  }

  private(set) var environment = Environment.missing
  /// Epoch milliseconds: `signedDate`, or an app transaction's `receiptCreationDate` if it has none.
  private(set) var signedDateMs: Int64?
  /// Whether there is a date, readable or not.
  private(set) var hasSignedDate = false

  /// Reads a validated object.
  init(_ payload: JSONBytes) throws(JSONError) {
    let keeper = TextKeeper()
    var signedDate = LenientValue.missing
    var creationDate = LenientValue.missing
    var receiptType: Environment?
    var cursor = JSONCursor(payload)
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "signedDate" {
        signedDate = try keeper.read(&cursor)
      } else if key == "environment" {
        environment = Environment(try keeper.read(&cursor))
      } else if key == "receiptType" {
        receiptType = Environment(try keeper.read(&cursor))
      } else if key == "receiptCreationDate" {
        creationDate = try keeper.read(&cursor)
      } else if key == "data" || key == "summary" || key == "appData" {
        try readNested(&cursor, keeper)
      } else if key == "externalPurchaseToken" {
        try readToken(&cursor, keeper)
      } else {
        try cursor.skipValue()
      }
    }
    if let receiptType {
      // An app transaction, which may also have an `environment`.
      environment = receiptType
      if case .missing = signedDate { signedDate = creationDate }
    }
    if case .missing = signedDate {} else { hasSignedDate = true }
    // Xcode writes fractions; so do some app transactions, whose dates no rule reads.
    let mayHaveFraction = environment == .xcode || receiptType != nil
    signedDateMs = mayHaveFraction ? signedDate.flooredInstantMs : signedDate.instantMs
  }

  /// The environment of a notification's subject.
  private mutating func readNested(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "environment" {
        environment = Environment(try keeper.read(&cursor))
      } else {
        try cursor.skipValue()
      }
    }
  }

  /// A token of an external purchase has no member for the environment; its id determines it.
  private mutating func readToken(
    _ cursor: inout JSONCursor, _ keeper: TextKeeper
  ) throws(JSONError) {
    guard try cursor.kind() == .object else { return try cursor.skipValue() }
    try cursor.beginObject()
    while let key = try cursor.nextKey() {
      if key == "externalPurchaseId" {
        guard case .string(let id) = try keeper.read(&cursor) else { continue }
        environment = Environment(.string(ExternalPurchase.environment(ofID: id)))
      } else {
        try cursor.skipValue()
      }
    }
  }
}

extension LenientValue {
  /// As `instantMs`; of a number with decimals, which Xcode writes, the whole milliseconds.
  package var flooredInstantMs: Int64? {
    guard case .number(let token) = self, let point = token.firstIndex(of: UInt8(ascii: ".")) else {
      return instantMs
    }
    let decimals = token[(point + 1)...]
    guard decimals.allSatisfy({ (0x30...0x39).contains($0) }),
      let whole = JSONNumber.integer(JSONBytes(rebasing: token[..<point])),
      Timestamp.rangeMs.contains(whole)
    else { return nil }
    let isBelow = token.first == UInt8(ascii: "-") && decimals.contains { $0 != 0x30 }
    let floor = isBelow ? whole - 1 : whole
    return Timestamp.rangeMs.contains(floor) ? floor : nil
  }
}

// MARK: - Verdicts

/// The result of checking one signed object.
package enum SignedObjectVerdict: Equatable, Sendable {
  /// Signed by the App Store, with certificates that were valid at its `signedDate`.
  /// - Parameter root: the SHA-256 fingerprint of the pinned root that its chain ends in.
  case valid(root: SHA256Digest)
  /// Made by Xcode or a local test, and signed with a testing certificate that the configuration names. It is
  /// evidence of a test, never of a sale.
  /// - Parameter signer: the certificate's SHA-256 fingerprint.
  case locallyValid(signer: SHA256Digest)
  case invalid(SignedObjectFault)
}

/// Why a signed object is not accepted. The raw value is stable and may be stored.
package enum SignedObjectFault: String, Error, Equatable, Sendable, CaseIterable,
  CustomStringConvertible
{
  case tooLarge = "too_large"
  case notThreeParts = "not_three_parts"
  case notBase64URL = "not_base64url"
  case headerNotJSON = "header_not_json"
  case payloadNotJSON = "payload_not_json"
  case wrongAlgorithm = "wrong_algorithm"
  case criticalHeader = "critical_header"
  case missingCertificates = "missing_certificates"
  case unexpectedCertificates = "unexpected_certificates"
  case malformedCertificate = "malformed_certificate"
  case malformedSignature = "malformed_signature"
  case missingSignedDate = "missing_signed_date"
  case unreadableSignedDate = "unreadable_signed_date"
  case missingEnvironment = "missing_environment"
  case missingBundleID = "missing_bundle_id"
  case missingNotificationUUID = "missing_notification_uuid"
  case untrustedRoot = "untrusted_root"
  case brokenChain = "broken_chain"
  case wrongPurpose = "wrong_purpose"
  case wrongKey = "wrong_key"
  case wrongSignature = "wrong_signature"
  case certificateExpired = "certificate_expired"
  case certificateNotYetValid = "certificate_not_yet_valid"
  case signedInFuture = "signed_in_future"
  case localTestingEnvironment = "local_testing_environment"
  case unknownEnvironment = "unknown_environment"

  /// What a fault implies about the sender.
  package enum Kind: Sendable {
    /// It does not have the form of the App Store's objects, which implies nothing about its origin.
    case malformed
    /// It has the right form, but the App Store did not sign it: altered or made up.
    case forged
    /// Everything is right except the dates.
    case time
    /// Made by a store other than production and the sandbox.
    case environment
  }

  /// Whether an object that was rejected for this can be good later: with a right clock, or once its root is trusted.
  package var isOfTimeOrTrust: Bool { kind == .time || self == .untrustedRoot }

  package var kind: Kind {
    switch self {
    case .tooLarge, .notThreeParts, .notBase64URL, .headerNotJSON, .payloadNotJSON,
      .wrongAlgorithm, .criticalHeader, .missingCertificates, .unexpectedCertificates,
      .malformedCertificate, .malformedSignature, .missingSignedDate,
      .unreadableSignedDate, .missingEnvironment, .missingBundleID, .missingNotificationUUID:
      .malformed
    case .untrustedRoot, .brokenChain, .wrongPurpose, .wrongKey, .wrongSignature: .forged
    case .certificateExpired, .certificateNotYetValid, .signedInFuture: .time
    case .localTestingEnvironment, .unknownEnvironment: .environment
    }
  }

  /// A clause that continues the name of a place, with the fault's sentence and its word.
  package var refusal: String { "is refused: \(self) (\(rawValue))" }

  package var description: String {
    switch self {
    case .tooLarge: "larger than \(SignedObject.maximumSizeBytes) bytes"
    case .notThreeParts: "not three parts with a dot between them"
    case .notBase64URL: "a part is not base64url without padding"
    case .headerNotJSON: "its header is not a JSON object that can be read safely"
    case .payloadNotJSON: "its payload is not a JSON object that can be read safely"
    case .wrongAlgorithm: "its algorithm is not ES256"
    case .criticalHeader: "its header demands an extension that is not known"
    case .missingCertificates: "its header has no certificates"
    case .unexpectedCertificates: "its certificates are not leaf, intermediate and root"
    case .malformedCertificate: "a certificate cannot be read"
    case .malformedSignature: "its signature is not 64 bytes with two numbers in range"
    case .missingSignedDate: "has no signedDate"
    case .unreadableSignedDate: "its signedDate is not a whole number of milliseconds"
    case .missingEnvironment: "names no environment"
    case .missingBundleID: "has no bundleId"
    case .missingNotificationUUID: "has no notificationUUID"
    case .untrustedRoot: "the root certificate is not trusted"
    case .brokenChain: "the certificates do not form a chain from the signer to the trusted root"
    case .wrongPurpose: "the certificates are not intended for signing the App Store's objects"
    case .wrongKey: "a certificate's key is on another curve than the App Store's"
    case .wrongSignature: "the signature does not match the content"
    case .certificateExpired: "a certificate had expired when it was signed"
    case .certificateNotYetValid: "a certificate was not yet valid when it was signed"
    case .signedInFuture: "its signedDate is in the future"
    case .localTestingEnvironment: "made by Xcode or a local test, not by the App Store"
    case .unknownEnvironment: "made for an environment that is not known"
    }
  }
}
