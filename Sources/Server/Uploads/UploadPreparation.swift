// Turns received uploads into the drafts of their events: decoding, the bundle id, the signatures.
import AppStore
package import Base
import Intake
import Ledger
import Projections

/// An upload whose receipt was decoded and checked locally.
struct PreparedUpload {
  var receiptID: UUID16
  /// The upload and the local verification.
  var drafts: [EventDraft]
  /// Whether it ends here: an invalid signature, or another app's receipt.
  var isInvalid: Bool
  /// The types of the products in the receipt, for the answer.
  var filedTypes: [String: ProductType]
}

/// Prepares uploads, on one thread.
struct UploadPreparation {
  enum Outcome {
    case prepared(PreparedUpload)
    case refused(FieldProblem)
    /// A fraud that other trust might clear, and for whose evidence the day's budget has no room.
    case overBound
  }

  private let shared: WorkflowShared
  private let hasher = SHA256()

  init(_ shared: WorkflowShared) { self.shared = shared }

  func prepare(_ upload: ClientUpload<UploadFields>) -> Outcome {
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
    let sha256 = upload.fields.receiptFile.withUnsafeBytes { hasher.hash($0) }
    let local = check(receipt, upload, sha256)
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
        isInvalid: local.outcome == .invalid, filedTypes: FoldedUpload.types(in: receipt)))
  }

  /// Whether the receipt itself names the Sandbox: nothing is asked or stored before that is known.
  private static func isOfSandbox(_ receipt: Receipt) -> Bool {
    PendingEnvironment.environment(of: receipt) == EnvironmentName.sandbox.description
  }

  /// How much of an upload is kept. A receipt whose signature contradicts its content is a fraud for ever, and may be
  /// reduced; what other trust, or another registration, may find good is kept whole or not accepted at all.
  private func evidence(
    of upload: ClientUpload<UploadFields>, _ receipt: Receipt, _ local: LocalVerification
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

  private func signature(of receipt: Receipt, _ upload: ClientUpload<UploadFields>)
    -> LocalVerification
  {
    upload.fields.receiptFile.withUnsafeBytes { shared.settings.checker.check($0, receipt) }
  }

  private func check(
    _ receipt: Receipt, _ upload: ClientUpload<UploadFields>, _ sha256: SHA256Digest
  ) -> LocalVerification {
    guard shared.projections.appFamily(ofBundle: receipt.bundleID) == upload.appFamily else {
      return .bundleIDMismatch
    }
    // Read before the checker: if trust changes in between, the verdict goes to files that are no longer looked at.
    let validFiles = shared.settings.validFiles
    if validFiles.contains(sha256) { return .valid }
    let found = signature(of: receipt, upload)
    if found == .valid { validFiles.add(sha256) }
    return found
  }
}

/// The SHA-256 of files that a checker has found valid: its verdict depends on nothing but the file and its trust. Each
/// digest has one place, where it may replace another.
package final class ValidFiles: Sendable {
  /// 8 MiB.
  private static let placeCount = 1 << 18
  /// Without any until the first is added. Zeros are no file's digest.
  private let digests = Monitor<[SHA256Digest]>([])

  package init() {}

  package func contains(_ digest: SHA256Digest) -> Bool {
    digests.withLock { !$0.isEmpty && $0[Self.place(digest)] == digest }
  }

  package func add(_ digest: SHA256Digest) {
    digests.withLock { digests in
      if digests.isEmpty {
        digests = Array(repeating: SHA256Digest(0, 0, 0, 0), count: Self.placeCount)
      }
      digests[Self.place(digest)] = digest
    }
  }

  private static func place(_ digest: SHA256Digest) -> Int {
    let start = digest.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    return Int(truncatingIfNeeded: start) & (placeCount - 1)
  }
}

// MARK: - Signed transactions

/// Prepares uploads of signed transactions, on one thread.
struct TransactionPreparation {
  enum Outcome {
    /// - Parameter id: the upload's.
    case prepared(EventDraft, id: UUID16)
    case refused([FieldProblem])
    /// Only the signing time is wrong: some were signed ahead of this clock.
    case later([FieldProblem], afterSeconds: Int)
    /// A fraud for whose evidence the day's budget has no room.
    case overBound
  }

  private let shared: WorkflowShared

  init(_ shared: WorkflowShared) { self.shared = shared }

  /// Checks every signature. Objects that do not have the App Store's form, or are of another time or environment, are
  /// rejected; objects that are forged, or another app's, are kept as evidence of a fraud.
  func prepare(_ upload: ClientUpload<SignedUploadFields>) -> Outcome {
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
      // An object among them may be genuine, so none is reduced.
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

  /// Why an upload is fraudulent by itself; nil if it is not.
  private func fraudReason(
    _ upload: CheckedSignedUpload, _ appFamily: UUID16
  ) -> TransactionsReceived.FraudReason? {
    // A forged object's claims about its app are worthless.
    if upload.objects.contains(where: { $0.fault != nil }) { return .signatureInvalid }
    let appAppleID = shared.projections.appFamily(appFamily)?.appAppleID
    let areOwn = upload.objects.allSatisfy {
      shared.projections.appFamily(ofBundle: $0.bundleID) == appFamily
        && $0.names(appAppleID: appAppleID)
    }
    return areOwn ? nil : .bundleIDMismatch
  }
}
