// Where a signed object stands in an upload or an import line, and how its faults are put into words.
package import AppStore

/// The place of a signed object, as reports name it.
package enum SignedObjectPlace: Equatable, Sendable, CustomStringConvertible {
  /// An entry of `signed_transactions`, from 0.
  case transaction(Int)
  case appTransaction
  case notification
  /// The transaction inside the notification's payload.
  case notifiedTransaction
  /// The renewal information inside the notification's payload.
  case notifiedRenewal
  /// The app transaction inside the notification's payload.
  case notifiedAppTransaction

  package var description: String {
    switch self {
    case .transaction(let index): "signed_transactions[\(index)]"
    case .appTransaction: "app_transaction"
    case .notification: "notification"
    case .notifiedTransaction: "notification.data.signedTransactionInfo"
    case .notifiedRenewal: "notification.data.signedRenewalInfo"
    case .notifiedAppTransaction: "notification.appData.signedAppTransactionInfo"
    }
  }
}

extension FieldProblem {
  /// An object of Production that names another app than its family declares.
  static func wrongAppAppleID(_ place: SignedObjectPlace) -> FieldProblem {
    FieldProblem(
      place.description, .wrongAppAppleID,
      "is refused: its appAppleId is not the one that the app declares (wrong_app_apple_id)")
  }

  /// Why a signed object is refused, with the fault's sentence and its word.
  package init(_ place: SignedObjectPlace, _ fault: SignedObjectFault) {
    let code: Code =
      switch fault.kind {
      case .malformed: .signedObjectMalformed
      case .forged: .signatureInvalid
      case .time: .signatureOutOfTime
      case .environment: .environmentNotAccepted
      }
    self.init(place.description, code, fault.refusal)
  }
}
