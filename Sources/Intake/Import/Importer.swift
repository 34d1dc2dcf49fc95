// Import: turns lines of recorded uploads into events.
import AppStore
import Base
package import Ledger

/// Options of an import.
package struct ImportOptions: Sendable {
  /// Registers an app family for a bundle id that has none.
  package var registersApps = false
  /// Appends nothing unless every line is valid.
  package var isStrict = false
  /// Also checks the signatures of receipts that come with a recorded reply.
  package var checksSignatures = false
  /// Accepts recorded replies that show other transactions than their receipt.
  package var acceptsMismatch = false

  package init() {}
}

/// One import of some inputs, on the calling thread. It ends early if the stop flag is set, an input cannot
/// be read further, or the ledger accepts no more events. Submitted events are made durable first.
package final class Importer<Appender: EventAppender> {
  private let inputs: [ImportInput]
  private let appender: Appender
  private let families: any AppFamilies
  private let known: any KnownLines
  private let verifier: any SignatureChecker
  private let options: ImportOptions
  /// To be recorded before the first signature is checked; nil once it is recorded.
  private var trust: TrustDeclared?
  private let stop: StopFlag
  private let nowMs: () -> Int64
  private let onProblem: (ImportProblem) -> Void
  private let onProgress: (ImportProgress) -> Void

  private let parser = ImportLineParser()
  private let hasher = SHA256()
  private var summary = ImportSummary()
  private var phase = ImportProgress.Phase.importing
  private var inputName = ""
  private var readBytes = 0
  private var ownLines = DigestSet()
  private var familyIDs: [String: UUID16] = [:]
  /// Uploads not yet known to be durable, oldest first.
  private var pending: [Pending] = []
  private var hasSubmitted = false
  /// The counts of what is known to be durable.
  private var durable = ImportSummary()

  private struct Pending {
    var ticket: Appender.Ticket
    var isNewFamily: Bool
  }

  /// The most uploads that may be pending. They are confirmed in groups of `confirmedAtOnce`.
  private static var pendingMax: Int { 2048 }
  private static var confirmedAtOnce: Int { 256 }

  /// Lines between two progress reports.
  private static var linesPerReport: Int { 64 }

  /// - Parameters:
  ///   - inputs: from `ImportInput.openAll`; with a spool directory if the import is strict.
  ///   - trust: whom `verifier` trusts, if the ledger has not recorded it yet. It is appended with the first
  ///     upload whose signature is checked.
  ///   - nowMs: the clock, in epoch milliseconds, for uploads without a time.
  ///   - onProblem: called for each refused line and each warning, in the order of the lines.
  package init(
    _ inputs: [ImportInput], into appender: Appender, families: any AppFamilies,
    known: any KnownLines, verifier: any SignatureChecker, options: ImportOptions,
    trust: TrustDeclared? = nil, stop: StopFlag, nowMs: @escaping () -> Int64 = Timestamp.now,
    onProblem: @escaping (ImportProblem) -> Void,
    onProgress: @escaping (ImportProgress) -> Void = { _ in }
  ) {
    self.inputs = inputs
    self.appender = appender
    self.families = families
    self.known = known
    self.verifier = verifier
    self.options = options
    self.trust = trust
    self.stop = stop
    self.nowMs = nowMs
    self.onProblem = onProblem
    self.onProgress = onProgress
  }

  /// Runs the import once, and waits until everything submitted is durable.
  package func run() -> ImportSummary {
    do throws(ImportFailure) {
      if options.isStrict {
        phase = .checking
        try runPass()
        if summary.refused > 0 || summary.isInterrupted {
          summary.isRefusedAsWhole = summary.refused > 0
          return summary
        }
        var checked = ImportSummary()
        checked.warnings = summary.warnings
        summary = checked
        phase = .importing
      }
      try runPass()
    } catch {
      note(error)
    }
    settle()
    return summary
  }

  private func note(_ failure: ImportFailure) {
    if case .input(let error) = failure, error.kind == .interrupted {
      summary.isInterrupted = true
    } else if summary.failure == nil {
      summary.failure = failure
    }
  }

  /// Makes the submitted events durable and gets their positions. The counts then cover exactly what is
  /// durable, whatever happened before.
  private func settle() {
    do throws(LedgerError) {
      // Check each one: if one was lost, later ones may still have been kept.
      while !pending.isEmpty {
        do throws(LedgerError) { try confirmOldest() } catch { note(.ledger(error)) }
      }
      if hasSubmitted, summary.failure == nil { try appender.flush() }
    } catch { note(.ledger(error)) }
    summary.uploads = durable.uploads
    summary.registered = durable.registered
    summary.positions = durable.positions
  }

  /// Counts the oldest pending uploads that are durable, and throws if one is lost.
  private func confirmOldest() throws(LedgerError) {
    let oldest = Array(pending.prefix(Self.confirmedAtOnce))
    pending.removeFirst(oldest.count)
    let outcome = appender.outcome(of: oldest.map(\.ticket))
    precondition(outcome.positions.count == oldest.count)
    for (upload, positions) in zip(oldest, outcome.positions) {
      guard let positions else { continue }
      durable.uploads += 1
      if upload.isNewFamily { durable.registered += 1 }
      let known = durable.positions
      durable.positions =
        min(
          known?.lowerBound ?? .max, positions.lowerBound)...max(
          known?.upperBound ?? 0, positions.upperBound - 1)
    }
    if let failure = outcome.failure { throw failure }
  }

  // MARK: One pass

  private func runPass() throws(ImportFailure) {
    readBytes = 0
    for input in inputs {
      inputName = input.name
      let reader: LineReader
      do throws(IntakeError) { reader = LineReader(try input.content()) } catch {
        throw .input(error)
      }
      while let line = try nextLine(reader) {
        if stop.isSet {
          summary.isInterrupted = true
          break
        }
        try take(line)
        if summary.lines % Self.linesPerReport == 0 { reportProgress(input) }
      }
      if summary.isInterrupted { break }
      readBytes += input.readBytes
    }
    reportProgress(nil)
  }

  private func nextLine(_ reader: LineReader) throws(ImportFailure) -> LineReader.Line? {
    do throws(IntakeError) { return try reader.next() } catch { throw .input(error) }
  }

  private func reportProgress(_ input: ImportInput?) {
    var totalBytes: Int? = 0
    for input in inputs {
      guard let sum = totalBytes, let size = input.sizeBytes else {
        totalBytes = nil
        break
      }
      totalBytes = sum + size
    }
    onProgress(
      ImportProgress(
        phase: phase, readBytes: readBytes + (input?.readBytes ?? 0), totalBytes: totalBytes,
        lines: summary.lines, uploads: summary.uploads))
  }

  // MARK: One line

  private func take(_ line: LineReader.Line) throws(ImportFailure) {
    summary.lines += 1
    switch line {
    case .tooLong(let number):
      try refuse(number, [FieldProblem("", .tooLarge, "is longer than 16 MiB")])
    case .whole(let number, let bytes):
      let digest = hasher.hash(bytes)
      let isKnown = ownLines.contains(digest) || known.contains(digest)
      let verdict = isKnown ? nil : parser.read(bytes) { judge($0, number: number, digest: digest) }
      if stop.isSet {
        // A failed lookup has requested a stop. Do not use its answers.
        summary.lines -= 1
        summary.isInterrupted = true
        return
      }
      if isKnown {
        summary.known += 1
        return
      }
      warn(number, parser.warnings)
      switch verdict {
      case nil: try refuse(number, parser.problems)
      case .refused(let problem): try refuse(number, [problem])
      case .accepted(let accepted):
        warn(number, accepted.warnings)
        if phase == .importing { try submit(accepted, digest) }
      }
    }
  }

  private func submit(_ accepted: Accepted, _ digest: SHA256Digest) throws(ImportFailure) {
    do throws(LedgerError) {
      let ticket = try appender.submit(accepted.drafts)
      hasSubmitted = true
      if accepted.isChecked { trust = nil }
      pending.append(Pending(ticket: ticket, isNewFamily: accepted.isNewFamily))
      ownLines.insert(digest)
      familyIDs[accepted.bundleID] = accepted.appFamily
      if accepted.isNewFamily { summary.registered += 1 }
      summary.uploads += 1
      if pending.count > Self.pendingMax { try confirmOldest() }
    } catch { throw .ledger(error) }
  }

  private func warn(_ number: Int, _ warnings: [FieldProblem]) {
    if warnings.isEmpty { return }
    summary.warnings += warnings.count
    onProblem(
      ImportProblem(input: inputName, line: number, severity: .warning, reasons: warnings))
  }

  private func refuse(_ number: Int, _ reasons: [FieldProblem]) throws(ImportFailure) {
    summary.refused += 1
    onProblem(
      ImportProblem(input: inputName, line: number, severity: .refused, reasons: reasons))
    if options.isStrict, phase == .importing {
      throw .input(
        IntakeError(
          .invalid, operation: "import", object: inputName,
          cause: "it changed during the import"))
    }
  }

  // MARK: Judgement

  private struct Accepted {
    var drafts: [EventDraft]
    var warnings: [FieldProblem]
    var bundleID: String
    var appFamily: UUID16
    var isNewFamily: Bool
    /// Whether the receipt's signature was checked.
    var isChecked: Bool
  }

  private enum Verdict {
    case accepted(Accepted)
    case refused(FieldProblem)
  }

  private func judge(_ line: ImportLine, number: Int, digest: SHA256Digest) -> Verdict {
    var subject = LineDrafts.Subject(line: line, receipt: nil)
    do throws(ReceiptError) {
      subject.receipt = try ReceiptFile.decode(line.fields.receiptFile)
    } catch {
      if line.recorded == nil {
        return .refused(FieldProblem("receipt", .receiptMalformed, "cannot be read: \(error)"))
      }
    }
    let bundleID = subject.bundleID
    guard bundleID.utf8.count <= Self.bundleIDBytesMax else {
      return .refused(
        FieldProblem(
          "receipt", .receiptMalformed,
          "has a bundle id of more than \(Self.bundleIDBytesMax) bytes"))
    }
    let (registered, problem) = registeredFamily(bundleID)
    if let problem { return .refused(problem) }
    let appFamily = registered ?? UUID16.random()
    subject.mismatch = mismatch(subject, ofFamily: registered)
    if let mismatch = subject.mismatch, let problem = Self.problem(mismatch, options) {
      return .refused(problem)
    }

    let local = checkSignature(subject)
    let draftsOfLine = LineDrafts(
      number: number, digest: digest, appFamily: appFamily, nowMs: nowMs(), hasher: hasher)
    var drafts: [EventDraft] = []
    if local != nil, let trust { drafts.append(trust.draft) }
    if registered == nil { drafts.append(registration(bundleID, appFamily)) }
    drafts += draftsOfLine.drafts(subject, local: local, firstIndex: drafts.count)
    if drafts.contains(where: { $0.data.count > EventLimits.dataBytes }) {
      return .refused(FieldProblem("", .tooLarge, "is too large for an event of 16 MiB"))
    }
    return .accepted(
      Accepted(
        drafts: drafts, warnings: signatureWarnings(subject, local), bundleID: bundleID,
        appFamily: appFamily, isNewFamily: registered == nil, isChecked: local != nil))
  }

  /// Why the recorded reply belongs to another receipt; nil if it fits or gives no sale.
  private func mismatch(
    _ subject: LineDrafts.Subject, ofFamily appFamily: UUID16?
  ) -> ReplyMismatch? {
    guard let recorded = subject.line.recorded, recorded.outcome == .valid else { return nil }
    return ReceiptSubject(subject.receipt).mismatch(of: recorded.reply) { bundle in
      let bundleID = String(decoding: bundle, as: UTF8.self)
      if bundleID == subject.bundleID { return true }
      guard let appFamily else { return false }
      return registeredFamily(bundleID).0 == appFamily
    }
  }

  private static func problem(
    _ mismatch: ReplyMismatch, _ options: ImportOptions
  ) -> FieldProblem? {
    switch mismatch {
    case .bundle:
      FieldProblem(
        "verification.reply", .replyMismatch, "is not about the receipt's app")
    case .transactions:
      options.acceptsMismatch
        ? nil
        : FieldProblem(
          "verification.reply", .replyMismatch,
          "shows none of the receipt's transactions (--accept-mismatch imports it anyway)")
    }
  }

  /// The App Store does not accept a longer bundle id.
  private static var bundleIDBytesMax: Int { 255 }

  /// The app family of a bundle id. Nil without a problem means that it is to be registered.
  private func registeredFamily(_ bundleID: String) -> (UUID16?, FieldProblem?) {
    if bundleID.isEmpty {
      return (
        nil, FieldProblem("receipt", .receiptMalformed, "has no bundle id, so it belongs to no app")
      )
    }
    if let appFamily = familyIDs[bundleID] { return (appFamily, nil) }
    if let id = families.id(forBundleID: bundleID) {
      if let appFamily = UUID16(id) { return (appFamily, nil) }
      return (
        nil,
        FieldProblem("receipt", .invalidValue, "belongs to an app family whose id is not a UUID")
      )
    }
    if options.registersApps { return (nil, nil) }
    return (
      nil,
      FieldProblem(
        "receipt", .bundleNotRegistered, "has a bundle id that no app has registered")
    )
  }

  private func registration(_ bundleID: String, _ appFamily: UUID16) -> EventDraft {
    let event = AppRegistered(
      appFamilyID: appFamily.description, name: bundleID, bundleIDs: [bundleID], products: [])
    return EventDraft(.appRegistered, event.data)
  }

  /// The result of the local check; nil if a recorded reply makes the check unnecessary. The first of two
  /// passes skips it, because an invalid signature does not make a line invalid.
  private func checkSignature(_ subject: LineDrafts.Subject) -> LocalVerification? {
    if phase == .checking { return .valid }
    if subject.line.recorded != nil, !options.checksSignatures { return nil }
    // A receipt that cannot be decoded cannot be genuine.
    guard let receipt = subject.receipt else { return .signatureInvalid }
    return subject.line.fields.receiptFile.withUnsafeBytes { verifier.check($0, receipt) }
  }

  private func signatureWarnings(
    _ subject: LineDrafts.Subject, _ local: LocalVerification?
  ) -> [FieldProblem] {
    guard local?.outcome == .invalid else { return [] }
    let addition =
      subject.line.recorded == nil ? "" : "; its recorded reply was ignored"
    return [
      FieldProblem(
        "receipt", .signatureInvalid,
        "has an invalid signature and was imported as evidence\(addition)")
    ]
  }
}
