// Text tables with aligned columns and escaped text.

/// Rows under headings. Cells are escaped when they are added.
struct TextTable {
  /// A column; one of text is written as its heading alone.
  struct Column: ExpressibleByStringLiteral {
    let heading: String
    /// Numbers are aligned to the right.
    let isNumber: Bool

    init(_ heading: String, isNumber: Bool = false) {
      self.heading = heading
      self.isNumber = isNumber
    }

    init(stringLiteral heading: String) { self.init(heading) }

    static func number(_ heading: String) -> Column { Column(heading, isNumber: true) }
  }

  /// Columns are not made narrower than this to fit a terminal.
  private static let narrowestColumns = 6
  /// Wider cells do not widen their column: one huge cell must not pad every row.
  private static let widestColumns = 1000
  private static let gap = "  "
  private let columns: [Column]
  private var rows: [[String]] = []
  private var widths: [Int]

  init(_ columns: [Column]) {
    self.columns = columns
    widths = columns.map { ledgerctl.widthColumns($0.heading) }
  }

  /// Whether there is no row.
  var isEmpty: Bool { rows.isEmpty }

  /// Adds a row. Missing cells are empty; surplus cells are a programming error.
  mutating func append(_ cells: [String]) {
    precondition(cells.count <= columns.count)
    let safe = cells.map { visible($0) }
    for (index, cell) in safe.enumerated() {
      let width = min(ledgerctl.widthColumns(cell), Self.widestColumns)
      widths[index] = max(widths[index], width)
    }
    rows.append(safe)
  }

  /// Writes headings and rows. If the terminal is too narrow, the widest text columns are cut; `isCut` is false for
  /// tables whose text people copy.
  func write(
    to output: Output, terminal: Terminal, isCut: Bool = true
  ) throws(OutputError) {
    let limit = isCut ? terminal.widthColumns : nil
    let widths = fitted(to: limit)
    try output.writeLine(terminal.bold(line(columns.map(\.heading), widths, isCut: limit != nil)))
    for row in rows { try output.writeLine(line(row, widths, isCut: limit != nil)) }
  }

  private func line(_ cells: [String], _ widths: [Int], isCut: Bool) -> String {
    var line = ""
    for (index, column) in columns.enumerated() {
      var cell = index < cells.count ? cells[index] : ""
      if isCut { cell = truncated(cell, toColumns: widths[index]) }
      let count = max(0, widths[index] - ledgerctl.widthColumns(cell))
      let space = String(repeating: " ", count: count)
      if index > 0 { line += Self.gap }
      line += column.isNumber ? space + cell : cell + space
    }
    while line.last == " " { line.removeLast() }
    return line
  }

  /// The columns' widths in a terminal of `limit` columns.
  func fitted(to limit: Int?) -> [Int] {
    guard let limit else { return widths }
    var fitted = widths
    var surplus = widths.reduce(0, +) + Self.gap.count * (widths.count - 1) - limit
    // A cut number is a wrong number: only text columns are narrowed.
    let candidates = columns.indices.filter { !columns[$0].isNumber }
    while surplus > 0, let widest = candidates.max(by: { fitted[$0] < fitted[$1] }),
      fitted[widest] > Self.narrowestColumns
    {
      fitted[widest] -= 1
      surplus -= 1
    }
    return fitted
  }
}
