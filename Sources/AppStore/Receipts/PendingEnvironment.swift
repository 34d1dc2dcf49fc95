// The environment of a receipt that the App Store has not confirmed yet (rule R1, *pending*).

/// What a receipt file reveals about its environment.
package enum PendingEnvironment {
  /// The environment of a transaction receipt that names none that counts: only the App Store knows it.
  package static let unknown: StaticString = "Unknown"

  /// What receipts of the sandbox name.
  package static let productionSandbox: StaticString = "ProductionSandbox"

  /// The environment that a file names, as its signature verification records it. For a unified receipt, this
  /// is the signed name. For a transaction receipt, it is `Sandbox` or nothing: the line is outside the
  /// signature, but labelling a production receipt as sandbox gains nothing.
  package static func named(in file: Receipt) -> String? {
    if file.style == .unified { return file.environment }
    let sandbox = EnvironmentName.sandbox.description
    return file.unsignedEnvironment == sandbox ? sandbox : nil
  }

  /// R1: `ProductionSandbox` is Sandbox. A transaction receipt that says Sandbox is Sandbox; any other has
  /// the environment `Unknown`.
  package static func environment(of file: Receipt) -> String {
    guard let named = named(in: file) else {
      return file.style == .transaction ? "\(unknown)" : EnvironmentName.production.description
    }
    return named == "\(productionSandbox)" ? EnvironmentName.sandbox.description : named
  }
}
