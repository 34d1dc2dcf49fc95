// Why an input cannot be read: operation, object and cause.

/// An error that affects a whole input file. For single lines, see `ImportProblem`.
package struct IntakeError: Error, Equatable, Sendable, CustomStringConvertible {
  package enum Kind: Sendable {
    /// The input cannot be opened or read, or is not something that can be imported.
    case unreadable
    /// Its compressed data is damaged or truncated.
    case damaged
    /// Its content is not valid.
    case invalid
    /// The operator asked to stop.
    case interrupted
  }

  package let kind: Kind
  /// What was attempted, as a verb phrase: "read".
  package let operation: String
  /// The path as given, or "standard input".
  package let object: String
  package let cause: String

  package init(_ kind: Kind, operation: String, object: String, cause: String) {
    self.kind = kind
    self.operation = operation
    self.object = object
    self.cause = cause
  }

  package var description: String { "\(operation) \(object): \(cause)" }
}
