// Verifies a notification's text: the signatures, the environment, the app.
import AppStore
import Base
import Intake
import Ledger
import Projections

/// Judges notifications by themselves, on one thread; it does not check whether a notification is already known.
struct NotificationVerification {
  /// A notification with good signatures, of a registered app.
  struct Good {
    let checked: CheckedNotification
    let appFamily: UUID16
    let isSandbox: Bool

    var bundleID: String { checked.outer.bundleID }
  }

  enum Verdict {
    case good(Good)
    case bad(NotificationResponse, NotificationResult)
  }

  /// The property of the request's body that holds the notification.
  static let field = "signedPayload"
  /// How soon clients retry what only an operator or time can change.
  private static let retryAfterSeconds = 600

  private let settings: WorkflowSettings
  private let projections: any WorkflowProjections
  private let clock: WorkflowClock
  private let notes: OperatorNotes

  init(_ shared: WorkflowShared) {
    settings = shared.settings
    projections = shared.projections
    clock = shared.clock
    notes = shared.notes
  }

  func judge(_ text: [UInt8]) -> Verdict {
    let object: SignedObject
    do throws(SignedObjectFault) { object = try SignedObject(text) } catch {
      return .bad(.refused([Self.shown(FieldProblem(.notification, error))]), .malformed)
    }
    let checked = CheckedNotification(object, settings.signedObjects, nowMs: clock.nowMs())
    if let refusal = refusal(of: checked) { return refusal }
    return judgeApp(of: checked)
  }

  /// Renames a problem's field: problems use the names of import lines.
  private static func shown(_ problem: FieldProblem) -> FieldProblem {
    let place = SignedObjectPlace.notification.description
    guard problem.field.hasPrefix(place) else { return problem }
    return FieldProblem(
      field + problem.field.dropFirst(place.count), problem.code, problem.message)
  }

  // MARK: Signatures

  /// The verdict on signatures and form; nil if they are good. A forgery outweighs everything else: nothing of a
  /// stranger's content is reported. A fault of time alone may be temporary.
  private func refusal(of checked: CheckedNotification) -> Verdict? {
    let faults = checked.objects.compactMap { object in
      // Objects of Xcode are not part of a ledger's history, whoever vouches for them.
      (object.isLocal ? SignedObjectFault.localTestingEnvironment : object.fault).map {
        (kind: $0.kind, problem: FieldProblem(object.place, $0))
      }
    }
    func problems(_ kind: SignedObjectFault.Kind) -> [FieldProblem] {
      faults.filter { $0.kind == kind }.map { Self.shown($0.problem) }
    }
    let forged = problems(.forged)
    if !forged.isEmpty {
      notes.forgedNotification(forged[0])
      return .bad(.forged(forged), .forged)
    }
    let malformed = problems(.malformed) + checked.problems.map(Self.shown)
    if !malformed.isEmpty { return .bad(.refused(malformed), .malformed) }
    let environment = problems(.environment)
    if !environment.isEmpty { return .bad(.refused(environment), .environment) }
    guard let time = problems(.time).first else { return nil }
    notes.notificationOutOfTime(time)
    return .bad(.retry(time, afterSeconds: Self.retryAfterSeconds), .outOfTime)
  }

  // MARK: App

  private func judgeApp(of checked: CheckedNotification) -> Verdict {
    let outer = checked.outer
    guard let family = projections.appFamily(ofBundle: outer.bundleID) else {
      notes.unregisteredNotification(bundleID: outer.bundleID)
      let problem = FieldProblem(
        Self.field, .bundleNotRegistered, "is about an app that is not registered")
      return .bad(.retry(problem, afterSeconds: Self.retryAfterSeconds), .unknownBundle)
    }
    let inner = [checked.transaction, checked.appTransaction].compactMap(\.self)
    for object in inner where projections.appFamily(ofBundle: object.bundleID) != family {
      let problem = FieldProblem(
        object.place.description, .bundleIDMismatch, "belongs to another app than the notification")
      return .bad(.refused([Self.shown(problem)]), .malformed)
    }
    let declared = projections.appFamily(family)?.appAppleID
    for object in [outer] + inner where !object.names(appAppleID: declared) {
      notes.wrongAppNotification(appFamily: family)
      let problem = FieldProblem(
        object.place.description, .wrongAppAppleID, "names another app than the one declared")
      return .bad(
        .retry(Self.shown(problem), afterSeconds: Self.retryAfterSeconds), .wrongApp)
    }
    let isSandbox = ([outer] + inner).contains {
      $0.environment == EnvironmentName.sandbox.description
    }
    if isSandbox, !settings.acceptsSandbox(appFamily: family.description) {
      let problem = FieldProblem(
        Self.field, .sandboxNotAccepted, "is of the Sandbox, which the app does not accept")
      return .bad(.refused([problem]), .environment)
    }
    return .good(Good(checked: checked, appFamily: family, isSandbox: isSandbox))
  }
}
