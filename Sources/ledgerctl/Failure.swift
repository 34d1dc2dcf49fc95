// The errors of commands, and their conversion into lines on standard error and an exit code.
import AppStore
import Base
import Erasure
import HTTPClient
import Intake
import Ledger
import Projections
import Replication
import ReportDocuments
import Server

/// A command failed. None of the texts may contain a receipt, a token or a user identifier.
package struct Failure: Error, Equatable, Sendable {
  package let exitCode: ExitCode
  /// What was attempted: "write", "find ledger".
  let operation: String
  /// What it was attempted on: a path, an option, a position.
  package let object: String
  package let cause: String

  package init(
    _ exitCode: ExitCode = .failed, operation: String, object: String, cause: String
  ) {
    self.exitCode = exitCode
    self.operation = operation
    self.object = object
    self.cause = cause
  }

  /// A failed system call, by its `errno`.
  package init(operation: String, object: String, systemError code: Int32) {
    self.init(operation: operation, object: object, cause: systemErrorText(code))
  }
}

/// Wrong usage of the command line, found before any data is touched.
package struct UsageError: Error, Equatable, Sendable {
  /// The command's words; empty if the command was not recognized.
  var command: String
  /// The wrong argument, as a message may show it.
  let object: String
  let cause: String

  package init(_ object: String, _ cause: String, command: String = "") {
    self.command = command
    self.object = object
    self.cause = cause
  }
}

/// The command stopped because of a signal.
package struct Interrupted: Error {
  package init() {}
}

