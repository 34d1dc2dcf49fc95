// `help`: the program's own help, and its manual.
import Base
import Intake

let helpCommand = Command(
  "help", summary: "Show help about the program or a command",
  details: [
    "Without arguments, lists all commands. `ledgerctl help --man export | man -l -` shows a page of the "
      + "manual."
  ],
  positionals: [Positional("COMMAND", arity: .any, help: "the command's words")],
  options: [
    Option("markdown", help: "print the whole reference in Markdown"),
    Option("man", help: "print a page of the manual, as roff"),
    Option(
      "man-pages", value: .init("DIR"),
      help: "write all pages of the manual into this folder, as `ledgerctl-export.1`"),
    Option("output", short: "o", value: .init("FILE"), help: "write to FILE"),
  ],
  usesLedger: false
) { invocation, context in
  let kinds = ["markdown", "man", "man-pages"].filter(invocation.has)
  if kinds.count > 1 {
    throw UsageError("--\(kinds[1])", "can't be used with --\(kinds[0])")
  }
  for kind in kinds where kind != "man" && !invocation.positionals.isEmpty {
    throw UsageError("--\(kind)", "is about all commands and takes no arguments")
  }
  if let folder = invocation.value("man-pages") {
    if invocation.has("output") {
      throw UsageError("--man-pages", "writes into its own folder, not to --output")
    }
    try writeManualPages(into: folder, context)
    return .done
  }
  let page = try manualPage(invocation)
  try withDestination(invocation.value("output"), context) { output in
    if let page {
      try output.write(page.roff())
    } else if invocation.has("markdown") {
      try writeMarkdownReference(to: output)
    } else {
      try writeHelp(invocation.positionals, to: output, terminal: context.terminal)
    }
  }
  return .done
}

/// The page that `--man` asks for; nil without that option.
private func manualPage(_ invocation: Invocation) throws(UsageError) -> ManualPage? {
  guard invocation.has("man") else { return nil }
  let words = invocation.positionals
  if words.isEmpty { return ManualPage(command: nil) }
  guard let command = CommandTable.standard.command(words) else {
    let name = words.joined(separator: " ")
    throw UsageError(
      ShownArgument.text(name),
      "no page of the manual: not a command\(hint(for: name, among: CommandTable.standard.commands.map(\.name)))"
    )
  }
  return ManualPage(command: command)
}

private func writeManualPages(into folder: String, _ context: Context) throws {
  for page in ManualPage.all() {
    try withDestination("\(folder)/\(page.fileName)", context) { try $0.write(page.roff()) }
  }
}
