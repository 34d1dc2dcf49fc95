// Signed objects, and uploads of them, after the check of their signatures: app, environment, faults.
package import AppStore
package import Base
package import Ledger

/// A signed object after its check.
package struct CheckedSignedObject: Sendable {
  package let place: SignedObjectPlace
  package let object: SignedObject
  package let verdict: SignedObjectVerdict
  /// As named by the payload; empty if it names none.
  package let bundleID: String
  /// As named by the payload, otherwise by its container; empty if neither names one.
  package let environment: String
  /// `appAppleId`, in notifications and app transactions.
  private let appAppleID: Int64?

  /// Checks the signature. A validly signed object that lacks a fact that its kind must contain is also rejected.
  /// - Parameters:
  ///   - nowMs: the time of the check, in epoch milliseconds.
  ///   - environment: that of the notification that contains it, of the call that fetched it, or as an import line
  ///     states it; nil if only the payload can name one.
  package init(
    _ object: SignedObject, _ place: SignedObjectPlace, _ verifier: SignedObjectVerifier,
    _ keeper: TextKeeper, nowMs: Int64, environment: String? = nil
  ) {
    self.place = place
    self.object = object
    keeper.removeAll()
    let facts = object.payload.withUnsafeBytes { PayloadFacts($0, place, keeper, environment) }
    (bundleID, self.environment) = (facts.bundleID, facts.environment)
    appAppleID = facts.appAppleID
    let verdict = verifier.verify(object, nowMs: nowMs)
    if let missing = facts.missing, case .valid = verdict {
      self.verdict = .invalid(missing)
    } else if let missing = facts.missing, case .locallyValid = verdict {
      self.verdict = .invalid(missing)
    } else {
      self.verdict = verdict
    }
  }

  /// Why it is rejected; nil if it is valid.
  package var fault: SignedObjectFault? {
    if case .invalid(let fault) = verdict { fault } else { nil }
  }

  /// In how many seconds it will be good, if it was signed slightly ahead of this clock and nothing else is wrong with
  /// it.
  /// - Parameter nowMs: the time of the check, in epoch milliseconds.
  package func secondsUntilGood(nowMs: Int64) -> Int? {
    guard fault == .signedInFuture, let signedDateMs = object.signedDateMs,
      case let (leadMs, overflow) = signedDateMs.subtractingReportingOverflow(nowMs), !overflow,
      leadMs <= SignedObjectVerifier.clockDriftMs
    else { return nil }
    return Int((leadMs - SignedObjectVerifier.clockToleranceMs + 999) / 1000)
  }

  /// Whether it is of Xcode or a local test and signed by a configured certificate: such an object never counts.
  package var isLocal: Bool {
    if case .locallyValid = verdict { true } else { false }
  }

  private var recordedVerdict: SignedObjectRecord.Verdict {
    switch verdict {
    case .valid(let root): .valid(root: root)
    case .locallyValid(let signer): .locallyValid(signer: signer)
    case .invalid(let fault): .invalid(reason: fault.rawValue)
    }
  }

  /// Whether it is of the app with the App Store's number that its family declares. Only notifications and app
  /// transactions of Production contain that number.
  /// - Parameter declared: nil if the family declares none.
  package func names(appAppleID declared: Int64?) -> Bool {
    switch place {
    case .transaction, .notifiedTransaction, .notifiedRenewal: return true
    case .notification, .appTransaction, .notifiedAppTransaction: break
    }
    guard let declared, environment == EnvironmentName.production.description else { return true }
    return appAppleID == declared
  }

  /// The form in which an event stores it. Throws if header or payload is not a JSON object, which `SignedObject` rules
  /// out.
  package func record() throws(JSONError) -> SignedObjectRecord {
    try SignedObjectRecord(
      header: object.header, payload: object.payload, signature: object.signature,
      verdict: recordedVerdict, signedAtMs: object.signedDateMs)
  }

  /// The form in which a notification's event stores the verdict on an object inside.
  package var inner: NotificationReceived.Inner {
    NotificationReceived.Inner(verdict: recordedVerdict, signedAtMs: object.signedDateMs)
  }
}

