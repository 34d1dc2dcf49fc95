// Pages of the manual, made from the table, as roff with the macros of man(7).
import Base

/// A page of the manual: the program's, or that of a command.
struct ManualPage {
  /// Nil is the program itself.
  let command: Command?

  /// `ledgerctl-app-add`.
  var name: String { (["ledgerctl"] + (command?.words ?? [])).joined(separator: "-") }
  var fileName: String { name + ".1" }

  /// All pages, the program's first.
  static func all(_ table: CommandTable = .standard) -> [ManualPage] {
    [ManualPage(command: nil)] + table.commands.map { ManualPage(command: $0) }
  }

  /// The page in roff.
  func roff(_ table: CommandTable = .standard) -> String {
    var page = RoffPage(
      title: name, date: programReleaseDate, source: "ledgerctl \(programVersion)")
    if let command { page.write(command, named: name) } else { page.writeProgram(table) }
    page.section("EXIT STATUS")
    for code in ExitCode.allCases { page.item(code: "\(code.rawValue)", code.meaning) }
    if command?.usesLedger ?? true {
      page.section("ENVIRONMENT")
      for variable in programEnvironment { page.item(code: variable.name, variable.text) }
      page.section("FILES")
      for file in programFiles { page.item(code: file.name, file.text) }
    }
    page.section("SEE ALSO")
    page.references(seeAlso(table))
    return page.text
  }

  /// The pages of commands that this one names, or that share its first word.
  private func seeAlso(_ table: CommandTable) -> [String] {
    guard let command else { return [] }
    let text = command.details.joined(separator: " ")
    let related = table.commands.filter { other in
      other.words != command.words
        && (other.words[0] == command.words[0] || text.contains("`ledgerctl \(other.name)`")
          || text.contains("`ledgerctl \(other.name) ") || text.contains("`\(other.name)`"))
    }
    return ["ledgerctl"] + related.map { ManualPage(command: $0).name }
  }
}

extension RoffPage {
  fileprivate mutating func write(_ command: Command, named name: String) {
    section("NAME")
    line("\(escaped(name, isCode: true)) \\- \(escaped(startingSmall(command.summary)))")
    section("SYNOPSIS")
    synopsis(command.usage, words: command.words.count + 1)
    section("DESCRIPTION")
    for (index, detail) in command.details.enumerated() {
      if index > 0 { paragraph() }
      prose(detail)
    }
    if !command.positionals.isEmpty {
      section("ARGUMENTS")
      for positional in command.positionals {
        item(variable: positional.name, positional.description)
      }
    }
    section("OPTIONS")
    for option in command.allOptions { item(option) }
    guard !command.examples.isEmpty else { return }
    section("EXAMPLES")
    for (index, example) in command.examples.enumerated() {
      if index > 0 { paragraph() }
      prose(example.says + ":")
      code(example.line)
    }
  }

  fileprivate mutating func writeProgram(_ table: CommandTable) {
    section("NAME")
    line(
      "ledgerctl \\- keep a ledger of App Store receipts and report revenue from it")
    section("SYNOPSIS")
    synopsis(["ledgerctl", "COMMAND", "[ARGUMENTS]", "[OPTIONS]"], words: 1)
    section("DESCRIPTION")
    prose(
      "`ledgerctl` records the App Store receipts that apps upload, has them verified, and reports sales, revenue, "
        + "subscriptions and users from them, with figures that lead back to what was recorded."
    )
    paragraph()
    prose(
      "A ledger is a directory with one append-only log of events. Everything else is computed from it. "
        + "`ledgerctl help COMMAND` explains a command, as its page of the manual does."
    )
    for convention in programConventions {
      paragraph()
      prose(convention)
    }
    section("COMMANDS")
    for (title, commands) in table.groups {
      line(".SS \"\(title)\"")
      for command in commands {
        item(reference: ManualPage(command: command).name, command.summary)
      }
    }
    section("OPTIONS")
    for option in Option.global { item(option) }
  }

  private mutating func item(_ option: Option) {
    let names = (option.short.map { ["-\($0)"] } ?? []) + ["--\(option.name)"]
    item(names: names, variable: option.value?.name, option.description)
  }

