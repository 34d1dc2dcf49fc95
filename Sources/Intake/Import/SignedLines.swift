// Decides about import lines with signed transactions or a notification: every signature is checked.
import AppStore
import Base
import JSON
import Ledger

/// Judges lines with signed objects, one after another.
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

  /// An operator's word stands for what an object does not say, never against what it says.
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

  /// - Parameter isKnown: whether the ledger or this import has a notification of this UUID already.
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

  // MARK: Both

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

  private enum AppAnswer {
    case found(App)
    case refused([FieldProblem])
  }

  /// The one app of all objects, or every reason why a line is refused. Nothing is taken of an object that is not
  /// valid, and objects of Xcode and of local tests have no place in a history.
  /// - Parameter earlier: problems that were found before.
  private func app(
    of objects: [CheckedSignedObject], _ earlier: [FieldProblem] = []
  ) -> AppAnswer {
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
