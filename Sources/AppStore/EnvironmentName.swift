// The App Store's names of its environments.

/// The names that receipts and replies give an environment. Others than these occur, and stand for themselves.
package enum EnvironmentName {
  package static let production: StaticString = "Production"
  package static let sandbox: StaticString = "Sandbox"

  /// Whether it is one of the two; exactly.
  package static func isKnown(_ name: String) -> Bool {
    name == production.description || name == sandbox.description
  }

  /// The name that people mean, who may write these two in any case.
  package static func meant(by text: String) -> String {
    switch text.lowercased() {
    case production.description.lowercased(): production.description
    case sandbox.description.lowercased(): sandbox.description
    default: text
    }
  }
}
