// Text tables with aligned columns and escaped text, their layout, and sections of text output.

/// Rows under headings. Cells are escaped when they are added.
package struct TextTable {
  /// A column; a string literal makes a text column.
  package struct Column: ExpressibleByStringLiteral {
    let heading: String
    /// Numbers are aligned to the right, and never cut: a cut number is a wrong number.
    fileprivate(set) var isNumber: Bool
    /// Whether it identifies a row: a key is neither cut nor left out.
    let isKey: Bool

    package init(_ heading: String, isNumber: Bool = false, isKey: Bool = false) {
      self.heading = heading
      self.isNumber = isNumber
      self.isKey = isKey
    }

    package init(stringLiteral heading: String) { self.init(heading) }

    package static func number(_ heading: String) -> Column { Column(heading, isNumber: true) }
  }

  /// Wider cells do not widen their column: one huge cell must not pad every row.
  private static let widestColumns = 1000
  private var columns: [Column]
  private var rows: [[String]] = []
  /// The widest cell of each column.
  private var cellWidths: [Int]
  /// Whether each column has a cell that is neither empty nor zero.
  private var isUsed: [Bool]
  /// The columns whose cells are never cut, in addition to keys and numbers.
  private var uncut: Set<Int> = []
  /// The indexes of the columns that are written.
  private var shown: [Int]

  package init(_ columns: [Column]) {
    self.columns = columns
    cellWidths = Array(repeating: 0, count: columns.count)
    isUsed = Array(repeating: false, count: columns.count)
    shown = Array(columns.indices)
  }

  /// Whether there is no row.
  var isEmpty: Bool { rows.isEmpty }

  /// Adds a row. Missing cells are empty; surplus cells are a programming error.
  package mutating func append(_ cells: [String]) {
    precondition(cells.count <= columns.count)
    let safe = cells.map { visible($0) }
    for (index, cell) in safe.enumerated() where !cell.isEmpty {
      let width = min(widthColumns(cell), Self.widestColumns)
      cellWidths[index] = max(cellWidths[index], width)
      if !isUsed[index] { isUsed[index] = !(columns[index].isNumber && Self.isZero(cell)) }
    }
    rows.append(safe)
  }

  private static func isZero(_ number: String) -> Bool {
    number.utf8.allSatisfy { $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: ".") }
  }

  /// Aligns the cells of a column as texts.
  mutating func isText(_ column: Int) { columns[column].isNumber = false }

  /// Writes the cells of a column in full, which amounts in several currencies need.
  package mutating func neverCut(_ column: Int) { uncut.insert(column) }

  /// Leaves out the columns that are empty or zero in every row, except keys.
  /// - Returns: their headings; none if there are no rows.
  package mutating func leaveOutUnused() -> [String] {
    if rows.isEmpty { return [] }
    let kept = columns.indices.filter { columns[$0].isKey || isUsed[$0] }
    if kept.isEmpty { return [] }
    let left = Set(kept)
    shown = kept
    return columns.indices.filter { !left.contains($0) }.map { columns[$0].heading }
  }

  /// Leaves out as many columns as it takes for the table to fit in `limit` terminal columns with legible texts. If
  /// leaving out all of `names` is not enough, all columns stay.
  /// - Parameters:
  ///   - names: the headings of the columns that may be left out, the least important first.
  ///   - isCut: whether texts may be cut, as in `write`.
  /// - Returns: the headings of those left out, in the table's order.
  package mutating func leaveOut(
    _ names: [String], toFit limit: Int, isCut: Bool = true
  ) -> [String] {
    func fits(_ indexes: [Int], _ narrowest: Int = TableLayout.legibleColumns) -> Bool {
      let columns = layoutColumns(indexes, isCut: isCut)
      return TableLayout(columns, limit: limit, narrowestColumns: narrowest) != nil
    }
    var kept = shown
    var left: [Int] = []
    for name in names where !fits(kept) {
      guard let place = kept.firstIndex(where: { columns[$0].heading == name }) else { continue }
      left.append(kept.remove(at: place))
    }
    guard !kept.isEmpty, fits(kept, TableLayout.narrowestColumns) else { return [] }
    // A wide column that went last may make room for narrow ones.
    for index in left.reversed() where fits((kept + [index]).sorted()) {
      kept = (kept + [index]).sorted()
    }
    defer { shown = kept }
    return shown.filter { !kept.contains($0) }.map { columns[$0].heading }
  }

  /// The line that names what was left out.
  /// - Parameter way: how to see it.
  static func notShown(_ names: [String], _ way: String) -> String {
    "Not shown for want of width: \(names.joined(separator: ", ")); \(way)"
  }

  private func layoutColumns(_ indexes: [Int], isCut: Bool) -> [TableLayout.Column] {
    indexes.map { index in
      TableLayout.Column(
        heading: columns[index].heading, cellWidth: cellWidths[index],
        mayBeCut: isCut && !columns[index].isNumber && !columns[index].isKey
          && !uncut.contains(index))
    }
  }

  /// Writes headings and rows. On a terminal that is too narrow, headings are wrapped, then the widest texts are cut,
  /// except keys; if that does not suffice, the rows are written one below another, each cell on its own line. `isCut`
  /// is false for tables whose text people copy: no text is cut there.
  func write(
    to output: Output, terminal: Terminal, isCut: Bool = true
  ) throws(OutputError) {
    try write(to: output, limit: terminal.widthColumns, isCut: isCut) { terminal.bold($0) }
  }

  /// - Parameters:
  ///   - limit: the width in columns; nil sets none.
  ///   - bold: formats a line of headings.
  package func write(
    to output: Output, limit: Int?, isCut: Bool = true, bold: (String) -> String = { $0 }
  ) throws(OutputError) {
    let columns = layoutColumns(shown, isCut: isCut)
    guard let limit else { return try write(to: output, TableLayout(columns), bold) }
    if let layout = TableLayout(columns, limit: limit) {
      try write(to: output, layout, bold)
    } else {
      try writeRecords(to: output)
    }
  }

  // MARK: Side by side

  private func write(
    to output: Output, _ layout: TableLayout, _ bold: (String) -> String
  ) throws(OutputError) {
    let count = layout.headingLineCount
    for number in 0..<count {
      // Headings are directly above their cells.
      let cells = layout.headings.map { lines in
        let index = number - (count - lines.count)
        return index >= 0 ? lines[index] : ""
      }
      try output.writeLine(bold(line(cells, layout)))
    }
    for row in rows {
      var cells = shown.map { $0 < row.count ? row[$0] : "" }
      for index in layout.cut {
        cells[index] = truncated(cells[index], toColumns: layout.widths[index])
      }
      try output.writeLine(line(cells, layout))
    }
  }

  private func line(_ cells: [String], _ layout: TableLayout) -> String {
    var line = ""
    for (index, cell) in cells.enumerated() {
      let count = max(0, layout.widths[index] - widthColumns(cell))
      let space = String(repeating: " ", count: count)
      if index > 0 { line += TableLayout.gap }
      line += columns[shown[index]].isNumber ? space + cell : cell + space
    }
    while line.last == " " { line.removeLast() }
    return line
  }

  // MARK: One below another

  /// A line for each cell, with an empty line between two rows. Empty cells are not written, except for keys.
  private func writeRecords(to output: Output) throws(OutputError) {
    let width = shown.map { widthColumns(columns[$0].heading) }.max() ?? 0
    for (number, row) in rows.enumerated() {
      if number > 0 { try output.writeLine() }
      for index in shown {
        let cell = index < row.count ? row[index] : ""
        if cell.isEmpty, !columns[index].isKey { continue }
        let heading = columns[index].heading
        if cell.isEmpty {
          try output.writeLine(heading)
        } else {
          let space = String(repeating: " ", count: width - widthColumns(heading))
          try output.writeLine(heading + space + TableLayout.gap + cell)
        }
      }
    }
  }
}

