// What a signature check can say, and why.

/// The outcome of checking one receipt's signature.
package enum SignatureVerdict: Equatable, Sendable {
  /// Signed by the App Store, with certificates that were valid when the receipt was made.
  case valid
  /// Not the App Store's: altered or forged.
  case invalid(SignatureFault)
  /// Everything holds but the dates of the certificates. Not fraud: the App Store decides.
  case timeOnly(SignatureFault)
  /// A transaction receipt that can't be judged here: its own signature holds, and its signer's
  /// intermediate is neither Apple's known ones nor configured; or its signature is of a version that
  /// this program doesn't know. The App Store decides.
  case undecided(SignatureFault)
}

/// Why a signature was not found valid. The raw value is stable and may be stored.
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
