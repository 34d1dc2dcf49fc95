// The state of one run of `doctor`: what is open, what was found, and which checks could not be made.
package import Base
import Glibc
package import Ledger
import Projections
import Server

/// A trouble that was found.
package struct DoctorFinding: Equatable, Sendable {
  package let check: DoctorCheck
  /// What it is about: a file, an app, a currency.
  package let object: String
  package let cause: String
  package let command: String
}

/// Why a check could not be made.
package struct DoctorObstacle: Equatable, Sendable {
  package let cause: String
  /// The trouble, found by another check, that explains it; nil if nothing does.
  package let trouble: DoctorCheck?

  var text: String { trouble.map { "\(cause): see \($0.rawValue)" } ?? cause }
}

/// What a run of `doctor` knows of its surroundings; tests replace it.
package struct DoctorSurroundings: Sendable {
  /// Epoch milliseconds.
  package var nowMs: @Sendable () -> Int64 = { Timestamp.now() }
  /// How many bytes are free for the user where a directory is; nil if the system does not tell.
  package var freeByteCount: @Sendable (_ path: String) -> Int? = { path in
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return nil }
    return Int(
      clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        .partialValue)
  }

  package init() {}
}

/// One run over a ledger. It changes nothing and takes no lock; each check stands alone, so that a broken ledger is
/// examined as far as it can be.
package final class Examination {
  let path: String
  let surroundings: DoctorSurroundings
  let nowMs: Int64
  /// The directory, whether it is a ledger or not.
  let root: Folder
  var openedLedger: LedgerDirectory?
  var openedLog: LogReader?
  var standby: Standby?
  /// Whether a server listens; nil if there is no socket.
  var isServed: Bool?
  var readConfiguration: Configuration?
  var currentDatabase: Database?
  /// How many bytes the projections in use have, and the log.
  var (projectionByteCount, logByteCount) = (0, 0)

  package private(set) var findings: [DoctorFinding] = []
  package private(set) var obstacles: [DoctorCheck: DoctorObstacle] = [:]

  /// What is missing for a check, and the checks that tell why.
  struct Missing: Error {
    let what: String
    let checks: [DoctorCheck]
  }

  /// Makes all checks but that of the App Store's clock.
  /// - Parameter root: the directory at the path.
  package init(_ path: String, root: Folder, _ surroundings: DoctorSurroundings = .init()) {
    self.path = path
    self.root = root
    self.surroundings = surroundings
    nowMs = surroundings.nowMs()
    examineFiles()
    examineLedger()
    examineKeys()
    examineConfiguration()
    examineInterruptedErasure()
    examineProjections()
    examineCopy()
    examineWebhooks()
    examineErasures()
    examineFigures()
  }

  // MARK: Results

  /// The verdict of a check.
  package func verdict(_ check: DoctorCheck) -> DoctorVerdict {
    if has(check) { return check.row.verdict }
    return obstacles[check] == nil ? .ok : .unknown
  }

  /// The worst verdict; `unknown` counts as a warning.
  package var verdict: DoctorVerdict {
    if findings.contains(where: { $0.check.row.verdict == .error }) { return .error }
    return findings.isEmpty && obstacles.isEmpty ? .ok : .warning
  }

  package var exitCode: ExitCode {
    switch verdict {
    case .ok: .done
    case .unknown, .warning: .partlyDone
    case .error: .failed
    }
  }

  func has(_ check: DoctorCheck) -> Bool { findings.contains { $0.check == check } }

  // MARK: Checks

  /// Records a trouble.
  /// - Parameter command: nil for the command of the table.
  func report(_ check: DoctorCheck, _ object: String, _ cause: String, command: String? = nil) {
    findings.append(
      DoctorFinding(
        check: check, object: object, cause: cause, command: command ?? check.row.command))
  }

  /// Makes checks; if they fail, those that found nothing are unknown.
  /// - Parameter reasons: the checks whose trouble explains a failure.
  func attempt(
    _ checks: DoctorCheck..., because reasons: [DoctorCheck] = [], _ body: () throws -> Void
  ) {
    var (cause, explaining) = ("", reasons + checks)
    do { return try body() } catch let missing as Missing {
      (cause, explaining) = (missing.what, missing.checks)
    } catch {
      cause = error.reportable.lines(for: "doctor").joined(separator: "; ")
    }
    let trouble = explaining.first { has($0) } ?? explaining.first { obstacles[$0] != nil }
    for check in checks where !has(check) {
      obstacles[check] = DoctorObstacle(cause: cause, trouble: trouble)
    }
  }

  // MARK: What checks need

  static let accessChecks: [DoctorCheck] = [
    .writableByOthers, .secretExposed, .foreignOwner, .linkInLedger,
  ]

  func ledger() throws(Missing) -> LedgerDirectory {
    if let openedLedger { return openedLedger }
    throw Missing(
      what: "the ledger cannot be opened",
      checks: Self.accessChecks + [.identityUnusable, .formatNewer])
  }

  func log() throws(Missing) -> LogReader {
    _ = try ledger()
    if let openedLog { return openedLog }
    throw Missing(what: "the log cannot be opened", checks: Self.accessChecks + [.logDamaged])
  }

  /// The log, if it can be read to its end.
  func wholeLog() throws(Missing) -> LogReader {
    let reader = try log()
    if reader.damage == nil { return reader }
    throw Missing(what: "the log is damaged", checks: [.logDamaged])
  }

  func configuration() throws(Missing) -> Configuration {
    _ = try ledger()
    if let readConfiguration { return readConfiguration }
    throw Missing(
      what: "config.json cannot be used",
      checks: Self.accessChecks + [.configInvalid, .appStoreKeyUnusable])
  }

  /// The projections as they are; nil if there need not be any, because the log is empty or the ledger is on standby.
  func database() throws(Missing) -> Database? {
    let reader = try wholeLog()
    if let currentDatabase { return currentDatabase }
    if reader.redactedLines != nil {
      throw Missing(what: "an erasure is being carried out", checks: [.erasureInterrupted])
    }
    if reader.head.size == 0 || standby != nil { return nil }
    throw Missing(
      what: "there are no projections that can be used",
      checks: [
        .mergeUnfinished, .projectionsMissing, .projectionsDamaged, .projectionsOfOtherHistory,
        .projectionsOutdated,
      ])
  }

  func projector(_ reader: LogReader) -> Projector {
    let projector = Projector(reader, observer: Projector.Observer(), projections: .ofProgram)
    projector.reading = .readWithoutTrace
    return projector
  }
}

/// Limits that an alert rule has, too; a test compares them with `examples/alerts.yaml`.
package enum DoctorLimits {
  /// By how much the clock may be behind the newest event.
  package static let clockSeconds: Int64 = 5
  /// How many events the projections may lack.
  package static let projectionEventCount = 10_000
  /// How many events a webhook may lack.
  package static let webhookEventCount = 1000
  /// How long a request to erase may wait.
  package static let erasureWaitDays: Int64 = 2
  /// How long a receipt may wait for the App Store.
  package static let verificationSeconds: Int64 = 7200
  /// How long the copy may lag, and how long ago it may have been found whole.
  package static let copyLagSeconds: Int64 = 60
  package static let copyNotWholeDays: Int64 = 2
}

/// A day in milliseconds.
let dayMs: Int64 = 86_400_000

extension DoctorSurroundings {
  /// How long ago, in words.
  static func age(_ ms: Int64) -> String {
    let (seconds, hours) = (ms / 1000, ms / 3_600_000)
    if seconds < 120 { return "\(seconds) s" }
    if hours < 2 { return "\(seconds / 60) minutes" }
    return hours < 48 ? "\(hours) hours" : "\(hours / 24) days"
  }
}
