// What a command says when it fails: operation, object and cause, and the exit codes that scripts may rely on.
import Glibc

/// The exit code of the process. The numbers are documented and never change.
package enum ExitCode: Int32, CaseIterable, Sendable {
  case done = 0
  case failed = 1
  case usage = 2
  case partlyDone = 3
  case noLedger = 10
  case locked = 11
  case newerFormat = 12
  case standby = 13
  case corrupted = 20
  case mismatch = 21
  case interrupted = 130

  /// One line for the reference.
  package var meaning: String {
    switch self {
    case .done: "done"
    case .failed: "failed; also an import that `--strict` refused"
    case .usage: "wrong usage; nothing was read or written"
    case .partlyDone: "done, but something was refused or caused a warning"
    case .noLedger: "there is no ledger"
    case .locked: "another process is writing to the ledger"
    case .newerFormat: "a newer version of the program wrote the ledger"
    case .standby:
      "the ledger was restored or merged, or another writer has taken over: nothing was written"
    case .corrupted: "corruption or tampering was found"
    case .mismatch:
      "a projection, a report or a merged ledger does not match its log or its sources, or data that was "
        + "erased is still there"
    case .interrupted: "interrupted by a signal, after cleaning up"
    }
  }
}

/// An error that a command can report without knowing its type. No text contains a receipt, a token or a user
/// identifier.
package protocol ReportableError: Error {
  var exitCode: ExitCode { get }
  /// The lines for standard error; none if there is nothing to report.
  /// - Parameter command: the command's words, for errors that do not name an operation.
  func lines(for command: String) -> [String]
  /// What the user can do next; a line of its own.
  var hint: String? { get }
}

extension ReportableError {
  package var exitCode: ExitCode { .failed }
  package var hint: String? { nil }
}

extension ReportableError where Self: CustomStringConvertible {
  package func lines(for command: String) -> [String] { ["\(command): \(description)"] }
}

/// An operation failed.
package struct Failure: ReportableError, Equatable, Sendable, CustomStringConvertible {
  package let exitCode: ExitCode
  /// What was attempted, as a verb phrase: "write", "find ledger".
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
    self.init(operation: operation, object: object, cause: systemErrorText(code))
  }

  package var description: String {
    [operation, object, cause].filter { !$0.isEmpty }.joined(separator: ": ")
  }
  package func lines(for command: String) -> [String] { [description] }
}

/// An error of a type that no command knows. Its own text might contain a secret.
private struct UnknownError: ReportableError {
  let type: String

  func lines(for command: String) -> [String] { ["\(command): failed: \(type)"] }
}

extension Error {
  /// This error if it is reportable; otherwise one that shows only its type.
  package var reportable: any ReportableError {
    self as? any ReportableError ?? UnknownError(type: "\(type(of: self))")
  }
}

/// The system's message for an `errno`, as it stands inside a sentence: it begins with a lower-case letter.
package func systemErrorText(_ code: Int32) -> String {
  var buffer = [CChar](repeating: 0, count: 256)
  guard strerror_r(code, &buffer, buffer.count) == 0 else { return "system error \(code)" }
  let text = String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  return text.prefix(1).lowercased() + text.dropFirst()
}
