// Commands, options and arguments. Parsing, help and the reference are all made from them.
import Base

/// An option of a command, or of all of them.
struct Option: Sendable {
  /// The value that an option takes.
  struct Value: Sendable {
    /// Its name in help, in capitals.
    let name: String
    /// The accepted values; empty if the command itself checks them.
    let allowed: [String]
    /// What shells offer where the command itself checks the value.
    let suggestions: [String]
    /// Whether several of `allowed` may be given, separated by commas.
    let isList: Bool
    /// Whether the value must not be shown in an error.
    let isSecret: Bool
    /// The default; nil if there is none.
    let standard: String?

    init(
      _ name: String, allowed: [String] = [], suggestions: [String] = [], isList: Bool = false,
      isSecret: Bool = false, standard: String? = nil
    ) {
      self.name = name
      self.allowed = allowed
      self.suggestions = suggestions
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

/// A positional argument.
struct Positional: Sendable {
  enum Arity: Sendable { case one, optional, oneOrMore, any }

  /// Its name in help, in capitals.
  let name: String
  let arity: Arity
  /// The accepted values; empty if the command itself checks them.
  let allowed: [String]
  let help: String

  init(_ name: String, arity: Arity = .one, allowed: [String] = [], help: String) {
    self.name = name
    self.arity = arity
    self.allowed = allowed
    self.help = help
  }
}

/// A command line that works, and its purpose.
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
  /// One line in the imperative, without a full stop.
  let summary: String
  /// Paragraphs.
  let details: [String]
  /// Only the last may be optional or repeated.
  let positionals: [Positional]
  let options: [Option]
  /// Names that users may take for options of this command, and what each is told.
  let misnomers: [String: String]
  let examples: [Example]
  /// Whether it works on an existing ledger, so that `--ledger` applies.
  let usesLedger: Bool
  /// Whether it only reads, so that it can run again after damaged projections were rebuilt.
  let isReadOnly: Bool
  let run: @Sendable (Invocation, Context) throws -> ExitCode

  init(
    _ words: String, summary: String, details: [String], positionals: [Positional] = [],
    options: [Option] = [], misnomers: [String: String] = [:], examples: [Example] = [],
    usesLedger: Bool = true,
    isReadOnly: Bool = false, run: @escaping @Sendable (Invocation, Context) throws -> ExitCode
  ) {
    self.words = words.split(separator: " ").map(String.init)
    self.summary = summary
    self.details = details
    self.positionals = positionals
    self.options = options
    self.misnomers = misnomers
    self.examples = examples
    self.usesLedger = usesLedger
    self.isReadOnly = isReadOnly
    self.run = run
  }

  /// The words as typed.
  var name: String { words.joined(separator: " ") }
}

extension Option {
  static let ledger = Option(
    "ledger", value: Value("DIR"),
    help:
      "the ledger's directory (default: `LEDGER_DIR`, then the current directory if it is a ledger)"
  )
  static let help = Option("help", short: "h", help: "print help for the command")
  static let version = Option("version", help: "print the program's version")
  /// Options that are accepted anywhere.
  static let global = [ledger, help, version]

  static let json = Option("json", help: "print JSON instead of text")
  static let noPager = Option(
    "no-pager", help: "do not show tables that are longer than the terminal in a pager")
}

// MARK: - All commands, by purpose, in the order in which a new user needs them

/// The commands of the program.
struct CommandTable: Sendable {
  /// Commands with one purpose.
  typealias Group = (title: String, commands: [Command])

  static let standard = CommandTable(groups: [
    (
      "Get started",
      [
        initCommand, appAddCommand, appListCommand, appShowCommand, appEditCommand, helpCommand,
        completionsCommand, versionCommand,
      ]
    ),
    (
      "Take in",
      [
        importCommand, pricesImportCommand, pricesListCommand, pricesWithdrawCommand,
        ratesImportCommand, ratesListCommand, ratesWithdrawCommand, settlementImportCommand,
        settlementListCommand, settlementMapCommand, appStoreSyncCommand,
      ]
    ),
    (
      "Look and report",
      [
        statusCommand, exportCommand, reportCommand, diffCommand, queryCommand, showCommand,
        historyCommand, verifyCommand, replayCommand, calendarCommand,
      ]
    ),
    (
      "Close and prove",
      [
        keyCreateCommand, keyListCommand, checkpointCommand, proveCommand, auditCommand,
        auditProofCommand, auditConsistencyCommand, auditReportCommand,
      ]
    ),
    (
      "Operate",
      [
        serveCommand, doctorCommand, retryCommand, configCheckCommand, configSetSharedSecretCommand,
        tokenCreateCommand, tokenListCommand, tokenRevokeCommand, webhookListCommand,
        webhookTestCommand, webhookReplayCommand, appStoreTestCommand, rebuildCommand,
        projectionsListCommand, snapshotCreateCommand, snapshotListCommand, snapshotVerifyCommand,
        snapshotRestoreCommand, snapshotPruneCommand,
      ]
    ),
    ("Privacy", [redactCommand, redactListCommand, userExportCommand]),
    (
      "Copies",
      [backupCommand, restoreCommand, replicateCommand, promoteCommand, divergenceCommand]
    ),
    ("Many ledgers", [mergeCommand]),
  ])

  let groups: [Group]

  var commands: [Command] { groups.flatMap(\.commands) }

  /// The commands that begin with these words.
  func commands(under words: [String]) -> [Command] {
    commands.filter { $0.words.starts(with: words) }
  }

  /// The command with exactly these words.
  func command(_ words: [String]) -> Command? { commands.first { $0.words == words } }
}

// MARK: - How help and the reference write commands, options and arguments

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

  /// Its purpose, accepted values and default.
  var meaning: String {
    var text = help
    if let value, !value.allowed.isEmpty {
      let names = value.allowed.map { "`\($0)`" }
      text +=
        value.isList ? "; any of \(names.joined(separator: ", "))" : ": \(alternatives(names))"
    }
    if let standard = value?.standard { text += " (default: `\(standard)`)" }
    return text
  }

  /// Its description in help: its meaning, and what the usage in the reference shows.
  var description: String {
    meaning + (isRepeatable ? "; may be repeated" : "") + (isRequired ? "; required" : "")
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
