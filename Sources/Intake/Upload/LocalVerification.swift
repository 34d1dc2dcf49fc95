// The recorded result of a local check of a receipt's signature.
package import AppStore
package import Ledger

/// The result of a local signature check.
package struct LocalVerification: Equatable, Sendable {
  package let outcome: Outcome
  package let reason: String?
  /// Whether the fault is in whom is trusted here, not in the receipt: another configuration may find it good.
  package var isOfTrust = false

  package static let valid = LocalVerification(outcome: .valid, reason: nil)
  /// Forged or damaged.
  package static let signatureInvalid = LocalVerification(
    outcome: .invalid, reason: FieldProblem.Code.signatureInvalid.rawValue)

  /// Signed by an authority that is not trusted here.
  package static let signatureUntrusted = LocalVerification(
    outcome: .invalid, reason: signatureInvalid.reason, isOfTrust: true)

  /// The receipt's app is not in the uploader's app family.
  package static let bundleIDMismatch = LocalVerification(
    outcome: .invalid, reason: "bundle_id_mismatch")

  /// The chain fails only because of dates. This is not fraud: the App Store decides.
  package static func timeOnly(_ anomaly: String) -> LocalVerification {
    LocalVerification(outcome: .unreachable, reason: anomaly)
  }

  /// The data of the event, without the upload's position.
  /// - Parameters:
  ///   - receipt: nil if it cannot be decoded.
  ///   - occurredAtMs: the time of the check, in epoch milliseconds.
  package func data(of receipt: Receipt?, occurredAtMs: Int64) -> [UInt8] {
    var event = ReceiptVerified(
      authority: .local, outcome: outcome, occurredAtMs: occurredAtMs)
    // Unsigned text may have any length, and the projections keep every name.
    event.environment = receipt.flatMap(PendingEnvironment.named).flatMap {
      $0.utf8.count <= EventLimits.environmentBytes ? $0 : nil
    }
    event.reason = reason
    return event.data(upload: nil, reply: .none)
  }
}

/// Checks the signatures of receipts.
package protocol SignatureChecker {
  /// Checks the signature of a receipt file that was decoded as `receipt`.
  func check(_ receiptFile: UnsafeRawBufferPointer, _ receipt: Receipt) -> LocalVerification
}

extension ReceiptVerifier: SignatureChecker {
  package func check(
    _ receiptFile: UnsafeRawBufferPointer, _ receipt: Receipt
  ) -> LocalVerification {
    switch verify(receiptFile, receipt: receipt) {
    case .valid: .valid
    case .invalid(let fault): fault.isOfTrust ? .signatureUntrusted : .signatureInvalid
    case .timeOnly(let fault), .undecided(let fault): .timeOnly(fault.rawValue)
    }
  }
}
