// The possible results of a signature check, and the reasons.

/// The result of checking one receipt's signature.
package enum SignatureVerdict: Equatable, Sendable {
  /// Signed by the App Store, with certificates that were valid when the receipt was created.
  case valid
  /// Not the App Store's: altered or forged.
  case invalid(SignatureFault)
  /// Everything is correct except the dates of the certificates. This is not fraud: the App Store decides.
  case timeOnly(SignatureFault)
  /// A transaction receipt that cannot be judged here. Either its own signature is correct but its signer's
  /// intermediate is neither one of Apple's known ones nor configured, or this program does not know the
  /// version of its signature. The App Store decides.
  case undecided(SignatureFault)
}

/// Why a signature is not valid. The raw value is stable and may be stored.
package enum SignatureFault: String, Error, Equatable, Sendable, CustomStringConvertible {
  case localTestingEnvironment = "local_testing_environment"
  case malformedEnvelope = "malformed_envelope"
  case missingSignature = "missing_signature"
  case missingDate = "missing_date"
  case malformedCertificate = "malformed_certificate"
  case unexpectedCertificates = "unexpected_certificates"
  case untrustedRoot = "untrusted_root"
  case brokenChain = "broken_chain"
  case wrongPurpose = "wrong_purpose"
  case wrongSigner = "wrong_signer"
  case wrongSignature = "wrong_signature"
  case notYetValid = "certificate_not_yet_valid"
  case expired = "certificate_expired"
  case intermediateNotConfigured = "intermediate_not_configured"
  case unknownSignatureVersion = "unknown_signature_version"

  /// Whether it is in the chain up to what is trusted, not in what was signed.
  package var isOfTrust: Bool {
    switch self {
    case .untrustedRoot, .brokenChain, .wrongPurpose, .intermediateNotConfigured: true
    default: false
    }
  }

  package var description: String {
    switch self {
    case .localTestingEnvironment: "made by Xcode or a local test, not by the App Store"
    case .malformedEnvelope: "not in the App Store's receipt format"
    case .missingSignature: "has no signature"
    case .missingDate: "has no date for checking the certificates"
    case .malformedCertificate: "a certificate cannot be read"
    case .unexpectedCertificates:
      "the certificates are not signer, intermediate and root in this order"
    case .untrustedRoot: "the root certificate is not trusted"
    case .brokenChain: "the certificates do not form a chain from the signer to the trusted root"
    case .wrongPurpose: "the certificates are not intended for signing receipts"
    case .wrongSigner: "the signer's name does not match the certificate"
    case .wrongSignature: "the signature does not match the content"
    case .notYetValid: "a certificate was not yet valid when the receipt was made"
    case .expired: "a certificate had expired when the receipt was made"
    case .intermediateNotConfigured:
      "the signer's intermediate certificate is neither known nor configured"
    case .unknownSignatureVersion: "the version of its signature is unknown"
    }
  }
}
