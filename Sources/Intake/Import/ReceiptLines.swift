// Judges import lines: those with a receipt, and those with signed transactions or a notification.
import AppStore
import Base
import Ledger

/// Judges lines with a receipt, one after another.
struct ReceiptLines {
  let families: ImportFamilies
  let verifier: any SignatureChecker
  let options: ImportOptions
  let hasher: SHA256

  /// - Parameter phase: the first of two passes checks no signature, because an invalid one does not make a line
  ///   invalid.
  func judge(
    _ line: ReceiptLine, _ context: LineContext, phase: ImportProgress.Phase
  ) -> LineVerdict {
    let names = LineNames(line)
    var subject = LineDrafts.Subject(line: line, receipt: nil)
    do throws(ReceiptError) {
      subject.receipt = try ReceiptFile.decode(line.fields.receiptFile)
    } catch {
      if line.recorded == nil {
        return .refused([FieldProblem(names.receipt, .receiptMalformed, "cannot be read: \(error)")]
        )
      }
    }
    let registered: UUID16?
    switch families.answer(subject.bundleID, malformed: .receiptMalformed) {
    case .refused(let code, let message):
      return .refused([FieldProblem(names.receipt, code, message)])
    case .family(let id): registered = id
    case .unregistered: registered = nil
    }
    let appFamily = registered ?? UUID16.random()
    subject.mismatch = mismatch(subject, ofFamily: registered)
    if let mismatch = subject.mismatch,
      let problem = names.problem(
        mismatch, namesBundle: line.recorded?.bundleID != nil,
        acceptsMismatch: options.acceptsMismatch)
    {
      return .refused([problem])
    }

    let local = phase == .checking ? .valid : checkSignature(subject)
    let draftsOfLine = LineDrafts(
      number: context.number, digest: context.digest, appFamily: appFamily, nowMs: context.nowMs,
      hasher: hasher)
    var drafts: [EventDraft] = []
    if local != nil, let trust = context.trust { drafts.append(trust.draft) }
    if registered == nil {
      drafts.append(ImportFamilies.registration(subject.bundleID, appFamily))
    }
    drafts += draftsOfLine.drafts(subject, local: local, firstIndex: drafts.count)
    var facts = ImportCensus.Facts(line.fields.client)
    facts.hasReply = line.recorded != nil
    facts.environment = line.recorded.map { $0.environment ?? $0.endpoint.environment }
    return LineContext.verdict(
      AcceptedLine(
        kind: line.recorded?.notification == nil ? .upload : .legacyNotification, drafts: drafts,
        warnings: Self.signatureWarnings(names, subject, local),
        newFamily: registered == nil ? (subject.bundleID, appFamily) : nil,
        isChecked: local != nil, facts: facts))
  }

  /// Why the recorded reply belongs to another receipt; nil if it fits or shows no sale.
  private func mismatch(
    _ subject: LineDrafts.Subject, ofFamily appFamily: UUID16?
  ) -> ReplyMismatch? {
    guard let recorded = subject.line.recorded, recorded.outcome == .valid else { return nil }
    return ReceiptSubject(subject.receipt).mismatch(of: recorded.reply) { bundle in
      let bundleID = String(decoding: bundle, as: UTF8.self)
      if bundleID == subject.bundleID { return true }
      guard let appFamily,
        case .family(let id) = families.answer(bundleID, malformed: .receiptMalformed)
      else { return false }
      return id == appFamily
    }
  }

  /// The result of the local check; nil if a recorded reply makes the check unnecessary.
  private func checkSignature(_ subject: LineDrafts.Subject) -> LocalVerification? {
    if subject.line.recorded != nil, !options.checksSignatures { return nil }
    // A receipt that cannot be decoded cannot be genuine.
    guard let receipt = subject.receipt else { return .signatureInvalid }
    return subject.line.fields.receiptFile.withUnsafeBytes { verifier.check($0, receipt) }
  }

  private static func signatureWarnings(
    _ names: LineNames, _ subject: LineDrafts.Subject, _ local: LocalVerification?
  ) -> [FieldProblem] {
    guard local?.outcome == .invalid else { return [] }
    let addition =
      subject.line.recorded == nil ? "" : "; its recorded reply was ignored"
    return [
      FieldProblem(
        names.receipt, .signatureInvalid,
        "has an invalid signature and was imported as evidence\(addition)")
    ]
  }
}

/// The names of a line's receipt and reply in problems.
private struct LineNames {
  let receipt: String
  let reply: String

  init(_ line: ReceiptLine) {
    let isNotification = line.recorded?.notification != nil
    receipt = isNotification ? LegacyNotificationReader.receiptField : "receipt"
    reply = isNotification ? LegacyNotificationReader.replyField : "verification.reply"
  }

  /// Why a reply that is not about the receipt is rejected; nil if it is accepted.
  /// - Parameter namesBundle: whether the reply, or the notification that delivered it, names an app.
  func problem(
    _ mismatch: ReplyMismatch, namesBundle: Bool, acceptsMismatch: Bool
  ) -> FieldProblem? {
    switch mismatch {
    case .bundle where namesBundle:
      FieldProblem(reply, .replyMismatch, "is not about the receipt's app")
    case .bundle:
      FieldProblem(
        reply, .replyMismatch, "names no bundle id and shows none of the receipt's transactions")
    case .transactions:
      acceptsMismatch
        ? nil
        : FieldProblem(
          reply, .replyMismatch,
          "shows none of the receipt's transactions (--accept-mismatch imports it anyway)")
    }
  }
}

// MARK: - Lines with signed objects

