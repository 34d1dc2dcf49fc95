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
    /// A fraud that may be none for another trust, and for whose evidence the day has no room left.
    case overBound
  }

  private let shared: WorkflowShared
  private let hasher = SHA256()

  init(_ shared: WorkflowShared) { self.shared = shared }

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
      !shared.settings.acceptsSandbox(appFamily: upload.appFamily.description)
    {
      return .refused(
        FieldProblem(
          "receipt", .sandboxNotAccepted, "is a Sandbox receipt, which the app does not accept"))
    }
    let local = check(receipt, upload)
    let sha256 = upload.fields.receiptFile.withUnsafeBytes { hasher.hash($0) }
    let evidence = evidence(of: upload, receipt, local)
    if evidence == .refused { return .overBound }
    let identity = ReceiptIdentity(sha256: sha256, appFamily: upload.appFamily)
    let draft = UploadDrafts.upload(
      upload.fields,
      UploadDrafts.Context(
        identity: identity, appFamily: upload.appFamily, style: receipt.style,
        bundleID: receipt.bundleID, occurredAtMs: upload.receivedAtMs, origin: .http,
        peerAddress: upload.peerAddress), reducing: evidence == .reduced ? receipt : nil)
    let verification = local.data(of: receipt, occurredAtMs: shared.clock.nowMs())
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

  /// How much of an upload is kept. A receipt whose signature contradicts its content is one for ever, and may be
  /// reduced; what another trust, or another registration, may find good is kept whole or not taken at all.
  private func evidence(
    of upload: ClientUpload, _ receipt: Receipt, _ local: LocalVerification
  ) -> Metrics.ForgeryKept {
    guard local.outcome == .invalid else { return .whole }
    func isAltered() -> Bool {
      let verdict = local == .bundleIDMismatch ? signature(of: receipt, upload) : local
      return verdict == .signatureInvalid
    }
    func kept(_ kept: Metrics.ForgeryKept, isOverBound: Bool = false) -> Metrics.ForgeryKept {
      shared.recordForgery(kept, of: upload.appFamily, isOverBound: isOverBound)
      return kept
    }
    let fields = upload.fields
    if fields.receiptFile.count >= ForgedReceipt.reducedFromBytes, isAltered() {
      return kept(.reduced)
    }
    let byteCount = fields.receiptText.count + (fields.client.metadata?.count ?? 0)
    if shared.hasRoomForForgery(byteCount, of: upload.appFamily) { return kept(.whole) }
    return kept(isAltered() ? .reduced : .refused, isOverBound: true)
  }

  private func signature(of receipt: Receipt, _ upload: ClientUpload) -> LocalVerification {
    upload.fields.receiptFile.withUnsafeBytes { shared.settings.checker.check($0, receipt) }
  }

  private func check(_ receipt: Receipt, _ upload: ClientUpload) -> LocalVerification {
    guard shared.projections.appFamily(ofBundle: receipt.bundleID) == upload.appFamily else {
      return .bundleIDMismatch
    }
    return signature(of: receipt, upload)
  }
}