// MARK: - Layout

/// How a table fits a terminal: the widths of its columns, side by side, and its headings in lines.
package struct TableLayout: Equatable {
  /// A column's properties for the layout.
  struct Column {
    let heading: String
    /// The widest cell, in terminal columns.
    let cellWidth: Int
    /// Whether its cells may be cut: neither numbers nor what identifies a row.
    let mayBeCut: Bool
  }

  /// The space between two columns.
  static let gap = "  "
  /// Columns are not cut below this width.
  static let narrowestColumns = 6
  /// Columns are left out before texts are cut below this width.
  static let legibleColumns = 12

  private(set) var widths: [Int]
  /// For each column its heading, cut into lines.
  private(set) var headings: [[String]]
  /// The columns whose cells are cut.
  private(set) var cut: Set<Int> = []

  /// Every heading on one line, every cell in full.
  init(_ columns: [Column]) {
    widths = columns.map { max(widthColumns($0.heading), $0.cellWidth) }
    headings = columns.map { [$0.heading] }
  }

  /// A layout of at most `limit` terminal columns; nil if there is none, so that the rows must be written one below
  /// another. Headings are wrapped first, the widest first; then the widest texts are cut.
  init?(_ columns: [Column], limit: Int, narrowestColumns: Int = Self.narrowestColumns) {
    self.init(columns)
    var surplus = widths.reduce(0, +) + Self.gap.count * (widths.count - 1) - limit
    while surplus > 0, let narrower = Self.nextWrap(columns, widths) {
      surplus -= widths[narrower.column] - narrower.width
      widths[narrower.column] = narrower.width
    }
    let candidates = columns.indices.filter { columns[$0].mayBeCut }
    while surplus > 0, let widest = candidates.max(by: { widths[$0] < widths[$1] }),
      widths[widest] > narrowestColumns
    {
      widths[widest] -= 1
      surplus -= 1
      if widths[widest] < columns[widest].cellWidth { cut.insert(widest) }
    }
    if surplus > 0 { return nil }
    headings = zip(columns, widths).map { column, width in
      Self.wrapped(column.heading, toColumns: width).map { truncated($0, toColumns: width) }
    }
  }

  /// The number of lines that the headings take.
  var headingLineCount: Int { headings.map(\.count).max() ?? 0 }

  /// The widest column that a wrapped heading makes narrower, and its width then.
  private static func nextWrap(
    _ columns: [Column], _ widths: [Int]
  ) -> (column: Int, width: Int)? {
    var best: (column: Int, width: Int)?
    for index in columns.indices where best.map({ widths[index] >= widths[$0.column] }) ?? true {
      let wrapped = Self.wrapped(columns[index].heading, toColumns: widths[index] - 1)
      let width = max(columns[index].cellWidth, wrapped.map(widthColumns).max() ?? 0)
      if width < widths[index] { best = (index, width) }
    }
    return best
  }

  /// A heading in lines of at most `limit` columns if its words allow it. It breaks after `_` and at spaces.
  package static func wrapped(_ heading: String, toColumns limit: Int) -> [String] {
    var lines: [String] = []
    for word in words(heading) {
      if let last = lines.last, widthColumns(last) + widthColumns(word) <= limit {
        lines[lines.count - 1] = last + word
      } else {
        // A space that begins a line is not shown.
        lines.append(word.first == " " ? String(word.dropFirst()) : word)
      }
    }
    return lines.isEmpty ? [""] : lines
  }

  /// `returned_units` → `returned_`, `units`; `rows after` → `rows`, ` after`.
  private static func words(_ heading: String) -> [String] {
    var words: [String] = []
    var word = ""
    for character in heading {
      if character == " ", !word.isEmpty {
        words.append(word)
        word = ""
      }
      word.append(character)
      if character == "_" {
        words.append(word)
        word = ""
      }
    }
    if !word.isEmpty { words.append(word) }
    return words
  }
}

// MARK: - Sections

/// Names and values, one per line.
typealias Fields = [(name: String, value: String)]

/// Writes sections to an output, with an empty line between them.
struct TextSections {
  private let output: Output
  private let terminal: Terminal
  private var isFirst = true

  /// - Parameter output: nil for standard output; only that may be a terminal.
  init(_ context: Context, to output: Output? = nil) {
    self.output = output ?? context.output
    terminal = self.output === context.output ? context.terminal : Terminal(descriptor: -1)
  }

  mutating func heading(_ text: String) throws {
    if !isFirst { try output.writeLine() }
    try line(terminal.bold(visible(text)))
  }

  /// A line, unchanged.
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
  /// - Parameter leastImportant: the columns that a narrow terminal leaves out, the least important first.
  mutating func table(_ table: TextTable, leastImportant: [String] = []) throws {
    isFirst = false
    var table = table
    let notShown = terminal.widthColumns.map { limit in
      table.leaveOut(leastImportant, toFit: limit, isCut: false)
    }
    try table.write(to: output, terminal: terminal, isCut: false)
    guard let notShown, !notShown.isEmpty else { return }
    try line()
    try line(TextTable.notShown(notShown, "--json has all"))
  }
}
