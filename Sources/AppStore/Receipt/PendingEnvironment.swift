// The environment of a receipt that the App Store has not placed in one yet (rule R1, *pending*).

/// What a receipt file tells about its environment, and what it can't.
package enum PendingEnvironment {
  /// That of a transaction receipt which names none that counts: only the App Store knows it.
  package static let unknown: StaticString = "Unknown"

  /// What a file names, as the verification of its signature records it: a unified receipt's signed word; of a
  /// transaction receipt `Sandbox` alone, for that line is outside the signature, and there is
  /// nothing to gain from calling a production receipt one of the sandbox.
  package static func named(in file: Receipt) -> String? {
    if file.style == .unified { return file.environment }
    let sandbox = EnvironmentName.sandbox.description
    return file.unsignedEnvironment == sandbox ? sandbox : nil
  }

  /// R1: `ProductionSandbox` is Sandbox; a transaction receipt that says Sandbox is Sandbox, and any other has the
  /// environment `Unknown`.
  package static func environment(of file: Receipt) -> String {
    guard let named = named(in: file) else {
      return file.style == .transaction ? "\(unknown)" : EnvironmentName.production.description
    }
    return named == "ProductionSandbox" ? EnvironmentName.sandbox.description : named
  }
}
