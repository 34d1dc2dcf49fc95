// Wrong usage and interruption, and the lines on standard error and the exit code of any error.
package import Base
import Erasure
import Projections

/// Wrong usage of the command line, found before any data is touched.
package struct UsageError: ReportableError, Equatable, Sendable {
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

  package var exitCode: ExitCode { .usage }
  package var hint: String? { "See 'ledgerctl help\(command.isEmpty ? "" : " " + command)'." }
  package func lines(for command: String) -> [String] {
    [Failure(operation: self.command, object: object, cause: cause).description]
  }
}

/// The command stopped because of a signal.
package struct Interrupted: ReportableError {
  package init() {}

  package var exitCode: ExitCode { .interrupted }
  package func lines(for command: String) -> [String] { ["\(command): interrupted"] }
}

/// The consequences of an error for the process.
package struct ErrorReport: Equatable {
  package let exitCode: ExitCode
  /// Lines for standard error, without control characters.
  package let lines: [String]

  /// - Parameter command: the words of the command that failed.
  package init(_ error: any Error, command: String) {
    var error = error.reportable
    if var usage = error as? UsageError, usage.command.isEmpty {
      usage.command = command
      error = usage
    }
    exitCode = error.exitCode
    let hint = error.hint.map { [visible($0)] } ?? []
    lines = error.lines(for: command).map { visible("ledgerctl: \($0)") } + hint
  }

  /// Whether an error means that the projections' database is damaged.
  static func isProjectionDamage(_ error: any Error) -> Bool {
    switch error {
    case let error as DatabaseError: error.isCorrupt
    case ProjectionError.inconsistent: true
    case ProjectionError.database(let error): error.isCorrupt
    case ProjectionError.output(let error): isProjectionDamage(error)
    case ErasureError.projections(let error): isProjectionDamage(error)
    default: false
    }
  }

  /// The error of a command that finds such damage and does not rebuild.
  static func projectionDamage(operation: String) -> Failure {
    Failure(
      .mismatch, operation: operation, object: "projections",
      cause: "they are damaged; 'ledgerctl rebuild' rebuilds them from the log")
  }
}
