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
      "A ledger is a directory with one append-only log of events. Everything else is computed from it: tables, "
        + "reports, answers. `ledgerctl help COMMAND` explains a command, as its page of the manual does."
    )
    for convention in programConventions {
      paragraph()
      prose(convention)
    }
    section("COMMANDS")
    for command in table.commands {
      item(reference: ManualPage(command: command).name, command.summary)
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