/// The facts in a payload about its app.
private struct PayloadFacts {
  var bundleID = ""
  var environment = ""
  var appAppleID: Int64?
  /// The fact that an object of its kind must contain and this one lacks.
  var missing: SignedObjectFault? = .payloadNotJSON

  init(
    _ payload: JSONBytes, _ place: SignedObjectPlace, _ keeper: TextKeeper, _ stated: String?
  ) {
    environment = stated ?? ""
    let hasEnvironment = stated != nil
    // An unreadable payload contains no facts.
    switch place {
    case .transaction, .notifiedTransaction:
      guard let content = try? SignedTransaction(payload: payload, keeper) else { return }
      set(
        content.bundleID, content.environment,
        content.missingFact(hasEnvironment: hasEnvironment))
    case .notifiedRenewal:
      // It names no app, and has the environment of its notification.
      (bundleID, missing) = ("", nil)
    case .notification:
      guard let content = try? SignedNotification(payload: payload, keeper) else { return }
      appAppleID = content.appAppleID
      set(content.bundleID, content.environment, content.missingFact())
    case .appTransaction, .notifiedAppTransaction:
      guard let content = try? SignedAppTransaction(payload: payload, keeper) else { return }
      appAppleID = content.appAppleID
      set(
        content.bundleID, content.environment,
        content.missingFact(hasEnvironment: hasEnvironment))
    }
  }

  private mutating func set(
    _ bundleID: JSONBytes?, _ environment: JSONBytes?, _ missing: SignedObjectFault?
  ) {
    self.bundleID = bundleID.map { String(decoding: $0, as: UTF8.self) } ?? ""
    if let environment { self.environment = String(decoding: environment, as: UTF8.self) }
    self.missing = missing
  }
}

// MARK: - Places of signed objects

/// The place of a signed object in an upload or an import line, as problems name it.
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
  /// The problem of a Production object that names another app than its family declares.
  static func wrongAppAppleID(_ place: SignedObjectPlace) -> FieldProblem {
    FieldProblem(
      place.description, .wrongAppAppleID,
      "is refused: its appAppleId is not the one that the app declares (wrong_app_apple_id)")
  }

  /// Why a signed object is rejected, with the fault's sentence and its word.
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

// MARK: - Uploads of signed transactions

/// An upload of signed transactions after the check of its signatures, with what decides about it: app, environment,
/// times.
package struct CheckedSignedUpload: Sendable {
  /// The transactions in the order of the list.
  package let transactions: [CheckedSignedObject]
  package let appTransaction: CheckedSignedObject?

  /// The environment that an operator states for objects that name none; nil if each of them names one.
  package let statedEnvironment: String?

  /// Checks all signatures.
  /// - Parameter nowMs: the time of the check, in epoch milliseconds.
  package init(_ fields: SignedUploadFields, _ verifier: SignedObjectVerifier, nowMs: Int64) {
    let keeper = TextKeeper()
    let stated = fields.environment
    transactions = fields.transactions.enumerated().map { index, object in
      CheckedSignedObject(
        object, .transaction(index), verifier, keeper, nowMs: nowMs, environment: stated)
    }
    appTransaction = fields.appTransaction.map { object in
      CheckedSignedObject(
        object, .appTransaction, verifier, keeper, nowMs: nowMs, environment: stated)
    }
    let objects = fields.transactions + (fields.appTransaction.map { [$0] } ?? [])
    statedEnvironment = objects.allSatisfy(\.namesEnvironment) ? nil : stated
  }

  /// The transactions, then the app transaction.
  package var objects: [CheckedSignedObject] { transactions + (appTransaction.map { [$0] } ?? []) }

  /// The id of the upload in an app family: the same for the same list.
  package func id(in appFamily: UUID16) -> UUID16 {
    TransactionsReceived.uploadID(of: objects.map(\.object.text), in: appFamily)
  }

  /// The latest time at which one of the transactions was signed, in epoch milliseconds.
  package var newestSignedAtMs: Int64? { transactions.compactMap(\.object.signedDateMs).max() }
}
