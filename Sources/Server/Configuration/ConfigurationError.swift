// What is wrong with config.json: each problem with its path inside the file, never with a value.

/// Why a configuration cannot be used. Holds no token, no shared secret, and no value that might be one.
package struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
  /// One thing that is wrong.
  package struct Problem: Equatable, Sendable, CustomStringConvertible {
    /// Where: `app_store.timeout_ms`, `tokens[2].sha256`; empty for the file as a whole.
    package let path: String
    package let cause: String

    package init(_ path: String, _ cause: String) {
      self.path = path
      self.cause = cause
    }

    package var description: String { path.isEmpty ? cause : "\(path): \(cause)" }
  }

  /// What was attempted, as a verb phrase: "read", "write".
  package let operation: String
  /// The file's path.
  package let object: String
  /// At least one; the first of them, and in place of the others how many they are.
  package let problems: [Problem]
  private static let problemCountMax = 100

  package init(_ operation: String, _ object: String, _ problems: [Problem]) {
    self.operation = operation
    self.object = object
    let furtherCount = problems.count - Self.problemCountMax
    self.problems =
      furtherCount > 0
      ? problems.prefix(Self.problemCountMax) + [Problem("", "\(furtherCount) more problems")]
      : problems
  }

  package var description: String {
    "\(operation) \(object): \(problems.map(\.description).joined(separator: "; "))"
  }
}
