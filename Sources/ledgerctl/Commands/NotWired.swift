// Goes away once every command's body stands: the compiler then names the ones that are left.

extension Failure {
  /// The body of a command that is not merged yet.
  static func notWired(_ command: String) -> Failure {
    Failure(operation: command, object: "ledgerctl", cause: "this build was made without it")
  }
}
