// Help for the terminal, made from the table.
import Intake

/// Help lines are at most this long, even on a wider terminal.
private let helpWidthColumns = 80

/// Writes help for the commands that begin with `words`; without words, the overview.
func writeHelp(
  _ words: [String], to output: Output, terminal: Terminal, table: CommandTable = .standard
) throws {
  let found = table.commands(under: words)
  if found.isEmpty {
    let names = table.commands.map(\.name)
    let name = words.joined(separator: " ")
    throw UsageError(
      ShownArgument.text(name), "unknown command\(hint(for: name, among: names))", command: "help")
  }
  if let command = table.command(words) {
    try writeHelp(for: command, to: output, terminal: terminal)
  } else {
    try writeOverview(of: found, words: words, to: output, terminal: terminal)
  }
}

private func writeOverview(
  of commands: [Command], words: [String], to output: Output, terminal: Terminal
) throws(OutputError) {
  let group = words.isEmpty ? "COMMAND" : words.joined(separator: " ") + " COMMAND"
  if words.isEmpty { try output.writeLine("\(programSummary)\n") }
  try output.writeLine("\(terminal.bold("Usage:")) ledgerctl \(group) [ARGUMENTS] [OPTIONS]")
  try output.writeLine()
  try output.writeLine(terminal.bold("Commands:"))
  try writeDefinitions(commands.map { ($0.name, $0.summary) }, to: output)
  if words.isEmpty {
    try output.writeLine()
    try output.writeLine(terminal.bold("Options of all commands:"))
    try writeDefinitions(Option.global.map { ($0.signature, $0.description) }, to: output)
  }
  try output.writeLine()
  try output.writeLine("See 'ledgerctl help COMMAND' for details of a command.")
}

private func writeHelp(
  for command: Command, to output: Output, terminal: Terminal
) throws(OutputError) {
  try output.writeLine("\(command.summary).\n")
  let lines = wrapped(["Usage:"] + command.usage, widthColumns: helpWidthColumns - 4)
  for (index, line) in lines.enumerated() {
    let styled = index == 0 ? terminal.bold("Usage:") + line.dropFirst(6) : "    " + line
    try output.writeLine(styled)
  }
  for paragraph in command.details {
    try output.writeLine()
    for line in wrapped(plain(paragraph), widthColumns: helpWidthColumns) {
      try output.writeLine(line)
    }
  }
  if !command.positionals.isEmpty {
    try output.writeLine("\n" + terminal.bold("Arguments:"))
    try writeDefinitions(command.positionals.map { ($0.name, $0.description) }, to: output)
  }
  try output.writeLine("\n" + terminal.bold("Options:"))
  try writeDefinitions(command.allOptions.map { ($0.signature, $0.description) }, to: output)
  if !command.examples.isEmpty {
    try output.writeLine("\n" + terminal.bold("Examples:"))
    for example in command.examples {
      try output.writeLine("  # \(example.says)\n  \(example.line)")
    }
  }
}

private func writeDefinitions(
  _ definitions: [(term: String, text: String)], to output: Output
) throws(OutputError) {
  // A long term gets its own line instead of pushing all texts to the right.
  let widest = definitions.map(\.term.count).filter { $0 <= 26 }.max() ?? 0
  for (term, text) in definitions {
    let lines = wrapped(plain(text), widthColumns: helpWidthColumns - widest - 4)
    let indent = String(repeating: " ", count: widest + 4)
    if term.count > widest {
      try output.writeLine("  " + term)
      for line in lines { try output.writeLine(indent + line) }
    } else {
      let space = String(repeating: " ", count: widest - term.count + 2)
      try output.writeLine("  " + term + space + (lines.first ?? ""))
      for line in lines.dropFirst() { try output.writeLine(indent + line) }
    }
  }
}

/// The texts contain the reference's Markdown; on a terminal it is removed.
private func plain(_ text: String) -> String { text.replacingBackquotes }

/// The words of `text` in lines of at most this many columns; a longer word gets its own line.
func wrapped(_ text: String, widthColumns limit: Int) -> [String] {
  wrapped(text.split(separator: " ").map(String.init), widthColumns: limit)
}

/// Unbreakable pieces in lines of at most this many columns; a longer piece gets its own line.
func wrapped(_ pieces: [String], widthColumns limit: Int) -> [String] {
  var lines: [String] = []
  var line = ""
  for word in pieces {
    if !line.isEmpty, line.count + 1 + word.count > limit {
      lines.append(line)
      line = ""
    }
    line += line.isEmpty ? word : " " + word
  }
  if !line.isEmpty { lines.append(line) }
  return lines
}

extension String {
  fileprivate var replacingBackquotes: String { String(filter { $0 != "`" }) }
}
