// docs/cli.md, made from the table.

/// Writes the reference of all commands.
func writeMarkdownReference(
  to output: Output, table: CommandTable = .standard
) throws(OutputError) {
  try output.write(
    """
    # Command line

    \(programSummary)
    `ledgerctl help --markdown` prints this page, from the same table as parsing and help.

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
    - Wrong usage is found before any data is touched: exit code 2, nothing read or written.
    - If a file or folder inside a ledger is a symbolic link, or group or others may write to it, every command ends \
    with exit code 1. The path to the ledger's directory itself may contain links.
    - `-o FILE` replaces FILE after everything is written. A FILE inside a ledger's directory is refused, also if a \
    link leads there.
    - An error is one line on standard error: `ledgerctl: operation: object: cause`. It never contains a receipt, \
    a token or a user identifier. At most 24 characters of an invalid argument are shown. Any part of an argument, a \
    path included, that looks like a token, base64, a JWS or a long hexadecimal number is shown as \
    `[47 characters, not shown]`. The name of an existing file or folder is shown unless it looks like a token.
    - A point in time (POINT) is a position, a day (UTC) or an RFC 3339 time. Digits of a time beyond the millisecond \
    are ignored.
    - Control characters in text from the data are escaped.
    - Progress is shown on standard error if that is a terminal. `NO_COLOR` turns bold text off.
    - If the reader of a pipe closes it, the command ends quietly. SIGINT, SIGTERM and SIGHUP end the command after it \
    has cleaned up; a second SIGINT or SIGTERM ends it immediately. SIGHUP stays ignored if it was, as under `nohup`.
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
  // A bar would end the cell, even inside code.
  "| `\(escaped(name))` | \(escaped(text)) |"
}

private func escaped(_ text: String) -> String {
  text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
}