/// The consequences of an error for the process.
package struct ErrorReport: Equatable {
  package let exitCode: ExitCode
  /// Lines for standard error, without control characters.
  package let lines: [String]

  package init(exitCode: ExitCode, lines: [String]) {
    self.exitCode = exitCode
    self.lines = lines
  }

  /// - Parameter command: the words of the command that failed.
  package init(_ error: any Error, command: String) {
    switch Self.root(of: error) {
    case OutputError.closedPipe:
      // The reader of the output needs no more, as with `head`.
      (exitCode, lines) = (.done, [])
    case is Interrupted:
      (exitCode, lines) = (.interrupted, [Self.line(command, "", "interrupted")])
    case let error as UsageError:
      let command = error.command.isEmpty ? command : error.command
      let pointer = command.isEmpty ? "ledgerctl help" : "ledgerctl help \(command)"
      exitCode = .usage
      lines = [Self.line(command, error.object, error.cause), "See '\(pointer)'."]
    case let error as Failure:
      exitCode = error.exitCode
      lines = [Self.line(error.operation, error.object, error.cause)]
    case OutputError.writeFailed(let object, let code):
      exitCode = .failed
      lines = [Self.line("write", object, systemErrorText(code))]
    case let error as LedgerError:
      exitCode = ExitCode(rawValue: error.exitCode) ?? .failed
      let cause = Self.inSentence(error.cause)
      lines = [
        error.damage == nil
          ? Self.line(error.operation, error.object, cause) : Self.line(error.description)
      ]
    case let error as ProofError:
      (exitCode, lines) = (.corrupted, [Self.line(command, error.object, error.cause)])
    case ProjectionError.event(let position, let error) where error.isOfLaterProgram:
      exitCode = .newerFormat
      lines = [Self.line(command, "position \(position)", error.description)]
    case let error as EventError:
      (exitCode, lines) = (.failed, [Self.line(command, "", error.description)])
    case let error as JSONError:
      (exitCode, lines) = (.failed, [Self.line(command, "", error.description)])
    case ProjectionError.snapshot(let name, let cause):
      (exitCode, lines) = (.mismatch, [Self.line(command, "snapshot \(name)", cause)])
    case ProjectionError.anotherHistory(let conflict):
      (exitCode, lines) = (.mismatch, [Self.line(command, "projections", conflict.description)])
    case ProjectionError.file(let operation, let name, let cause):
      (exitCode, lines) = (.failed, [Self.line(operation, name, Self.inSentence(cause))])
    case let error as ProjectionError:
      (exitCode, lines) = (.failed, [Self.line(command, "", error.description)])
    case ErasureError.interrupted:
      (exitCode, lines) = (
        .interrupted,
        [
          Self.line(
            command, "", "interrupted; the next command that writes finishes what was begun")
        ]
      )
    case ErasureError.refused(let object, let cause):
      (exitCode, lines) = (.failed, [Self.line(command, object, cause)])
    case CopyError.faults(let faults):
      exitCode = .corrupted
      lines = Self.lines(command, faults.map { ($0.object, $0.cause) })
    case let error as CopyError:
      (exitCode, lines) = (.failed, [Self.line(command, error.description)])
    case RestoreError.faults(let faults):
      exitCode = .corrupted
      lines = Self.lines(command, faults.map { ($0.object, $0.cause) })
    case RestoreError.audit(let findings):
      exitCode = .corrupted
      lines = Self.lines(
        command, findings.map { ($0.damage.file, "\($0.damage.verdict.rawValue): \($0.cause)") })
    case let error as RestoreError:
      (exitCode, lines) = (.failed, [Self.line(command, error.description)])
    case PromotionError.diverged(let store, let local, let copied):
      let error = PromotionError.diverged(store: store, local: local, copied: copied)
      exitCode = .standby
      lines = [
        Self.line(command, error.description),
        "Save what only this ledger holds with 'ledgerctl divergence', and restore a ledger from the copy.",
      ]
    case let error as PromotionError:
      exitCode = if case .overtaken = error { .standby } else { .failed }
      lines = [Self.line(command, error.description)]
    case let error as DivergenceError:
      (exitCode, lines) = (.failed, [Self.line(command, error.description)])
    case let error as ErasureError:
      (exitCode, lines) = (.corrupted, [Self.line(command, error.description)])
    case let error as DatabaseError where error.isReadOnly:
      let cause =
        "they are read-only, but SQLite must write to read them; use a writable copy"
      (exitCode, lines) = (.failed, [Self.line(command, "projections", cause)])
    case let error as DatabaseError:
      (exitCode, lines) = (.failed, [Self.line(command, "projections", error.description)])
    case let error as IntakeError:
      let isInterrupted = error.kind == .interrupted
      exitCode = isInterrupted ? .interrupted : .failed
      lines = [Self.line(error.operation, error.object, Self.inSentence(error.cause))]
    case let error as ConfigurationError:
      exitCode = .failed
      lines = error.problems.map {
        Self.line(error.operation, error.object, Self.inSentence($0.description))
      }
    case let error as HTTPServerError:
      exitCode = .failed
      lines = [Self.line(error.operation, error.object, Self.inSentence(error.cause))]
    case let error as VerifyReceiptOptionsError:
      (exitCode, lines) = (.failed, [Self.line(error.description)])
    case let error as ReceiptVerifier.ConfigurationError:
      (exitCode, lines) = (.failed, [Self.line(error.description)])
    case let error as SpreadsheetError:
      exitCode = .failed
      lines = [Self.line(command, Self.cause(of: error))]
    case let error as DeclarationError:
      exitCode = .failed
      lines = error.description.split(separator: "\n").map { Self.line(command, String($0)) }
    default:
      // The error's own text is unknown here and might contain a secret.
      (exitCode, lines) = (.failed, [Self.line(command, "", "failed: \(type(of: error))")])
    }
  }

  /// Whether an error means that the projections' database is damaged.
  static func isProjectionDamage(_ error: any Error) -> Bool {
    switch root(of: error) {
    case let error as DatabaseError: error.isCorrupt
    case ProjectionError.inconsistent: true
    default: false
    }
  }

  /// The error of a command that finds such damage and does not rebuild.
  static func projectionDamage(operation: String) -> Failure {
    Failure(
      .mismatch, operation: operation, object: "projections",
      cause: "they are damaged; 'ledgerctl rebuild' rebuilds them from the log")
  }

  /// The original error, without those that wrap it.
  private static func root(of error: any Error) -> any Error {
    switch error {
    case let error as ImportFailure: root(of: error.underlying)
    case ProjectionError.ledger(let inner): root(of: inner)
    case ProjectionError.database(let inner): inner
    case ProjectionError.output(let inner): root(of: inner)
    case ProjectionError.interrupted: Interrupted()
    case DeclarationError.input(let inner): root(of: inner)
    case ErasureError.ledger(let inner): root(of: inner)
    case ErasureError.projections(let inner): root(of: inner)
    case CopyError.ledger(let inner): inner
    default: error
    }
  }

  /// What went wrong with an Excel file, with the system's words.
  private static func cause(of error: SpreadsheetError) -> String {
    if case .system(let operation, let code) = error {
      return "\(operation): \(systemErrorText(code))"
    }
    return error.description
  }

  /// System messages begin with a capital; after a colon they do not. Abbreviations keep theirs.
  private static func inSentence(_ cause: String) -> String {
    guard cause.dropFirst().first?.isLowercase == true else { return cause }
    return cause.prefix(1).lowercased() + cause.dropFirst()
  }

  private static let lineCountMax = 1_000

  /// A line for each finding, up to a limit.
  private static func lines(
    _ command: String, _ findings: [(object: String, cause: String)]
  ) -> [String] {
    let shown = findings.prefix(lineCountMax).map { line(command, $0.object, $0.cause) }
    let rest = findings.count - shown.count
    return rest > 0 ? shown + [line(command, "and \(rest) more")] : shown
  }

  private static func line(_ parts: String...) -> String {
    visible((["ledgerctl"] + parts).filter { !$0.isEmpty }.joined(separator: ": "))
  }
}
