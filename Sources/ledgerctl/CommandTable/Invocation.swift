// A parsed command line, checked against the table.

/// A command with its arguments. Every name, number and allowed value has been checked.
struct Invocation: Sendable {
  let command: Command
  /// The value of `--ledger`, if given.
  var ledgerPath: String?
  private(set) var positionals: [String]
  private let values: [String: [String]]

  init(command: Command, ledgerPath: String?, positionals: [String], values: [String: [String]]) {
    self.command = command
    self.ledgerPath = ledgerPath
    self.positionals = positionals
    self.values = values
  }

  /// Whether a flag or an option was given.
  func has(_ name: String) -> Bool { values[name] != nil }

  /// Whether JSON is wanted instead of text.
  var isJSON: Bool { has("json") }

  /// The file of `--output`; nil is standard output.
  var outputPath: String? { value("output").flatMap { $0 == "-" ? nil : $0 } }

  /// The value of an option, else its default, else nil.
  func value(_ name: String) -> String? { values[name]?.last ?? option(name)?.value?.standard }

  /// All values of a repeatable option, in the order given.
  func values(_ name: String) -> [String] { values[name] ?? [] }

  /// The parts of an option whose value is a list, else those of its default.
  func list(_ name: String) -> [String] {
    (value(name) ?? "").split(separator: ",").map(String.init)
  }

  /// The value of an option, parsed by `read`; if that returns nil, throws a usage error with `cause`.
  func value<Value>(
    _ name: String, _ cause: String, read: (String) -> Value?
  ) throws(UsageError) -> Value? {
    guard let text = value(name) else { return nil }
    guard let value = read(text) else { throw wrong(name, text, cause) }
    return value
  }

  /// A usage error about an option; its value is shown unless it is a secret.
  func wrong(_ name: String, _ text: String, _ cause: String) -> UsageError {
    let isSecret = option(name)?.value?.isSecret ?? false
    let object = isSecret ? "--\(name)" : "--\(name) \(ShownArgument.text(text))"
    return UsageError(object, cause, command: command.name)
  }

  private func option(_ name: String) -> Option? { command.options.first { $0.name == name } }
}
