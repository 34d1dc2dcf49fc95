// From an upload of signed transactions as it came to the draft of its event: the signatures, the app, the environment.
import AppStore
import Base
import Intake
import JSON
import Ledger
import Projections

/// Prepares uploads of signed transactions, on one thread.
struct TransactionPreparation {
  enum Outcome {
    /// - Parameter id: the upload's.
    case prepared(EventDraft, id: UUID16)
    case refused([FieldProblem])
    /// Nothing is wrong but that some were signed ahead of this clock.
    case later([FieldProblem], afterSeconds: Int)
    /// A fraud for whose evidence the day has no room left.
    case overBound
  }

  private let shared: WorkflowShared

  init(_ shared: WorkflowShared) { self.shared = shared }

  /// Checks every signature. What is not of the App Store's form, or of another time or environment, is refused; what is
  /// forged, or another app's, is kept as evidence of a fraud.
  func prepare(_ upload: ClientTransactions) -> Outcome {
    let nowMs = shared.clock.nowMs()
    let checked = CheckedSignedUpload(upload.fields, shared.settings.signedObjects, nowMs: nowMs)
    let acceptsSandbox = shared.settings.acceptsSandbox(appFamily: upload.appFamily.description)
    let problems = checked.objects.compactMap { problem($0, acceptsSandbox: acceptsSandbox) }
    if !problems.isEmpty {
      let waits = checked.objects.compactMap { $0.secondsUntilGood(nowMs: nowMs) }
      guard waits.count == problems.count, let seconds = waits.max() else {
        return .refused(problems)
      }
      return .later(problems, afterSeconds: seconds)
    }
    let id = checked.id(in: upload.appFamily)
    let context = UploadDrafts.SignedContext(
      appFamily: upload.appFamily, uploadID: id, occurredAtMs: upload.receivedAtMs, origin: .http,
      peerAddress: upload.peerAddress, fraudReason: fraudReason(checked, upload.appFamily))
    let draft: EventDraft
    do throws(JSONError) {
      draft = try UploadDrafts.transactions(checked, upload.fields.client, context)
    } catch {
      return .refused([
        FieldProblem(
          "signed_transactions", .signedObjectMalformed,
          "cannot be stored: its JSON is bad: \(error)")
      ])
    }
    guard draft.data.count <= EventLimits.dataBytes else {
      return .refused([FieldProblem("", .tooLarge, "is too large for an event of 16 MiB")])
    }
    if context.fraudReason != nil {
      // An object among them may be genuine, so that none is reduced.
      let hasRoom = shared.hasRoomForForgery(draft.data.count, of: upload.appFamily)
      shared.recordForgery(
        hasRoom ? .whole : .refused, of: upload.appFamily, isOverBound: !hasRoom)
      if !hasRoom { return .overBound }
    }
    return .prepared(draft, id: id)
  }

  private func problem(
    _ object: CheckedSignedObject, acceptsSandbox: Bool
  ) -> FieldProblem? {
    if let fault = object.fault, fault.kind != .forged {
      return FieldProblem(object.place, fault)
    }
    if !acceptsSandbox, object.environment == EnvironmentName.sandbox.description {
      return FieldProblem(
        object.place.description, .sandboxNotAccepted,
        "is of the Sandbox, which the app does not accept")
    }
    guard object.bundleID.utf8.count <= EventLimits.bundleIDBytes else {
      return FieldProblem(
        object.place.description, .signedObjectMalformed,
        "has a bundle id of more than \(EventLimits.bundleIDBytes) bytes")
    }
    return nil
  }

  /// Why an upload is a fraud by itself; nil if it is none.
  private func fraudReason(
    _ upload: CheckedSignedUpload, _ appFamily: UUID16
  ) -> TransactionsReceived.FraudReason? {
    // What a forged one says about its app is worth nothing.
    if upload.objects.contains(where: { $0.fault != nil }) { return .signatureInvalid }
    let appAppleID = shared.projections.appFamily(appFamily)?.appAppleID
    let areOwn = upload.objects.allSatisfy {
      shared.projections.appFamily(ofBundle: $0.bundleID) == appFamily
        && $0.names(appAppleID: appAppleID)
    }
    return areOwn ? nil : .bundleIDMismatch
  }
}
