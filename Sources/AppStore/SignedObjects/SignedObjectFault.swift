// The possible results of checking a signed object, and the reasons.
package import Base

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

  /// What a fault says about the sender.
  package enum Kind: Sendable {
    /// It does not have the form of the App Store's objects, which says nothing about who made it.
    case malformed
    /// Of the right form, and not signed by the App Store: altered or made up.
    case forged
    /// Everything is right but the dates.
    case time
    /// Made by another store than production and the sandbox.
    case environment
  }

  /// Whether an object that was refused for this can be good later: with a right clock, or once its root is trusted.
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

  /// A clause that continues a place's name, with the fault's sentence and its word.
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
