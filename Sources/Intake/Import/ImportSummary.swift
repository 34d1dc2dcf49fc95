// The result of an import, the problems of its lines, and why an input cannot be read.
package import Base
package import Ledger

/// Why an import ended early.
package enum ImportFailure: ReportableError, Equatable, Sendable, CustomStringConvertible {
  /// An input could not be read to its end.
  case input(Failure)
  /// The ledger did not accept the events.
  case ledger(LedgerError)

  private var underlying: any ReportableError {
    switch self {
    case .input(let error): error
    case .ledger(let error): error
    }
  }

  package var description: String { "\(underlying)" }
  package var exitCode: ExitCode { underlying.exitCode }
  package func lines(for command: String) -> [String] { underlying.lines(for: command) }
}

/// The counts of an import. They are correct even if it ended early.
package struct ImportSummary: Equatable, Sendable {
  /// Lines processed; empty lines are not counted.
  package var lines = 0
  /// Uploads appended.
  package var uploads = 0
  /// Notifications appended.
  package var notifications = 0
  /// Lines that the ledger already had, and lines with a notification that it already had.
  package var known = 0
  /// Lines rejected.
  package var refused = 0
  /// Warnings reported.
  package var warnings = 0
  /// App families registered by this import.
  package var registered = 0
  /// The first and last positions appended; nil if there are none.
  package var positions: ClosedRange<Position>?
  /// Whether `--strict` rejected the whole import.
  package var isRefusedAsWhole = false
  package var isInterrupted = false
  package var failure: ImportFailure?

  package init() {}

  /// The exit code of a command that imports.
  package var exitCode: ExitCode {
    if let failure { return failure.exitCode }
    if isRefusedAsWhole { return .failed }
    if isInterrupted { return .interrupted }
    return refused > 0 || warnings > 0 ? .partlyDone : .done
  }
}

/// The progress of an import.
package struct ImportProgress: Equatable, Sendable {
  package enum Phase: Sendable {
    /// The first of two passes: nothing is appended.
    case checking
    case importing
  }

  package var phase: Phase
  /// Bytes read from the inputs in this pass, measured as they are on disk.
  package var readBytes: Int
  /// The size of all inputs; nil if one of them is a stream.
  package var totalBytes: Int?
  package var lines: Int
  package var uploads: Int
}

// MARK: - Problems of lines

/// All problems of one line.
package struct ImportProblem: Equatable, Sendable, CustomStringConvertible {
  package enum Severity: String, Sendable {
    /// The line was not imported.
    case refused
    /// The line was imported or, in a check, would have been.
    case warning
  }

  /// The input's name.
  package let input: String
  /// From 1.
  package let line: Int
  package let severity: Severity
  /// All reasons, at least one.
  package let reasons: [FieldProblem]

  package init(input: String, line: Int, severity: Severity, reasons: [FieldProblem]) {
    self.input = input
    self.line = line
    self.severity = severity
    self.reasons = reasons
  }

  package var description: String {
    let kind = severity == .warning ? "warning: " : ""
    return "\(input):\(line): \(kind)\(reasons.map(\.description).joined(separator: "; "))"
  }
}
