// `help`: about the program itself.

let helpCommand = Command(
  "help", summary: "Explain the program or a command",
  details: [
    "With the words of a command, explains it; with none, lists them all. `ledgerctl COMMAND --help` says the "
      + "same."
  ],
  positionals: [Positional("COMMAND", arity: .any, help: "the words of a command")],
  options: [
    Option("markdown", help: "print the whole reference in Markdown"),
    Option("output", short: "o", value: .init("FILE"), help: "write to FILE"),
  ],
  examples: [Example("ledgerctl help export", "Explain `export`")],
  usesLedger: false
) { invocation, context in
  try help(HelpOptions(invocation), context)
}

/// What `help` was asked for.
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
      throw UsageError("--markdown", "prints all commands; name none", command: "help")
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
