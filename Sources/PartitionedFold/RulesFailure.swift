// The errors of ledger-rules, and the one place that turns errors into a line and an exit code.
import Base
import Glibc
import Ledger

/// A command failed. No text contains a receipt, a token or a user identifier.
package struct RulesFailure: Error, Equatable, Sendable {
  /// As ledgerctl's: docs/cli.md.
  package enum ExitCode: Int32, Sendable {
    case done = 0
    case failed = 1
    case usage = 2
    case noLedger = 10
    case locked = 11
    case newerFormat = 12
    case corrupted = 20
    case mismatch = 21
  }

  package let exitCode: ExitCode
  /// What was attempted, as a verb phrase.
  package let operation: String
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
    let text = String(cString: strerror(code))
    self.init(
      operation: operation, object: object, cause: text.prefix(1).lowercased() + text.dropFirst())
  }

  /// Wrong usage of the command line, found before any data is touched.
  package static func usage(_ object: String, _ cause: String) -> RulesFailure {
    RulesFailure(.usage, operation: "parse arguments", object: object, cause: cause)
  }

  /// What could not be done with a stream.
  package init(_ error: ExchangeError, operation: String, object: String) {
    switch error {
    case .system(let code):
      self.init(operation: operation, object: object, systemError: code)
    case .cutShort:
      self.init(operation: operation, object: object, cause: "it ends before its end")
    case .invalid(let cause):
      self.init(operation: operation, object: object, cause: cause)
    case .cellTooLarge(let byteCount):
      self.init(
        operation: operation, object: object,
        cause: "\(byteCount) bytes do not fit in a batch or an end")
    }
  }

  init(_ error: LedgerError) {
    self.init(
      ExitCode(rawValue: error.exitCode) ?? .failed, operation: error.operation,
      object: error.object,
      cause: error.damage.map { "\($0.verdict.rawValue): \(error.cause)" } ?? error.cause)
  }

  /// - Parameter command: the name of the command that failed.
  package init(_ error: any Error, command: String) {
    switch error {
    case let error as RulesFailure: self = error
    case let error as LedgerError: self.init(error)
    case let error as ExchangeError:
      self.init(error, operation: "write", object: "standard output")
    default:
      // The error's own text is unknown here and might contain a secret.
      self.init(operation: command, object: "input", cause: "failed: \(type(of: error))")
    }
  }

  /// The line for standard error, without control characters.
  package var line: String {
    let text = "ledger-rules: \(operation): \(object): \(cause)"
    return String(
      String.UnicodeScalarView(
        text.unicodeScalars.map {
          $0.properties.generalCategory == .control ? "?" : $0
        }))
  }
}
