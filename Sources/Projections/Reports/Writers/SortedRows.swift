// A report's rows in an order that the reader asked for, perhaps only the first of them (rule R9).
import Revenue

/// Keeps rows until the last is there, sorts them, and passes on those to be shown.
///
/// Amounts in different currencies are not compared: rows are sorted by currency first. Rows that are equal stay in
/// the report's own order.
final class SortedRows: ReportWriter {
  /// A row that is kept.
  private struct Row {
    /// The place of its cells in `cells`.
    var cells: Range<Int>
    /// Its place in the report's own order.
    var ordinal: Int
    /// Of the column that rows are sorted by; nil for an empty cell.
    var value: SortValue?
    /// Nil if there is none, or if rows of all currencies are compared.
    var currency: Currency?
  }

  /// The number of rows that are kept before any is discarded.
  private static let pruningCount = 4096

  private let inner: any ReportWriter
  private let sort: ReportSort?
  private let shownMax: Int
  private var sortIndex = -1
  private var currencyIndex: Int?
  private var isByAmount = false
  /// Known from the first cell that is not empty.
  private var isDescending = false

  private var rows: [Row] = []
  private var cells = PackedCells()
  private var pruningLimit = SortedRows.pruningCount
  private var row = Row(cells: 0..<0, ordinal: 0)
  private var index = 0
  /// How many rows the report has, and how many of them were passed on.
  private(set) var rowCount = 0
  private(set) var shownCount = 0

  /// - Returns: nil if the request asks for all rows in the report's own order.
  init?(_ request: ReportRequest, to inner: any ReportWriter) {
    if request.sort == nil, request.top == nil { return nil }
    self.inner = inner
    sort = request.sort
    shownMax = request.top ?? .max
  }

  func begin(_ columns: [ReportColumn]) throws {
    if let sort {
      guard let index = columns.firstIndex(where: { $0.name == sort.column }) else {
        throw ProjectionError.usage("the report has no column '\(sort.column)' to sort by")
      }
      sortIndex = index
      isByAmount = columns[index].content == .amount
      currencyIndex = columns.firstIndex { $0.name == "currency" }
      isDescending = sort.isDescending ?? columns[index].content.falls
    }
    try inner.begin(columns)
  }

  func write(_ cell: ReportCell) throws {
    if sort == nil {
      if rowCount < shownMax { try inner.write(cell) }
      return
    }
    if index == 0 { row = Row(cells: cells.end..<cells.end, ordinal: rowCount) }
    if index == sortIndex {
      row.value = SortValue(cell)
      if case .amounts(let sums) = cell { note(sums) }
    }
    if index == currencyIndex, isByAmount, case .currency(let currency) = cell {
      row.currency = currency
    }
    cells.append(cell)
    index += 1
  }

  /// A row with sums in several currencies stands with the first of them.
  private func note(_ sums: [Currency: Int128]) {
    isByAmount = true
    isDescending = sort?.isDescending ?? true
    row.currency = sums.keys.min { $0.ordinal < $1.ordinal }
  }

  func endRow() throws {
    defer { rowCount += 1 }
    if sort == nil {
      if rowCount >= shownMax { return }
      shownCount += 1
      return try inner.endRow()
    }
    row.cells = row.cells.lowerBound..<cells.end
    rows.append(row)
    index = 0
    if rows.count >= pruningLimit, shownMax < rows.count { prune() }
  }

  func end(_ summary: ReportSummary) throws {
    for row in firstRows() {
      try cells.forEach(in: row.cells) { try inner.write($0) }
      try inner.endRow()
      shownCount += 1
    }
    try inner.end(self.summary(summary))
  }

  /// The summary of the rows that are shown; totals stay those of all.
  func summary(_ summary: ReportSummary) -> ReportSummary {
    var summary = summary
    summary.rowCount = shownCount
    summary.notShownCount = rowCount - shownCount
    return summary
  }

  // MARK: Order

  /// The rows to be shown of those that are kept, in order.
  private func firstRows() -> [Row] {
    Array(rows.sorted(by: precedes).prefix(shownMax))
  }

  /// Throws away rows that can no longer be among those shown.
  private func prune() {
    var kept = PackedCells()
    rows = firstRows().map { row in
      var row = row
      row.cells = kept.append(cells, row.cells)
      return row
    }
    cells = kept
    pruningLimit = max(Self.pruningCount, 2 * rows.count)
  }

  private func precedes(_ left: Row, _ right: Row) -> Bool {
    if isByAmount, left.currency != right.currency {
      // Currencies are numbered in the order of their codes. None comes last.
      return (left.currency?.ordinal ?? .max) < (right.currency?.ordinal ?? .max)
    }
    switch (left.value, right.value) {
    case (let one?, let other?):
      if one.precedes(other) { return !isDescending }
      if other.precedes(one) { return isDescending }
    // Empty cells come last, whatever the direction.
    case (nil, .some): return false
    case (.some, nil): return true
    case (nil, nil): break
    }
    return left.ordinal < right.ordinal
  }
}

/// What a cell is sorted by.
private enum SortValue {
  case number(Int128)
  /// Compared as bytes.
  case text([UInt8])

  /// - Returns: nil for an empty cell.
  init?(_ cell: ReportCell) {
    switch cell {
    case .integer(let value), .time(let value): self = .number(Int128(value))
    case .amount(let micros, _): self = .number(micros)
    case .amounts(let sums):
      guard let first = sums.min(by: { $0.key.ordinal < $1.key.ordinal }) else { return nil }
      self = .number(first.value)
    case .text(let text):
      if text.isEmpty { return nil }
      self = .text(Array(text))
    case .word(let word): self = .text(Array(word.text))
    case .decimal(let digits): self = .text(Array(digits.utf8))
    case .currency(let currency): self = .text(Array(currency.description.utf8))
    case .flag(let value): self = .text(Array((value ? "true" : "false").utf8))
    case .list(let texts):
      // As CSV writes it.
      let texts = texts.filter { !$0.isEmpty }
      if texts.isEmpty { return nil }
      self = .text(Array(texts.joined(separator: [0x20])))
    case .integers(let values):
      if values.isEmpty { return nil }
      self = .text(Array(values.map { "\($0)" }.joined(separator: " ").utf8))
    // Reports have none; queries, which do, sort by themselves.
    case .real, .empty: return nil
    }
  }

  func precedes(_ other: SortValue) -> Bool {
    switch (self, other) {
    case (.number(let one), .number(let another)): one < another
    case (.text(let one), .text(let another)): one.lexicographicallyPrecedes(another)
    case (.number, .text): true
    case (.text, .number): false
    }
  }
}

extension ReportColumn.Content {
  /// Whether rows sorted by such a column fall unless the reader asks otherwise.
  fileprivate var falls: Bool { self == .integer || self == .amount || self == .time }
}
