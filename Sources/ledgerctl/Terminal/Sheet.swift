// Sections of text output: headings, lines, fields, tables.

/// Names and values, a line each.
typealias Fields = [(name: String, value: String)]

/// Writes sections to an output, with an empty line between them.
struct Sheet {
  private let output: Output
  private let terminal: Terminal
  private var isFirst = true

  /// - Parameter output: nil is standard output, which alone may be a terminal.
  init(_ context: Context, to output: Output? = nil) {
    self.output = output ?? context.output
    terminal = self.output === context.output ? context.terminal : Terminal(descriptor: -1)
  }

  mutating func heading(_ text: String) throws {
    if !isFirst { try output.writeLine() }
    try line(terminal.bold(visible(text)))
  }

  /// A line, as it is.
  mutating func line(_ text: String = "") throws {
    isFirst = false
    try output.writeLine(text)
  }

  /// An empty line, which the next section follows directly.
  mutating func gap() throws {
    try output.writeLine()
    isFirst = true
  }

  /// Names and values in two columns.
  mutating func fields(_ fields: Fields) throws {
    let width = fields.map { widthColumns($0.name) }.max() ?? 0
    for (name, value) in fields {
      let space = String(repeating: " ", count: width - widthColumns(name) + 2)
      try line("\(name)\(space)\(visible(value))")
    }
  }

  /// A heading and its table; nothing if the table is empty.
  mutating func table(_ title: String, _ table: TextTable) throws {
    if table.isEmpty { return }
    try heading(title)
    try self.table(table)
  }

  /// A table without a heading.
  mutating func table(_ table: TextTable) throws {
    isFirst = false
    try table.write(to: output, terminal: terminal, isCut: false)
  }
}
