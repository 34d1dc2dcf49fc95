// Parses arguments into an invocation and checks it against the table, before anything else happens.
import Base
import Intake

/// What a command line asks for.
enum Request {
  case run(Invocation)
  /// Help for the commands that begin with these words; without words, the overview.
  case help([String])
  case version
}

/// Reads one command line.
struct Parser {
  private let table: CommandTable
  private var arguments: ArraySlice<String>
  private var words: [String] = []
  private var command: Command?
  private var positionals: [String] = []
  private var values: [String: [String]] = [:]

  /// - Parameter arguments: without the program's name.
  static func parse(
    _ arguments: [String], table: CommandTable = .standard
  ) throws(UsageError) -> Request {
    var parser = Parser(table: table, arguments: arguments[...])
    do {
      return try parser.request()
    } catch {
      var error = error
      if error.command.isEmpty { error.command = parser.words.joined(separator: " ") }
      throw error
    }
  }

  private init(table: CommandTable, arguments: ArraySlice<String>) {
    self.table = table
    self.arguments = arguments
  }

  private mutating func request() throws(UsageError) -> Request {
    var optionsHaveEnded = false
    while let argument = arguments.popFirst() {
      if optionsHaveEnded || argument == "-" || !argument.hasPrefix("-") {
        try parseArgument(argument)
      } else if argument == "--" {
        optionsHaveEnded = true
      } else {
        try parseOption(argument)
      }
      if values["help"] != nil { return .help(words) }
      if values["version"] != nil { return .version }
    }
    guard let command else { throw missingCommand() }
    try checkRequired(command)
    try checkPositionals(command)
    return .run(
      Invocation(
        command: command, ledgerPath: values["ledger"]?.last, positionals: positionals,
        values: values))
  }

  // MARK: Commands

  private mutating func parseArgument(_ argument: String) throws(UsageError) {
    let next = words + [argument]
    let found = table.commands(under: next)
    // A command may have subcommands: a word names one until the command has arguments or options of its own.
    guard command == nil || !found.isEmpty && positionals.isEmpty && hasOnlyGlobalOptions
    else { return positionals.append(argument) }
    guard !found.isEmpty else {
      let siblings = table.commands(under: words).map { $0.words[words.count] }
      let hint = hint(for: argument, among: siblings, prefix: words.map { $0 + " " }.joined())
      throw UsageError(ShownArgument.text(argument), "unknown command\(hint)")
    }
    words = next
    command = table.command(next)
  }

  private var hasOnlyGlobalOptions: Bool {
    values.keys.allSatisfy { name in Option.global.contains { $0.name == name } }
  }

  private func missingCommand() -> UsageError {
    guard !words.isEmpty else { return UsageError("", "no command given") }
    let next = table.commands(under: words).map(\.name).joined(separator: ", ")
    return UsageError("", "incomplete command; available: \(next)")
  }

  // MARK: Options

  private mutating func parseOption(_ argument: String) throws(UsageError) {
    let known = Option.global + (command?.options ?? [])
    let (shown, inline) = Self.split(argument)
    guard let option = known.first(where: { "--\($0.name)" == shown || Self.short($0) == shown })
    else { throw unknownOption(shown, known) }
    // Messages use the long name, whichever was given.
    let name = "--\(option.name)"
    if option.name == "ledger", let command, !command.usesLedger {
      throw UsageError(name, "this command does not use a ledger")
    }
    if values[option.name] != nil, !option.isRepeatable {
      throw UsageError(name, "given twice")
    }
    guard let value = option.value else {
      if inline != nil { throw UsageError(name, "takes no value") }
      values[option.name] = []
      return
    }
    let text: String
    if let inline { text = inline } else { text = try followingValue(of: name, value) }
    try check(text, of: option, value)
    values[option.name, default: []].append(text)
  }

  private static func split(_ argument: String) -> (name: String, value: String?) {
    guard argument.hasPrefix("--"), let equals = argument.firstIndex(of: "=") else {
      return (argument, nil)
    }
    return (String(argument[..<equals]), String(argument[argument.index(after: equals)...]))
  }

  private static func short(_ option: Option) -> String? { option.short.map { "-\($0)" } }

