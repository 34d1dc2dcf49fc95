// Help for the terminal, made from the table.
import Base
import Intake

/// Help lines are at most this long, even on a wider terminal.
private let helpWidthColumns = 80

/// Writes help for the commands that begin with `words`; without words, the overview.
func writeHelp(
  _ words: [String], to output: Output, terminal: Terminal, table: CommandTable = .standard
) throws {
  if words.isEmpty { return try writeOverview(of: table.groups, words, to: output, terminal) }
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
    try writeOverview(of: [("Commands", found)], words, to: output, terminal)
  }
}

private func writeOverview(
  of groups: [CommandTable.Group], _ words: [String], to output: Output, _ terminal: Terminal
) throws(OutputError) {
  if words.isEmpty { try output.writeLine("\(programSummary)\n") }
  let group = (words + ["COMMAND"]).joined(separator: " ")
  try output.writeLine("\(terminal.bold("Usage:")) ledgerctl \(group) [ARGUMENTS] [OPTIONS]")
  let names = groups.flatMap(\.commands).map(\.name)
  for (title, commands) in groups {
    try output.writeLine("\n" + terminal.bold("\(title):"))
    try writeDefinitions(commands.map { ($0.name, $0.summary) }, aligned: names, to: output)
  }
  if words.isEmpty {
    try output.writeLine("\n" + terminal.bold("Options of all commands:"))
    try writeDefinitions(Option.global.map { ($0.signature, $0.description) }, to: output)
  }
  try output.writeLine("\nSee 'ledgerctl help COMMAND' for details of a command.")
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

/// - Parameter terms: those of all lists whose texts are to stand in one column; nil is this list alone.
private func writeDefinitions(
  _ definitions: [(term: String, text: String)], aligned terms: [String]? = nil, to output: Output
) throws(OutputError) {
  // A long term gets its own line instead of pushing all texts to the right.
  let widest = (terms ?? definitions.map(\.term)).map(\.count).filter { $0 <= 26 }.max() ?? 0
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

// MARK: - What holds for all commands, as the reference and the manual say it

/// Paragraphs with the marks of the reference.
let programConventions = [
  "An option's value follows it as `--option value` or `--option=value`; `--` ends the options. In a usage, what is in "
    + "brackets may be left out, and what `…` follows may be repeated.",
  "Commands that read the projections bring them up to date first.",
  "Wrong usage is found before any data is touched: exit code 2, nothing read or written.",
  "`-o FILE` replaces FILE after everything is written; `-` is standard output, where a command can write there. A "
    + "FILE inside a ledger's directory is refused, also if a link leads there.",
  "A point in time (POINT) is a position, a day (UTC), an RFC 3339 time or the file of a manifest: a value that holds a "
    + "`/` or ends in `.json`. `replay --from` and `--until` take no manifest. Digits of a time beyond the millisecond "
    + "are ignored.",
  "An error is one line on standard error: `ledgerctl: operation: object: cause`. It never contains a receipt, a token "
    + "or a user identifier. At most 24 characters of an invalid argument are shown; a part that looks like a token, "
    + "or like another secret and is not an existing file, is shown as `[47 characters, not shown]`.",
  "If a file or folder inside a ledger is a symbolic link, or group or others may write to it, every command ends "
    + "with exit code 1. The path to the ledger's directory itself may contain links.",
  "Control characters in text from the data are escaped. Progress is shown on standard error if that is a terminal. "
    + "`NO_COLOR` turns bold text off.",
  "On a terminal, `export`, `query`, `show`, `history` and `diff` show tables that are longer than it in "
    + "`PAGER`, by default `less` with `LESS=FRX` unless `LESS` is set. `--no-pager`, and a PAGER that is empty "
    + "or `cat`, print them at once.",
  "If the reader of a pipe closes it, the command ends quietly. SIGINT, SIGTERM and SIGHUP end the command after it "
    + "has cleaned up; a second SIGINT or SIGTERM ends it immediately. SIGHUP stays ignored if it was, as under "
    + "`nohup`.",
]

/// Variables of the environment that the program reads.
let programEnvironment = [
  (name: "LEDGER_DIR", text: "the ledger's directory, where `--ledger` does not name it"),
  (name: "TMPDIR", text: "where temporary files go; default `/tmp`"),
  (name: "NO_COLOR", text: "if set and not empty, headings are not bold"),
  (name: "PAGER", text: "shows tables that are longer than the terminal; empty or `cat`: none"),
  (name: "TERM", text: "`dumb`: no bold headings, no pager"),
]

/// Files that the program reads or writes; what has no path of its own is in the ledger's directory.
let programFiles = [
  (name: "ledger.json", text: "the ledger's identity"),
  (name: "log/", text: "the events, the only source of truth"),
  (name: "config.json", text: "the settings of the server; without it, defaults apply"),
  (
    name: "keys/", text: "private keys that sign checkpoints, and those of the App Store Server API"
  ),
  (name: "checkpoints/", text: "signed heads"),
  (
    name: "projections/",
    text: "what is computed from the log; it can be removed and is built again"
  ),
  (name: "snapshots/", text: "saved projections"),
  (
    name: "erasures/",
    text: "requests to erase data, and their results"
  ),
  (name: "webhooks/", text: "how far each webhook came"),
  (name: "/usr/share/zoneinfo", text: "the rules of time zones"),
]