  /// After a dash a sentence does not begin; abbreviations keep their capitals.
  private func startingSmall(_ summary: String) -> String {
    guard summary.dropFirst().first?.isLowercase == true else { return summary }
    return summary.prefix(1).lowercased() + summary.dropFirst()
  }
}

// MARK: - Text in roff, with the macros of man(7), which groff and mandoc read alike

/// A page that is being written.
struct RoffPage {
  private(set) var text: String

  /// - Parameters:
  ///   - title: the page's name, without its section, which is 1.
  ///   - date: a day as in `2026-11-23`.
  ///   - source: the program and its version.
  init(title: String, date: String, source: String) {
    text = #".\" This page is written by 'ledgerctl help --man'."# + "\n"
    line(
      ".TH \(escaped(title.uppercased(), isCode: true)) 1 \(date) \"\(escaped(source))\" \"Receipt Ledger\""
    )
    // A word is not divided: it may be one to type.
    line(".nh")
    line(".ad l")
  }

  /// A line of roff, as it is.
  mutating func line(_ line: String) { text += line + "\n" }

  mutating func section(_ heading: String) {
    line(".SH " + (heading.contains(" ") ? "\"\(heading)\"" : heading))
  }

  mutating func paragraph() { line(".PP") }

  /// A paragraph with the marks of the reference: what is between backquotes becomes bold.
  mutating func prose(_ paragraph: String) { textLine(marked(paragraph)) }

  /// Lines as they are typed.
  mutating func code(_ lines: String) {
    line(".PP")
    line(".nf")
    line(".RS 4")
    for line in lines.split(separator: "\n", omittingEmptySubsequences: false) {
      textLine(escaped(String(line), isCode: true))
    }
    line(".RE")
    line(".fi")
  }

  /// Pieces of a usage line, of which the first `words` are typed as they are.
  mutating func synopsis(_ pieces: [String], words: Int) {
    textLine(bold(pieces.prefix(words).joined(separator: " ")))
    for piece in pieces.dropFirst(words) { textLine(styled(piece)) }
  }

  mutating func item(code: String, _ description: String) {
    line(".TP")
    textLine(bold(code))
    prose(description)
  }

  mutating func item(variable: String, _ description: String) {
    line(".TP")
    textLine(italic(variable))
    prose(description)
  }

  /// An option: its names, and what stands for its value.
  mutating func item(names: [String], variable: String?, _ description: String) {
    line(".TP")
    textLine(
      names.map(bold).joined(separator: ", ") + (variable.map { " " + italic($0) } ?? ""))
    prose(description)
  }

  /// Another page of section 1, and what it is about.
  mutating func item(reference: String, _ description: String) {
    line(".TP")
    textLine(bold(reference) + "(1)")
    prose(description)
  }

  /// Names of other pages of section 1, and where the documents are.
  mutating func references(_ names: [String]) {
    for (index, name) in names.enumerated() {
      line(".BR \(escaped(name, isCode: true)) (1)" + (index == names.count - 1 ? "" : ","))
    }
    if !names.isEmpty { paragraph() }
    prose(
      "The documents that pages name, like `docs/operations.md`, are installed in `/usr/share/doc/receipt-ledger`."
    )
  }

  /// `[--by LIST]`: names bold, variables italic.
  private func styled(_ piece: String) -> String {
    var text = piece
    var (start, end) = ("", "")
    if text.hasPrefix("[") { (start, text) = ("[", String(text.dropFirst())) }
    if text.hasSuffix("]") { (end, text) = ("]", String(text.dropLast())) }
    if text.hasSuffix("…") { (end, text) = (escaped("…") + end, String(text.dropLast())) }
    let parts = text.split(separator: " ", maxSplits: 1).map(String.init)
    let styled = parts.map { $0.hasPrefix("-") ? bold($0) : italic($0) }
    return start + styled.joined(separator: " ") + end
  }

  private func bold(_ text: String) -> String { "\\fB\(escaped(text, isCode: true))\\fP" }
  private func italic(_ text: String) -> String { "\\fI\(escaped(text, isCode: true))\\fP" }

  /// A line of text: one that begins as a request does is told from it.
  private mutating func textLine(_ text: String) {
    line(text.hasPrefix(".") || text.hasPrefix("'") ? "\\&" + text : text)
  }

