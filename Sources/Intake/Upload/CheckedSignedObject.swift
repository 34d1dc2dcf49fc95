// A signed object after the check of its signature, with the app and the environment that it names.
package import AppStore
import Base
package import JSON
package import Ledger

/// A signed object after its check.
package struct CheckedSignedObject: Sendable {
  package let place: SignedObjectPlace
  package let object: SignedObject
  package let verdict: SignedObjectVerdict
  /// As the payload says; empty if it names none.
  package let bundleID: String
  /// As the payload says, otherwise as what it came in says; empty if neither names one.
  package let environment: String
  /// `appAppleId`, which notifications and app transactions name.
  private let appAppleID: Int64?

  /// Checks the signature. One that is valid but lacks what its kind must say is refused too.
  /// - Parameters:
  ///   - nowMs: the time of the check, in epoch milliseconds.
  ///   - environment: that of the notification that holds it, of the call that fetched it, or as an import line states
  ///     it; nil where nothing but the payload can name one.
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

  /// Why it is refused; nil if it is valid.
  package var fault: SignedObjectFault? {
    if case .invalid(let fault) = verdict { fault } else { nil }
  }

  /// In how many seconds it will be good, if it was signed little ahead of this clock and nothing else is wrong with it.
  /// - Parameter nowMs: the time of the check, in epoch milliseconds.
  package func secondsUntilGood(nowMs: Int64) -> Int? {
    guard fault == .signedInFuture, let signedDateMs = object.signedDateMs,
      case let (leadMs, overflow) = signedDateMs.subtractingReportingOverflow(nowMs), !overflow,
      leadMs <= SignedObjectVerifier.clockDriftMs
    else { return nil }
    return Int((leadMs - SignedObjectVerifier.clockToleranceMs + 999) / 1000)
  }

  /// Whether it is of Xcode or a local test, signed by a named certificate: such a one counts nowhere.
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
  /// transactions of Production say so.
  /// - Parameter declared: nil if the family declares none.
  package func names(appAppleID declared: Int64?) -> Bool {
    switch place {
    case .transaction, .notifiedTransaction, .notifiedRenewal: return true
    case .notification, .appTransaction, .notifiedAppTransaction: break
    }
    guard let declared, environment == EnvironmentName.production.description else { return true }
    return appAppleID == declared
  }

  /// As an event stores it. Throws if header or payload is no JSON object, which `SignedObject` rules out.
  package func record() throws(JSONError) -> SignedObjectRecord {
    try SignedObjectRecord(
      header: object.header, payload: object.payload, signature: object.signature,
      verdict: recordedVerdict, signedAtMs: object.signedDateMs)
  }

  /// As a notification's event stores the verdict on an object inside.
  package var inner: NotificationReceived.Inner {
    NotificationReceived.Inner(verdict: recordedVerdict, signedAtMs: object.signedDateMs)
  }
}

/// What a payload says about its app.
private struct PayloadFacts {
  var bundleID = ""
  var environment = ""
  var appAppleID: Int64?
  /// What an object of its kind must say and this one does not.
  var missing: SignedObjectFault? = .payloadNotJSON

  init(
    _ payload: JSONBytes, _ place: SignedObjectPlace, _ keeper: TextKeeper, _ stated: String?
  ) {
    environment = stated ?? ""
    let hasEnvironment = stated != nil
    // What cannot be read says nothing.
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
