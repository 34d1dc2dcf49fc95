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
  try help(HelpOptions(invocation), context)
}

/// The options of `help`.
struct HelpOptions: Equatable, Sendable {
  let words: [String]
  let isMarkdown: Bool
  /// Nil is standard output.
  let outputPath: String?

  init(_ invocation: Invocation) throws(UsageError) {
    words = invocation.positionals
    isMarkdown = invocation.has("markdown")
    outputPath = invocation.value("output")
    if isMarkdown, !words.isEmpty {
      throw UsageError("--markdown", "prints all commands and takes no arguments")
    }
  }
}

private func help(_ options: HelpOptions, _ context: Context) throws -> ExitCode {
  try withDestination(options.outputPath, context) { output in
    if options.isMarkdown {
      try writeMarkdownReference(to: output)
    } else {
      try writeHelp(options.words, to: output, terminal: context.terminal)
    }
  }
  return .done
}