/// Judges lines with signed transactions or a notification, one after another: every signature is checked.
struct SignedLines {
  let families: ImportFamilies
  let verifier: SignedObjectVerifier
  let hasher: SHA256

  // MARK: Signed transactions

  func judge(
    _ fields: SignedUploadFields, occurredAtMs: Int64?, _ context: LineContext
  ) -> LineVerdict {
    let upload = CheckedSignedUpload(fields, verifier, nowMs: context.nowMs)
    let app: App
    switch self.app(of: upload.objects, Self.contradiction(fields.environment, upload)) {
    case .refused(let problems): return .refused(problems)
    case .found(let found): app = found
    }
    let occurredAtMs = occurredAtMs ?? upload.newestSignedAtMs ?? context.nowMs
    do throws(JSONError) {
      let draft = try UploadDrafts.transactions(
        upload, fields.client,
        UploadDrafts.SignedContext(
          appFamily: app.id, uploadID: upload.id(in: app.id), occurredAtMs: occurredAtMs,
          origin: context.origin))
      var facts = ImportCensus.Facts(fields.client)
      facts.environment = upload.transactions.first?.environment
      return verdict(.upload, draft, app, context, facts)
    } catch { return Self.unreadable("signed_transactions", error) }
  }

  /// An operator's statement completes what an object does not name; it never overrides the object.
  private static func contradiction(
    _ stated: String?, _ upload: CheckedSignedUpload
  ) -> [FieldProblem] {
    guard let stated,
      let object = upload.objects.first(where: {
        $0.object.namesEnvironment && $0.environment != stated
      })
    else { return [] }
    return [FieldProblem("environment", .invalidValue, "is not that of \(object.place)")]
  }

  // MARK: Notifications

  /// - Parameter isKnown: whether the ledger or this import already has a notification with this UUID.
  func judge(
    _ object: SignedObject, occurredAtMs: Int64?, _ context: LineContext,
    isKnown: (_ uuid: String, SHA256Digest) -> Bool
  ) -> LineVerdict {
    let checked = CheckedNotification(object, verifier, nowMs: context.nowMs)
    let app: App
    switch self.app(of: checked.objects, checked.problems) {
    case .refused(let problems): return .refused(problems)
    case .found(let found): app = found
    }
    let uuid = Array(checked.uuid.utf8).withUnsafeBytes { hasher.hash($0) }
    if isKnown(checked.uuid, uuid) { return .known }
    do throws(JSONError) {
      let draft = try checked.draft(
        appFamily: app.id,
        occurredAtMs: occurredAtMs ?? checked.outer.object.signedDateMs ?? context.nowMs,
        origin: context.origin)
      let facts = ImportCensus.Facts(environment: checked.outer.environment)
      return verdict(.notification(uuid: uuid), draft, app, context, facts)
    } catch { return Self.unreadable("notification", error) }
  }

  // MARK: Common checks

  private func verdict(
    _ kind: AcceptedLine.Kind, _ draft: EventDraft, _ app: App, _ context: LineContext,
    _ facts: ImportCensus.Facts
  ) -> LineVerdict {
    var drafts: [EventDraft] = []
    if let trust = context.trust { drafts.append(trust.draft) }
    if let bundleID = app.newBundleID {
      drafts.append(ImportFamilies.registration(bundleID, app.id))
    }
    drafts.append(draft)
    return LineContext.verdict(
      AcceptedLine(
        kind: kind, drafts: drafts, newFamily: app.newBundleID.map { ($0, app.id) },
        isChecked: true, facts: facts))
  }

  /// The app that a line belongs to.
  private struct App {
    var id: UUID16
    /// The bundle id to register for it; nil if it is registered.
    var newBundleID: String?
  }

  private enum AppResponse {
    case found(App)
    case refused([FieldProblem])
  }

  /// The one app of all objects, or every reason why a line is rejected. An invalid object contributes nothing, and
  /// objects of Xcode and of local tests do not belong in a history.
  /// - Parameter earlier: problems that were already found.
  private func app(
    of objects: [CheckedSignedObject], _ earlier: [FieldProblem] = []
  ) -> AppResponse {
    var problems = earlier
    var first: (place: SignedObjectPlace, app: App)?
    for object in objects {
      if let fault = object.isLocal ? .localTestingEnvironment : object.fault {
        problems.append(FieldProblem(object.place, fault))
        continue
      }
      // Renewal information names no app.
      if object.place == .notifiedRenewal { continue }
      let app: App
      switch families.answer(object.bundleID, malformed: .signedObjectMalformed) {
      case .refused(let code, let message):
        problems.append(FieldProblem(object.place.description, code, message))
        continue
      case .family(let id):
        app = App(id: id)
        if !object.names(appAppleID: families.appAppleID(of: id)) {
          problems.append(.wrongAppAppleID(object.place))
        }
      case .unregistered:
        let isFirst = first?.app.newBundleID == object.bundleID
        app = App(
          id: isFirst ? first?.app.id ?? .random() : .random(), newBundleID: object.bundleID)
      }
      if let first, first.app.id != app.id {
        problems.append(
          FieldProblem(
            object.place.description, .bundleIDMismatch,
            "belongs to another app than \(first.place)"))
      }
      first = first ?? (object.place, app)
    }
    guard problems.isEmpty, let first else { return .refused(problems) }
    return .found(first.app)
  }

  private static func unreadable(_ field: String, _ error: JSONError) -> LineVerdict {
    .refused([
      FieldProblem(field, .signedObjectMalformed, "cannot be stored: its JSON is bad: \(error)")
    ])
  }
}
