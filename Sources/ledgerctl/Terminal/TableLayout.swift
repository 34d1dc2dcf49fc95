// How a text table fits a terminal: which headings are wrapped and which texts are cut.

/// The widths of a table's columns, side by side, and their headings in lines.
package struct TableLayout: Equatable {
  /// A column as the layout sees it.
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

  /// A layout of at most `limit` terminal columns; nil if there is none, so that the rows have to stand one under
  /// another. Headings are wrapped first, the widest first; then the widest texts are cut.
  init?(_ columns: [Column], limit: Int) {
    self.init(columns)
    var surplus = widths.reduce(0, +) + Self.gap.count * (widths.count - 1) - limit
    while surplus > 0, let narrower = Self.nextWrap(columns, widths) {
      surplus -= widths[narrower.column] - narrower.width
      widths[narrower.column] = narrower.width
    }
    let candidates = columns.indices.filter { columns[$0].mayBeCut }
    while surplus > 0, let widest = candidates.max(by: { widths[$0] < widths[$1] }),
      widths[widest] > Self.narrowestColumns
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

  /// A heading in lines of at most `limit` columns where its words allow it. It breaks after `_` and at spaces.
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
