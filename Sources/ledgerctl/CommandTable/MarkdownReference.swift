// docs/cli.md, made from the table.

/// Writes the reference of all commands.
func writeMarkdownReference(
  to output: Output, table: CommandTable = .standard
) throws(OutputError) {
  try output.write(
    """
    # Command line

    \(programSummary)
    This page is printed by `ledgerctl help --markdown`, from the table that also drives parsing and help.

    | command | what it does |
    |---|---|

    """)
  for command in table.commands {
    let anchor = command.words.joined(separator: "-")
    try output.writeLine("| [`\(command.name)`](#\(anchor)) | \(command.summary) |")
  }
  try writeConventions(to: output)
  for command in table.commands { try write(command, to: output) }
  try output.writeLine("\n## Exit codes\n\n| code | meaning |\n|---|---|")
  for code in ExitCode.allCases { try output.writeLine("| \(code.rawValue) | \(code.meaning) |") }
}

private func writeConventions(to output: Output) throws(OutputError) {
  try output.writeLine("\n## Conventions\n\nOptions of all commands:\n")
  try output.writeLine("| option | meaning |\n|---|---|")
  for option in Option.global { try output.writeLine(row(option.signature, option.description)) }
  try output.writeLine(
    """

    - An option's value follows it as `--option value` or `--option=value`; `--` ends the options.
    - Wrong use is found before any data is touched: exit code 2, nothing read or written.
    - A symbolic link in the place of a file or folder of a ledger, or one that group or others may write to, ends \
    every command with exit code 1. Links may lead to the ledger's directory itself.
    - `-o FILE` replaces FILE when all is written. A FILE in a ledger's directory is refused, by whatever path.
    - An error is one line on standard error: `ledgerctl: operation: object: cause`. It never holds a receipt, \
    a token or a user identifier. At most 24 characters of an argument that was not understood \
    are shown. Of any argument, a path included, `[47 characters, not shown]` stands for what looks like a token, base64, \
    a JWS or a long hexadecimal number. The name of a file or folder that exists is shown unless it looks like a token.
    - A moment is a position, a day (UTC) or an RFC 3339 time; of that, digits beyond the millisecond are cut off.
    - Text from the data is printed with control characters escaped.
    - Progress is shown on standard error while that is a terminal; `NO_COLOR` turns bold text off.
    - A closed pipe ends quietly. SIGINT, SIGTERM and SIGHUP end after tidying up; a second SIGINT or SIGTERM at \
    once. SIGHUP stays ignored where it was, as under `nohup`.
    """)
}

private func write(_ command: Command, to output: Output) throws(OutputError) {
  try output.writeLine("\n## \(command.name)\n\n\(command.summary).\n")
  try output.writeLine(
    "```\n\(wrapped(command.usage, widthColumns: 96).joined(separator: "\n  "))\n```")
  for paragraph in command.details { try output.writeLine("\n" + paragraph) }
  let rows =
    command.positionals.map { ($0.name, $0.description) }
    + command.options.map { ($0.signature, $0.description) }
  if !rows.isEmpty {
    try output.writeLine("\n| argument | meaning |\n|---|---|")
    for (name, text) in rows { try output.writeLine(row(name, text)) }
  }
  guard !command.examples.isEmpty else { return }
  try output.writeLine("\n```sh")
  for example in command.examples {
    try output.writeLine("# \(example.says.filter { $0 != "`" })\n\(example.line)")
  }
  try output.writeLine("```")
}

private func row(_ name: String, _ text: String) -> String {
  // A bar would end the cell, inside code too.
  "| `\(escaped(name))` | \(escaped(text)) |"
}

private func escaped(_ text: String) -> String {
  text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
}
