// Why an input cannot be read: operation, object and cause.

/// A fault of an input file as a whole. Single lines have an `ImportProblem`.
package struct IntakeError: Error, Equatable, Sendable, CustomStringConvertible {
  package enum Kind: Sendable {
    /// It cannot be opened or read, or is nothing that could be imported.
    case unreadable
    /// Its compressed data is damaged or cut short.
    case damaged
    /// Its content is not what it must be.
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
