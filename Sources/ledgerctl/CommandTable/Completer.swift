// What may stand at the end of a command line: commands, options, values, files, and names of the ledger.
import Projections

/// A word that may follow, and what it stands for.
typealias CompletionChoice = (word: String, meaning: String)

/// What is offered for the last word of a command line.
enum CompletionOffer {
  case files, folders
  case words([CompletionChoice])
  /// Any of these, separated by commas.
  case list([CompletionChoice])

  static let nothing = CompletionOffer.words([])
}

/// Reads a command line as far as it is typed, and finds what its last word may become.
struct Completer {
  private let table: CommandTable
  /// The last word without the name of an option before it.
  private(set) var typed: String
  /// `--name=` before the last word, or nothing.
  private(set) var prefix = ""
  private var words: [String] = []
  private var arguments: [String] = []
  /// The option whose value is the last word.
  private var option: Option?
  private var hasEnded = false
  /// The value of `--ledger`.
  private(set) var ledgerPath: String?

  /// - Parameter line: the words behind the program's name.
  init(_ line: [String], table: CommandTable = .standard) {
    self.table = table
    typed = line.last ?? ""
    for word in line.dropLast() { read(word) }
    if option == nil, !hasEnded, typed.hasPrefix("--"), let equals = typed.firstIndex(of: "=") {
      prefix = String(typed[...equals])
      typed = String(typed[equals...].dropFirst())
      option = known(String(prefix.dropLast()))
    }
  }

  private var command: Command? { table.command(words) }
  private var options: [Option] { command?.allOptions ?? Option.global }

  private func known(_ name: String) -> Option? {
    options.first { "--\($0.name)" == name || $0.short.map { "-\($0)" } == name }
  }

  private mutating func read(_ word: String) {
    if let option {
      if option.name == Option.ledger.name { ledgerPath = word }
      self.option = nil
    } else if hasEnded || word == "-" || !word.hasPrefix("-") {
      let next = words + [word]
      if arguments.isEmpty, !table.commands(under: next).isEmpty {
        words = next
      } else {
        arguments.append(word)
      }
    } else if word == "--" {
      hasEnded = true
    } else if let found = known(word), found.value != nil {
      option = found
    } else if word.hasPrefix("--\(Option.ledger.name)=") {
      ledgerPath = String(word.dropFirst(Option.ledger.name.count + 3))
    }
  }

  /// - Parameter names: reads names of the ledger.
  func offer(_ names: (KnownNames) -> [CompletionChoice]) -> CompletionOffer {
    if let option { return option.value.map { offer($0, of: option, names) } ?? .nothing }
    if !prefix.isEmpty { return .nothing }
    if !hasEnded, typed.hasPrefix("-"), typed != "-" {
      return .words(
        options.flatMap { option in
          option.typed.map { ($0, Self.brief(option.help)) }
        })
    }
    let next = next(after: words)
    if arguments.isEmpty, !next.isEmpty { return .words(next) }
    let positionals = command?.positionals ?? []
    guard let last = positionals.last else { return .nothing }
    let isRepeated = last.arity == .oneOrMore || last.arity == .any
    guard arguments.count < positionals.count || isRepeated else { return .nothing }
    let positional = positionals[min(arguments.count, positionals.count - 1)]
    if !positional.allowed.isEmpty { return .words(positional.allowed.map { ($0, "") }) }
    switch positional.name {
    case "COMMAND": return .words(self.next(after: arguments))
    case "APP": return .words(names(.appFamilies) + names(.bundles))
    default: return Self.offer(positional.name)
    }
  }

  private func offer(
    _ value: Option.Value, of option: Option, _ names: (KnownNames) -> [CompletionChoice]
  ) -> CompletionOffer {
    let words = value.allowed.isEmpty ? value.suggestions : value.allowed
    if !words.isEmpty {
      let choices = words.map { CompletionChoice($0, "") }
      return value.isList || value.name == "LIST" ? .list(choices) : .words(choices)
    }
    switch (option.name, value.name) {
    case ("app", "LIST"): return .list(names(.bundles))
    case ("app", "ID"): return .words(names(.appFamilies))
    case ("product", "LIST"): return .list(names(.products))
    case ("country", "LIST"): return .list(names(.countries))
    case (_, "CURRENCY"): return .words(names(.currencies))
    default: return Self.offer(value.name)
    }
  }

  /// What a value's name in help says of it.
  private static func offer(_ name: String) -> CompletionOffer {
    switch name {
    // A point in time may be the file of a manifest.
    case "FILE", "POINT": .files
    case "DIR": .folders
    case "ZONE": .words(zones().map { ($0, "") })
    default: .nothing
    }
  }

  private static func zones() -> [String] {
    let bytes = (try? readSmallFile("/usr/share/zoneinfo/zone1970.tab")) ?? []
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    return ["UTC"]
      + lines.filter { !$0.hasPrefix("#") }.compactMap { line in
        line.split(separator: "\t").dropFirst(2).first.map(String.init)
      }
  }

  /// The words that may follow those of a command.
  private func next(after words: [String]) -> [CompletionChoice] {
    var seen: Set<String> = []
    return table.commands(under: words).compactMap { command in
      guard command.words.count > words.count, seen.insert(command.words[words.count]).inserted
      else { return nil }
      let next = words + [command.words[words.count]]
      let group = table.commands(under: next).map { $0.words.dropFirst(next.count) }
      return (
        command.words[words.count],
        table.command(next)?.summary
          ?? group.map { $0.joined(separator: " ") }.joined(separator: ", ")
      )
    }
  }

  /// Up to the first semicolon or parenthesis, and without marks of the reference.
  private static func brief(_ text: String) -> String {
    let brief = String(text.prefix { $0 != ";" && $0 != "(" }.filter { $0 != "`" })
    return brief.hasSuffix(" ") ? String(brief.dropLast()) : brief
  }
}

extension Option {
  /// As typed: the long name, then the short one if there is one.
  var typed: [String] { ["--\(name)"] + (short.map { ["-\($0)"] } ?? []) }
}
