// The result of checking a receipt's signature locally, as recorded.
package import AppStore
package import Ledger

/// What the local check of a signature came to.
package struct LocalVerification: Equatable, Sendable {
  package let outcome: Outcome
  package let reason: String?

  package static let valid = LocalVerification(outcome: .valid, reason: nil)
  /// Forged or damaged.
  package static let signatureInvalid = LocalVerification(
    outcome: .invalid, reason: FieldProblem.Code.signatureInvalid.rawValue)

  /// The receipt of an app that the uploader's app family does not have.
  package static let bundleIDMismatch = LocalVerification(
    outcome: .invalid, reason: "bundle_id_mismatch")

  /// A chain that fails for time alone: no fraud, the App Store decides.
  package static func timeOnly(_ anomaly: String) -> LocalVerification {
    LocalVerification(outcome: .unreachable, reason: anomaly)
  }

  /// The data of the event, without the upload's position.
  /// - Parameters:
  ///   - receipt: nil where it can't be decoded.
  ///   - occurredAtMs: when the check was made, in epoch milliseconds.
  package func data(of receipt: Receipt?, occurredAtMs: Int64) -> [UInt8] {
    var event = ReceiptVerified(
      authority: .local, outcome: outcome, occurredAtMs: occurredAtMs)
    // Unsigned text may have any length, and the projections keep each name.
    event.environment = receipt.flatMap(PendingEnvironment.named).flatMap {
      $0.utf8.count <= EventLimits.environmentBytes ? $0 : nil
    }
    event.reason = reason
    return event.data(upload: nil, reply: .none)
  }
}

/// A checker of receipt signatures.
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
    case .invalid: .signatureInvalid
    case .timeOnly(let fault), .undecided(let fault): .timeOnly(fault.rawValue)
    }
  }
}
