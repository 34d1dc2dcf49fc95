// The problems of single lines that an import reports.

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
