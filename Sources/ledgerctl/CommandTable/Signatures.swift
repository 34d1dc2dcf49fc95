// How help and the reference write commands, options and arguments.

/// What the program is, in a sentence.
let programSummary = "ledgerctl keeps a ledger of App Store receipts and reports revenue from it."

extension Command {
  /// The pieces of `ledgerctl app add --name NAME --bundle-id ID… [--product ID=TYPE…]`.
  var usage: [String] {
    var parts = ["ledgerctl"] + words
    parts += positionals.map { positional in
      switch positional.arity {
      case .one: positional.name
      case .optional: "[\(positional.name)]"
      case .oneOrMore: "\(positional.name)…"
      case .any: "[\(positional.name)…]"
      }
    }
    parts += options.filter(\.isRequired).map(\.usage)
    parts += options.filter { !$0.isRequired }.map(\.usage)
    return parts
  }

  /// Its own options, then the global ones that apply to it.
  var allOptions: [Option] {
    options + Option.global.filter { $0.name == "help" || ($0.name == "ledger" && usesLedger) }
  }
}

extension Option {
  /// `-o, --output FILE`.
  var signature: String {
    let name = "--\(name)" + (value.map { " \($0.name)" } ?? "")
    return short.map { "-\($0), \(name)" } ?? name
  }

  /// Its description in help: purpose, accepted values and default.
  var description: String {
    var text = help
    if let value, !value.allowed.isEmpty {
      let names = value.allowed.map { "`\($0)`" }
      text +=
        value.isList ? "; any of \(names.joined(separator: ", "))" : ": \(alternatives(names))"
    }
    if let standard = value?.standard { text += " (default: `\(standard)`)" }
    if isRepeatable { text += "; may be repeated" }
    if isRequired { text += "; required" }
    return text
  }

  fileprivate var usage: String {
    let name = "--\(name)" + (value.map { " \($0.name)" } ?? "") + (isRepeatable ? "…" : "")
    return isRequired ? name : "[\(name)]"
  }
}

extension Positional {
  var description: String {
    allowed.isEmpty ? help : "\(help): \(alternatives(allowed.map { "`\($0)`" }))"
  }
}