  private func unknownOption(_ shown: String, _ known: [Option]) -> UsageError {
    let name = String(shown.drop { $0 == "-" })
    if command == nil, table.commands.contains(where: { $0.options.contains { $0.name == name } }) {
      return UsageError("--\(name)", "must come after the command")
    }
    if let advice = command?.misnomers[name] { return UsageError("--\(name)", advice) }
    let hint = jsonHint(name) ?? hint(for: name, among: known.map(\.name), prefix: "--")
    // Only the letter of `-xVALUE` is shown: the value could be a secret.
    let safe = shown.hasPrefix("--") ? ShownArgument.text(shown) : visible(shown.prefix(2))
    return UsageError(safe, "unknown option\(hint)")
  }

  /// A hint for users who expect `--json` everywhere.
  private func jsonHint(_ name: String) -> String? {
    guard name == "json", let command else { return nil }
    if command.options.contains(where: { $0.name == "format" }) { return "; use --format json" }
    return ["replay", "config check"].contains(command.name)
      ? "; \(command.name) always prints JSON" : nil
  }

  private mutating func followingValue(
    of name: String, _ value: Option.Value
  ) throws(UsageError) -> String {
    guard let next = arguments.first else {
      throw UsageError(name, "requires a value: \(value.name)")
    }
    if next.hasPrefix("-"), next != "-" {
      throw UsageError(
        name,
        "requires a value: \(value.name); if it begins with a hyphen, write \(name)=\(value.name)")
    }
    arguments.removeFirst()
    return next
  }

  private func check(
    _ text: String, of option: Option, _ value: Option.Value
  ) throws(UsageError) {
    if text.isEmpty { throw UsageError("--\(option.name)", "\(value.name) is empty") }
    guard !value.allowed.isEmpty else { return }
    guard value.isList else { return try check(text, of: option, among: value.allowed) }
    var seen = Set<String>()
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      try check(String(part), of: option, among: value.allowed)
      if !seen.insert(String(part)).inserted {
        throw UsageError("--\(option.name) \(part)", "given twice")
      }
    }
  }

  private func check(
    _ text: String, of option: Option, among allowed: [String]
  ) throws(UsageError) {
    if allowed.contains(text) { return }
    let shown = option.value?.isSecret == true ? "" : " \(ShownArgument.text(text))"
    throw UsageError(
      "--\(option.name)\(shown)",
      "must be \(alternatives(allowed))\(hint(for: text, among: allowed))")
  }

  /// Names everything that is missing at once.
  private func checkRequired(_ command: Command) throws(UsageError) {
    var missing: [(name: String, choice: String)] = []
    for (index, positional) in command.positionals.enumerated()
    where index >= positionals.count && (positional.arity == .one || positional.arity == .oneOrMore)
    {
      let choice = positional.allowed.isEmpty ? "" : ": \(alternatives(positional.allowed))"
      missing.append((positional.name, choice))
    }
    for option in command.options where option.isRequired && values[option.name] == nil {
      missing.append(("--\(option.name)", ""))
    }
    guard let first = missing.first else { return }
    if missing.count == 1 { throw UsageError(first.name, "is missing\(first.choice)") }
    throw UsageError(missing.map(\.name).joined(separator: ", "), "are missing")
  }

  // MARK: Positionals

  private func checkPositionals(_ command: Command) throws(UsageError) {
    var given = positionals[...]
    for positional in command.positionals {
      let taken: ArraySlice<String>
      switch positional.arity {
      case .one, .optional: taken = given.prefix(1)
      case .oneOrMore, .any: taken = given
      }
      given = given.dropFirst(taken.count)
      for text in taken { try check(text, of: positional) }
    }
    // Surplus arguments are counted, not shown: one could be a user identifier.
    if !given.isEmpty {
      let names = command.positionals.map(\.name).joined(separator: " ")
      let cause = given.count == 1 ? "one argument too many" : "\(given.count) arguments too many"
      throw UsageError("", names.isEmpty ? cause : "\(cause) after \(names)")
    }
  }

  private func check(_ text: String, of positional: Positional) throws(UsageError) {
    if text.isEmpty { throw UsageError(positional.name, "is empty") }
    guard !positional.allowed.isEmpty, !positional.allowed.contains(text) else { return }
    throw UsageError(
      ShownArgument.text(text),
      "\(positional.name) must be \(alternatives(positional.allowed))"
        + hint(for: text, among: positional.allowed))
  }
}

/// `a, b or c`.
func alternatives(_ names: [String]) -> String {
  guard let last = names.last, names.count > 1 else { return names.first ?? "" }
  return names.dropLast().joined(separator: ", ") + " or " + last
}

// MARK: - A parsed command line, checked against the table

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
