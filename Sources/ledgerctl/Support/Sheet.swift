// Sections of text output: headings, fields, tables.

/// Writes sections to standard output, with an empty line between them.
struct Sheet {
  private let context: Context
  private var isFirst = true

  init(_ context: Context) { self.context = context }

  mutating func heading(_ text: String) throws {
    if !isFirst { try context.output.writeLine() }
    isFirst = false
    try context.output.writeLine(context.terminal.bold(visible(text)))
  }

  /// Names and values in two columns.
  mutating func fields(_ fields: [(name: String, value: String)]) throws {
    isFirst = false
    let width = fields.map { widthColumns($0.name) }.max() ?? 0
    for (name, value) in fields {
      let space = String(repeating: " ", count: width - widthColumns(name) + 2)
      try context.output.writeLine("\(name)\(space)\(visible(value))")
    }
  }

  /// A heading and its table; nothing if the table is empty.
  mutating func table(_ title: String, _ table: TextTable) throws {
    if table.isEmpty { return }
    try heading(title)
    try table.write(to: context.output, terminal: context.terminal, isCut: false)
  }
}
