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
  try output.writeLine()
  for convention in programConventions { try output.writeLine("- \(convention)") }
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
