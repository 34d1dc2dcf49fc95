// What a shell offers at each place of a command line, made from the command table.

/// The shells that completions are written for.
enum CompletionShell: String, CaseIterable, Sendable {
  case bash, zsh, fish
}

/// What is offered where a value of an option or an argument stands.
enum CompletionOffer: Equatable, Sendable {
  case nothing, files, folders
  /// The names of time zones.
  case zones
  /// The words of commands, for `help`.
  case commands
  case words([String])
  /// Any of these, separated by commas.
  case list([String])

  /// - Parameters:
  ///   - name: the value's name in help, which says what it is.
  ///   - words: the accepted values, or some of them; empty if there is no list of them.
  init(_ name: String, words: [String], isList: Bool) {
    if !words.isEmpty {
      self = isList ? .list(words) : .words(words)
      return
    }
    self =
      switch name {
      // A point in time may be the file of a manifest.
      case "FILE", "POINT": .files
      case "DIR": .folders
      case "ZONE": .zones
      case "COMMAND": .commands
      default: .nothing
      }
  }
}

extension Option.Value {
  var offer: CompletionOffer {
    let words = allowed.isEmpty ? suggestions : allowed
    return CompletionOffer(name, words: words, isList: isList || name == "LIST")
  }
}

extension Option {
  /// As typed: the long name, then the short one if there is one.
  var typed: [String] { ["--\(name)"] + (short.map { ["-\($0)"] } ?? []) }

  /// Its purpose in a few words, for lists that a shell shows.
  var brief: String { briefText(help) }
}

extension Positional {
  var offer: CompletionOffer { CompletionOffer(name, words: allowed, isList: false) }
  var isRepeated: Bool { arity == .oneOrMore || arity == .any }
  var brief: String { briefText(help) }
}

/// Where a command line can stand: a command, or the first words of some.
struct CompletionPlace {
  /// A word that may follow.
  struct Next {
    let word: String
    let summary: String
  }

  let words: [String]
  let command: Command?
  let next: [Next]

  var name: String { words.joined(separator: " ") }
  var positionals: [Positional] { command?.positionals ?? [] }

  /// The options that may be given here.
  var options: [Option] {
    guard let command else { return Option.global }
    return command.allOptions
  }
}

extension CommandTable {
  /// All places, the program's own name first.
  var places: [CompletionPlace] {
    var seen: Set<[String]> = []
    var places: [CompletionPlace] = []
    for command in commands {
      for count in 0...command.words.count {
        let words = Array(command.words.prefix(count))
        guard seen.insert(words).inserted else { continue }
        places.append(
          CompletionPlace(words: words, command: self.command(words), next: next(after: words)))
      }
    }
    return places
  }

  private func next(after words: [String]) -> [CompletionPlace.Next] {
    var seen: Set<String> = []
    return commands(under: words).compactMap { command in
      guard command.words.count > words.count, seen.insert(command.words[words.count]).inserted
      else { return nil }
      let word = command.words[words.count]
      let own = self.command(words + [word])
      return CompletionPlace.Next(word: word, summary: own?.summary ?? groupSummary(words + [word]))
    }
  }

  /// `add, list, show`: what the commands of a group do.
  private func groupSummary(_ words: [String]) -> String {
    commands(under: words).map { $0.words.dropFirst(words.count).joined(separator: " ") }
      .joined(separator: ", ")
  }
}

/// Writes the completions for a shell.
func writeCompletions(
  for shell: CompletionShell, to output: Output, table: CommandTable = .standard
) throws(OutputError) {
  let text =
    switch shell {
    case .bash: bashCompletions(table)
    case .zsh: zshCompletions(table)
    case .fish: fishCompletions(table)
    }
  try output.write(text)
}

/// Up to the first semicolon or parenthesis, and without marks of the reference.
private func briefText(_ text: String) -> String {
  var brief = String(text.prefix { $0 != ";" && $0 != "(" }.filter { $0 != "`" })
  while brief.last == " " { brief.removeLast() }
  return brief
}

/// A word of a shell: between single quotes, which all three shells take as they are but for a quote itself.
func singleQuoted(_ text: String) -> String {
  "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#)
    + "'"
}
