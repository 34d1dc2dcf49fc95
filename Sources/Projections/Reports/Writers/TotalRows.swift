// Rows with a report's totals, below its rows.

/// Adds a row for each total: one for each currency, and one for what has none.
final class TotalRows: ReportWriter {
  private let writer: any ReportWriter
  private var columns: [ReportColumn] = []

  init(to writer: any ReportWriter) { self.writer = writer }

  func begin(_ columns: [ReportColumn]) throws {
    self.columns = columns
    try writer.begin(columns)
  }

  func write(_ cell: ReportCell) throws { try writer.write(cell) }

  func endRow() throws { try writer.endRow() }

  func end(_ summary: ReportSummary) throws {
    for total in summary.totals {
      for (place, column) in columns.enumerated() {
        try writer.write(place == 0 ? .word("total") : total.cell(column))
      }
      try writer.endRow()
    }
    try writer.end(summary)
  }
}

extension ReportTotal {
  /// What stands in a column of the row of this total.
  fileprivate func cell(_ column: ReportColumn) -> ReportCell {
    if column.name == ReportColumn.currencyName { return currency.map { .currency($0) } ?? .empty }
    guard let sum = sums.first(where: { $0.column.name == column.name }) else { return .empty }
    if column.content != .amount { return .integer(Int64(clamping: sum.value)) }
    // R9: without a currency amounts are empty, not 0.
    return currency == nil ? .empty : .amount(sum.value, currency)
  }
}

extension ReportColumn {
  static let currencyName = "currency"

  /// Whether a row of totals has a value in this column.
  package var isOfTotals: Bool {
    name == Self.currencyName || name == "quantity" || name == "amount"
      || RevenueSums.columns.contains { $0.name == name }
  }
}
