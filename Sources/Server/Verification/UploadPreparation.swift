// From an upload as it came to the drafts of its events: decoding, the bundle id, the signature.
import AppStore
import Base
import Intake
import Ledger

/// An upload whose receipt was decoded and checked locally.
struct PreparedUpload {
  var receiptID: UUID16
  /// The upload and the local verification.
  var drafts: [EventDraft]
  /// Whether it ends here: a signature that is invalid, or another app's receipt.
  var isInvalid: Bool
}

/// Prepares uploads, on one thread.
struct UploadPreparation {
  enum Outcome {
    case prepared(PreparedUpload)
    case refused(FieldProblem)
  }

  private let settings: WorkflowSettings
  private let projections: any WorkflowProjections
  private let clock: WorkflowClock
  private let hasher = SHA256()

  init(
    _ settings: WorkflowSettings, _ projections: any WorkflowProjections, _ clock: WorkflowClock
  ) {
    self.settings = settings
    self.projections = projections
    self.clock = clock
  }

  func prepare(_ upload: ClientUpload) -> Outcome {
    let receipt: Receipt
    do throws(ReceiptError) {
      receipt = try ReceiptFile.decode(upload.fields.receiptFile)
    } catch {
      return .refused(FieldProblem("receipt", .receiptMalformed, "cannot be read: \(error)"))
    }
    guard receipt.bundleID.utf8.count <= EventLimits.bundleIDBytes else {
      return .refused(
        FieldProblem(
          "receipt", .receiptMalformed,
          "has a bundle id of more than \(EventLimits.bundleIDBytes) bytes"))
    }
    if Self.isOfSandbox(receipt),
      !settings.acceptsSandbox(appFamily: upload.appFamily.description)
    {
      return .refused(
        FieldProblem(
          "receipt", .sandboxNotAccepted, "is a Sandbox receipt, which the app does not accept"))
    }
    let local = check(receipt, upload)
    let sha256 = upload.fields.receiptFile.withUnsafeBytes { hasher.hash($0) }
    let identity = ReceiptIdentity(sha256: sha256, appFamily: upload.appFamily)
    let draft = UploadDrafts.upload(
      upload.fields,
      UploadDrafts.Context(
        identity: identity, appFamily: upload.appFamily, style: receipt.style,
        bundleID: receipt.bundleID, occurredAtMs: upload.receivedAtMs, origin: .http,
        peerAddress: upload.peerAddress))
    let verification = local.data(of: receipt, occurredAtMs: clock.nowMs())
    let drafts = [draft, UploadDrafts.verification(verification, ofDraftAt: 0)]
    if drafts.contains(where: { $0.data.count > EventLimits.dataBytes }) {
      return .refused(FieldProblem("", .tooLarge, "is too large for an event of 16 MiB"))
    }
    return .prepared(
      PreparedUpload(
        receiptID: identity.receiptID, drafts: drafts,
        isInvalid: local.outcome == .invalid))
  }

  /// Whether the receipt itself tells so: nothing is asked or stored before that is known.
  private static func isOfSandbox(_ receipt: Receipt) -> Bool {
    PendingEnvironment.environment(of: receipt) == EnvironmentName.sandbox.description
  }

  private func check(_ receipt: Receipt, _ upload: ClientUpload) -> LocalVerification {
    guard projections.appFamily(ofBundle: receipt.bundleID) == upload.appFamily else {
      return .bundleIDMismatch
    }
    return upload.fields.receiptFile.withUnsafeBytes { settings.checker.check($0, receipt) }
  }
}
