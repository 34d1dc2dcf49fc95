// The App Store's names of its environments.

/// The names that receipts and replies give an environment. Other names occur; they are kept as they are.
package enum EnvironmentName {
  package static let production: StaticString = "Production"
  package static let sandbox: StaticString = "Sandbox"

  /// Whether the name is exactly one of the two.
  package static func isKnown(_ name: String) -> Bool {
    name == production.description || name == sandbox.description
  }

  /// The name that a person means, who may write these two in any case.
  package static func meant(by text: String) -> String {
    switch text.lowercased() {
    case production.description.lowercased(): production.description
    case sandbox.description.lowercased(): sandbox.description
    default: text
    }
  }
}
