// Import: turns lines of recorded uploads into events.
package import AppStore
import Base
package import Ledger
import Synchronization

/// Options of an import.
package struct ImportOptions: Sendable {
  /// Registers an app family for a bundle id that has none.
  package var registersApps = false
  /// Appends nothing unless every line is valid.
  package var isStrict = false
  /// Also checks the signatures of receipts that have a recorded reply.
  package var checksSignatures = false
  /// Accepts recorded replies that show other transactions than their receipt.
  package var acceptsMismatch = false
  /// Appends nothing: lines are only judged.
  package var isDryRun = false

  package init() {}
}

/// One import of some inputs, on the calling thread. It ends early if the stop flag is set, an input cannot
/// be read further, or the ledger accepts no more events. Submitted events are made durable first.
package final class Importer<Appender: EventAppender> {
  private let inputs: [ImportInput]
  private let appender: Appender
  private let families: ImportFamilies
  private let known: any KnownLines & KnownNotifications
  private let receipts: ReceiptLines
  private let signed: SignedLines
  private let options: ImportOptions
  /// To be recorded before the first signature is checked; nil once it is recorded.
  private var trust: TrustDeclared?
  private let stop: StopFlag
  private let nowMs: () -> Int64
  private let onProblem: (ImportProblem) -> Void
  private let onProgress: (ImportProgress) -> Void
  /// What the lines of a dry run contain.
  package private(set) var census = ImportCensus()

  private let parser = ImportLineParser()
  private let hasher = SHA256()
  private var summary = ImportSummary()
  private var phase = ImportProgress.Phase.importing
  private var inputName = ""
  /// The lines of the current input.
  private var reader: (any LineSource)?
  private var readBytes = 0
  private var ownLines = DigestSet()
  private var ownNotifications = DigestSet()
  /// Lines not yet known to be durable, oldest first.
  private var pending: [Pending] = []
  private var hasSubmitted = false
  /// The counts of what is known to be durable.
  private var durable = ImportSummary()

  private struct Pending {
    var ticket: Appender.Ticket
    var isNotification: Bool
    var isNewFamily: Bool
  }

  /// The most lines that may be pending. They are confirmed in groups of `confirmedAtOnce`.
  private static var pendingMax: Int { 2048 }
  private static var confirmedAtOnce: Int { 256 }

  /// Lines between two progress reports.
  private static var linesPerReport: Int { 64 }

  /// - Parameters:
  ///   - inputs: from `ImportInput.openAll`; with a spool directory if the import is strict.
  ///   - verifier: for receipts.
  ///   - signedObjects: for signed transactions and notifications.
  ///   - trust: the trust of both verifiers, if the ledger has not recorded it yet. It is appended with the first line
  ///     whose signature is checked.
  ///   - nowMs: the clock, in epoch milliseconds, for uploads without a time.
  ///   - onProblem: called for each rejected line and each warning, in the order of the lines.
  package init(
    _ inputs: [ImportInput], into appender: Appender, families: any AppFamilies,
    known: any KnownLines & KnownNotifications, verifier: any SignatureChecker,
    signedObjects: SignedObjectVerifier,
    options: ImportOptions,
    trust: TrustDeclared? = nil, stop: StopFlag, nowMs: @escaping () -> Int64 = Timestamp.now,
    onProblem: @escaping (ImportProblem) -> Void,
    onProgress: @escaping (ImportProgress) -> Void = { _ in }
  ) {
    self.inputs = inputs
    self.appender = appender
    // A dry run counts the apps that are not registered, rather than rejecting each of their lines.
    self.families = ImportFamilies(
      families, registersApps: options.registersApps || options.isDryRun)
    self.known = known
    self.options = options
    receipts = ReceiptLines(
      families: self.families, verifier: verifier, options: options, hasher: hasher)
    signed = SignedLines(families: self.families, verifier: signedObjects, hasher: hasher)
    self.trust = trust
    self.stop = stop
    self.nowMs = nowMs
    self.onProblem = onProblem
    self.onProgress = onProgress
  }

  /// Runs the import once, and waits until everything submitted is durable.
  package func run() -> ImportSummary {
    do throws(ImportFailure) {
      if options.isStrict || options.isDryRun {
        phase = .checking
        try runPass()
        if options.isDryRun { return summary }
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
      record(error)
    }
    commitPending()
    return summary
  }

  private func record(_ failure: ImportFailure) {
    if case .input(let error) = failure, error.exitCode == .interrupted {
      summary.isInterrupted = true
    } else if summary.failure == nil {
      summary.failure = failure
    }
  }

  /// Makes the submitted events durable and gets their positions. The counts then cover exactly what is
  /// durable, whatever happened before.
  private func commitPending() {
    do throws(LedgerError) {
      // Check each one: if one was lost, later ones may still have been kept.
      while !pending.isEmpty {
        do throws(LedgerError) { try confirmOldest() } catch { record(.ledger(error)) }
      }
      if hasSubmitted, summary.failure == nil { try appender.flush() }
    } catch { record(.ledger(error)) }
    summary.uploads = durable.uploads
    summary.notifications = durable.notifications
    summary.registered = durable.registered
    summary.positions = durable.positions
  }

  /// Counts the oldest pending lines that are durable, and throws if one is lost.
  private func confirmOldest() throws(LedgerError) {
    let oldest = Array(pending.prefix(Self.confirmedAtOnce))
    pending.removeFirst(oldest.count)
    let outcome = appender.outcome(of: oldest.map(\.ticket))
    precondition(outcome.positions.count == oldest.count)
    for (line, positions) in zip(oldest, outcome.positions) {
      guard let positions else { continue }
      durable.count(isNotification: line.isNotification, isNewFamily: line.isNewFamily)
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
      let reader: any LineSource
      do throws(Failure) { reader = try input.lines() } catch { throw .input(error) }
      self.reader = reader
      while let line = try nextLine(reader) {
        if stop.isSet {
          summary.isInterrupted = true
          break
        }
        try process(line)
        if summary.lines % Self.linesPerReport == 0 { reportProgress(input) }
      }
      if summary.isInterrupted { break }
      readBytes += input.readBytes
    }
    reportProgress(nil)
  }

  private func nextLine(_ reader: any LineSource) throws(ImportFailure) -> LineReader.Line? {
    do throws(Failure) { return try reader.next() } catch { throw .input(error) }
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

  private func process(_ line: LineReader.Line) throws(ImportFailure) {
    summary.lines += 1
    switch line {
    case .tooLong(let number):
      try refuse(number, [FieldProblem("", .tooLarge, "is longer than 16 MiB")])
    case .unreadable(let number, let problem): try refuse(number, [problem])
    case .whole(let number, let bytes):
      let digest = hasher.hash(bytes)
      let isKnown = ownLines.contains(digest) || known.contains(digest)
      let context = LineContext(number: number, digest: digest, nowMs: nowMs(), trust: trust)
      let verdict = isKnown ? .known : parser.read(bytes) { judge($0, context) }
      if stop.isSet {
        // A failed lookup has requested a stop. Do not use its result.
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
      case .refused(let problems): try refuse(number, problems)
      case .known: summary.known += 1
      case .accepted(let accepted):
        warn(number, accepted.warnings)
        if phase == .importing {
          try submit(accepted, digest)
        } else if options.isDryRun {
          census.add(accepted)
          ownLines.insert(digest)
          if case .notification(let uuid) = accepted.kind { ownNotifications.insert(uuid) }
        }
      }
    }
  }

  private func submit(_ accepted: AcceptedLine, _ digest: SHA256Digest) throws(ImportFailure) {
    do throws(LedgerError) {
      let ticket = try appender.submit(accepted.drafts)
      hasSubmitted = true
      if accepted.isChecked { trust = nil }
      ownLines.insert(digest)
      if let family = accepted.newFamily { families.record(family.bundleID, family.id) }
      if case .notification(let uuid) = accepted.kind { ownNotifications.insert(uuid) }
      let isNotification = accepted.kind.isNotification
      let isNewFamily = accepted.newFamily != nil
      pending.append(
        Pending(ticket: ticket, isNotification: isNotification, isNewFamily: isNewFamily))
      summary.count(isNotification: isNotification, isNewFamily: isNewFamily)
      if pending.count > Self.pendingMax { try confirmOldest() }
    } catch { throw .ledger(error) }
  }

  private func warn(_ number: Int, _ warnings: [FieldProblem]) {
    if warnings.isEmpty { return }
    summary.warnings += warnings.count
    onProblem(problem(number, .warning, warnings))
  }

  private func problem(
    _ number: Int, _ severity: ImportProblem.Severity, _ reasons: [FieldProblem]
  ) -> ImportProblem {
    let place = reader?.place ?? (inputName, number)
    return ImportProblem(
      input: place.input, line: place.line, severity: severity, reasons: reasons)
  }

  private func refuse(_ number: Int, _ reasons: [FieldProblem]) throws(ImportFailure) {
    summary.refused += 1
    onProblem(problem(number, .refused, reasons))
    if options.isStrict, phase == .importing {
      throw .input(
        Failure(
          operation: "import", object: inputName,
          cause: "it changed during the import"))
    }
  }

  private func judge(_ line: ImportLine, _ context: LineContext) -> LineVerdict {
    switch line {
    case .receipt(let line): receipts.judge(line, context, phase: phase)
    case .transactions(let fields, let occurredAtMs):
      signed.judge(fields, occurredAtMs: occurredAtMs, context)
    case .notification(let object, let occurredAtMs):
      signed.judge(object, occurredAtMs: occurredAtMs, context) { uuid, digest in
        ownNotifications.contains(digest) || known.contains(notificationUUID: uuid)
      }
    }
  }
}

extension ImportSummary {
  /// Counts a line that was appended.
  fileprivate mutating func count(isNotification: Bool, isNewFamily: Bool) {
    if isNotification { notifications += 1 } else { uploads += 1 }
    if isNewFamily { registered += 1 }
  }
}

// MARK: - Stop flag

/// An operator's request to stop, checked between lines and while waiting for input. Once set, it stays set. It can
/// also query the signal handling.
package final class StopFlag: Sendable {
  private let flag = Atomic<Bool>(false)
  private let isRequested: @Sendable () -> Bool

  /// - Parameter isRequested: also checked; true counts as set.
  package init(isRequested: @escaping @Sendable () -> Bool = { false }) {
    self.isRequested = isRequested
  }

  package func set() { flag.store(true, ordering: .releasing) }

  package var isSet: Bool { flag.load(ordering: .acquiring) || isRequested() }
}

// MARK: - Appenders

/// Accepts drafts and makes them durable, in the order in which they were submitted: the writer of this process, or
/// another process that holds the writer.
package protocol EventAppender {
  associatedtype Ticket

  /// Submits drafts that are appended together. It returns before they are durable, and blocks only while
  /// there is no room.
  func submit(_ drafts: [EventDraft]) throws(LedgerError) -> Ticket
  /// Waits until the submitted drafts are durable, and returns their positions.
  func positions(of ticket: Ticket) throws(LedgerError) -> Range<Position>
  /// Waits until each of these submissions is durable or lost.
  func outcome(of tickets: [Ticket]) -> AppendOutcome
  /// Waits until everything submitted is durable.
  func flush() throws(LedgerError)
}

/// The outcome of a group of submissions.
package struct AppendOutcome {
  /// The positions of each submission, in order; nil if it is not known to be durable. On a full disk, a
  /// submission may be lost and a smaller later one kept.
  package var positions: [Range<Position>?] = []
  /// Why the first of the lost submissions was lost; nil if none was.
  package var failure: LedgerError?

  package init() {}
}

extension EventAppender {
  package func outcome(of tickets: [Ticket]) -> AppendOutcome {
    var outcome = AppendOutcome()
    for ticket in tickets {
      do throws(LedgerError) { outcome.positions.append(try positions(of: ticket)) } catch {
        outcome.positions.append(nil)
        if outcome.failure == nil { outcome.failure = error }
      }
    }
    return outcome
  }
}

extension LedgerWriter: EventAppender {
  package func positions(of ticket: AppendTicket) throws(LedgerError) -> Range<Position> {
    let result = try wait(for: ticket)
    return result.firstPosition..<(result.firstPosition + result.count)
  }
}
