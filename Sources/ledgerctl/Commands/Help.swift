// `help`: the program's own help.

let helpCommand = Command(
  "help", summary: "Show help about the program or a command",
  details: [
    "Without arguments, lists all commands. With the words of a command, explains that command, as `ledgerctl "
      + "COMMAND --help` does."
  ],
  positionals: [Positional("COMMAND", arity: .any, help: "the command's words")],
  options: [
    Option("markdown", help: "print the whole reference in Markdown"),
    Option("output", short: "o", value: .init("FILE"), help: "write to FILE"),
  ],
  examples: [Example("ledgerctl help export", "Explain `export`")],
  usesLedger: false
) { invocation, context in
  let isMarkdown = invocation.has("markdown")
  if isMarkdown, !invocation.positionals.isEmpty {
    throw UsageError("--markdown", "prints all commands and takes no arguments")
  }
  try withDestination(invocation.value("output"), context) { output in
    if isMarkdown {
      try writeMarkdownReference(to: output)
    } else {
      try writeHelp(invocation.positionals, to: output, terminal: context.terminal)
    }
  }
  return .done
}