  private func marked(_ text: String) -> String {
    let parts = text.split(separator: "`", omittingEmptySubsequences: false).map(String.init)
    return parts.enumerated().map { index, part in
      index.isMultiple(of: 2) ? escaped(part) : part.isEmpty ? "" : bold(part)
    }.joined()
  }

  /// - Parameter isCode: whether the text is to be typed, so that its quotes and hyphens must stay what they are.
  func escaped(_ text: String, isCode: Bool = false) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\e"
      case "-" where isCode: result += "\\-"
      case "'" where isCode: result += "\\(aq"
      case "`": result += "\\(ga"
      case "^": result += "\\(ha"
      case "~": result += "\\(ti"
      case "\"": result += "\\(dq"
      case _ where scalar.isASCII: result.unicodeScalars.append(scalar)
      default:
        let digits = String(scalar.value, radix: 16, uppercase: true)
        result += "\\[u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "]"
      }
    }
    return result
  }
}

// MARK: - docs/cli.md, made from the table

/// Writes the reference of all commands.
func writeMarkdownReference(
  to output: Output, table: CommandTable = .standard
) throws(OutputError) {
  try output.write(
    """
    # Command line

    \(programSummary)
    `ledgerctl help --markdown` prints this page, from the same table as parsing and help.

    | | commands |
    |---|---|

    """)
  for (title, commands) in table.groups {
    let links = commands.map { "[`\($0.name)`](#\($0.words.joined(separator: "-")))" }
    try output.writeLine("| \(title) | \(links.joined(separator: ", ")) |")
  }
  let shared = table.sharedOptions
  try writeConventions(shared, to: output)
  let rows = Set(shared.map(\.row))
  for command in table.commands { try write(command, shared: rows, to: output) }
  try output.writeLine("\n## Exit codes\n\n| code | meaning |\n|---|---|")
  for code in ExitCode.allCases { try output.writeLine("| \(code.rawValue) | \(code.meaning) |") }
}

extension CommandTable {
  /// The options that several commands have in the same words, each once. If an option has several meanings, the
  /// most frequent one is shared.
  fileprivate var sharedOptions: [Option] {
    let all = commands.flatMap(\.options)
    let counts = Dictionary(all.map { ($0.row, 1) }, uniquingKeysWith: +)
    let most = Dictionary(
      all.map { ($0.signature, counts[$0.row, default: 0]) }, uniquingKeysWith: max)
    var rows: Set<String> = []
    return all.filter { option in
      let count = counts[option.row, default: 0]
      return count > 1 && count == most[option.signature] && rows.insert(option.row).inserted
    }
  }
}

private func writeConventions(_ shared: [Option], to output: Output) throws(OutputError) {
  try output.writeLine("\n## Conventions\n")
  for convention in programConventions { try output.writeLine("- \(convention)") }
  try output.writeLine("\nOptions of all commands:\n")
  for option in Option.global { try output.writeLine(option.row) }
  try output.writeLine(
    "\n## Shared options\n\nA command has those that its usage shows, unless its own list says otherwise.\n"
  )
  for option in shared { try output.writeLine(option.row) }
}

private func write(
  _ command: Command, shared: Set<String>, to output: Output
) throws(OutputError) {
  try output.writeLine("\n## \(command.name)\n\n\(command.summary).\n")
  try output.writeLine(
    "```\n\(wrapped(command.usage, widthColumns: 96).joined(separator: "\n  "))\n```")
  for paragraph in command.details { try output.writeLine("\n" + paragraph) }
  let rows =
    command.positionals.map { row($0.name, $0.description) }
    + command.options.map(\.row).filter { !shared.contains($0) }
  if !rows.isEmpty {
    try output.writeLine()
    for row in rows { try output.writeLine(row) }
  }
  guard !command.examples.isEmpty else { return }
  try output.writeLine("\n```sh")
  for example in command.examples {
    try output.writeLine("# \(example.says.filter { $0 != "`" })\n\(example.line)")
  }
  try output.writeLine("```")
}

extension Option {
  /// Its line in a list of the reference.
  fileprivate var row: String { Commands.row(signature, meaning) }
}

private func row(_ name: String, _ text: String) -> String { "- `\(name)`: \(text)" }
