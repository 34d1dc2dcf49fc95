// Decides about import lines with a receipt.
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

  /// Why the recorded reply belongs to another receipt; nil if it fits or gives no sale.
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

/// What problems call the receipt and the reply of a line.
private struct LineNames {
  let receipt: String
  let reply: String

  init(_ line: ReceiptLine) {
    let isNotification = line.recorded?.notification != nil
    receipt = isNotification ? LegacyNotificationReader.receiptField : "receipt"
    reply = isNotification ? LegacyNotificationReader.replyField : "verification.reply"
  }

  /// Why a reply that is not about the receipt is refused; nil if it is accepted.
  /// - Parameter namesBundle: whether the reply, or the notification that brought it, names an app.
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
