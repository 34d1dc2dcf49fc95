// What the command table is made of. It drives parsing, help and the reference alike.

/// An option of a command, or of all of them.
struct Option: Sendable {
  /// The value that an option takes.
  struct Value: Sendable {
    /// How help calls it, in capitals.
    let name: String
    /// The values that are taken; empty where the command itself looks at them.
    let allowed: [String]
    /// Whether several of `allowed` may be given, separated by commas.
    let isList: Bool
    /// Whether the value must not be shown in an error.
    let isSecret: Bool
    /// What holds where the option is not given; nil where nothing does.
    let standard: String?

    init(
      _ name: String, allowed: [String] = [], isList: Bool = false, isSecret: Bool = false,
      standard: String? = nil
    ) {
      self.name = name
      self.allowed = allowed
      self.isList = isList
      self.isSecret = isSecret
      self.standard = standard
    }
  }

  /// The long name, without hyphens.
  let name: String
  let short: Character?
  /// Nil for a flag.
  let value: Value?
  let isRepeatable: Bool
  let isRequired: Bool
  let help: String

  init(
    _ name: String, short: Character? = nil, value: Value? = nil, isRepeatable: Bool = false,
    isRequired: Bool = false, help: String
  ) {
    self.name = name
    self.short = short
    self.value = value
    self.isRepeatable = isRepeatable
    self.isRequired = isRequired
    self.help = help
  }
}

/// An argument that is known by its place.
struct Positional: Sendable {
  enum Arity: Sendable { case one, optional, oneOrMore, any }

  /// How help calls it, in capitals.
  let name: String
  let arity: Arity
  /// The values that are taken; empty where the command itself looks at them.
  let allowed: [String]
  let help: String

  init(_ name: String, arity: Arity = .one, allowed: [String] = [], help: String) {
    self.name = name
    self.arity = arity
    self.allowed = allowed
    self.help = help
  }
}

/// A command line that works, and what it is good for.
struct Example: Sendable {
  let line: String
  let says: String

  init(_ line: String, _ says: String) {
    self.line = line
    self.says = says
  }
}

/// One command.
struct Command: Sendable {
  /// `["app", "add"]`.
  let words: [String]
  /// One line, an imperative without a full stop.
  let summary: String
  /// Paragraphs.
  let details: [String]
  /// Only the last may take more than one argument or none.
  let positionals: [Positional]
  let options: [Option]
  let examples: [Example]
  /// Whether it works on an existing ledger, so that `--ledger` means something.
  let usesLedger: Bool
  /// Whether it only reads, so that it may be run again where the projections were found damaged.
  let isReadOnly: Bool
  let run: @Sendable (Invocation, Context) throws -> ExitCode

  init(
    _ words: String, summary: String, details: [String], positionals: [Positional] = [],
    options: [Option] = [], examples: [Example] = [], usesLedger: Bool = true,
    isReadOnly: Bool = false, run: @escaping @Sendable (Invocation, Context) throws -> ExitCode
  ) {
    self.words = words.split(separator: " ").map(String.init)
    self.summary = summary
    self.details = details
    self.positionals = positionals
    self.options = options
    self.examples = examples
    self.usesLedger = usesLedger
    self.isReadOnly = isReadOnly
    self.run = run
  }

  /// The words as they are typed.
  var name: String { words.joined(separator: " ") }
}

extension Option {
  static let ledger = Option(
    "ledger", value: Value("DIR"),
    help: "the ledger's directory; else `LEDGER_DIR`, else the current directory where it is one")
  static let help = Option("help", short: "h", help: "print help for the command")
  static let version = Option("version", help: "print the program's version")
  /// Options that may stand anywhere.
  static let global = [ledger, help, version]

  static let json = Option("json", help: "print JSON instead of text for people")
}
