// The layout of a report, put between its rows and the writer of a format.

extension ReportLayout {
  /// A writer that passes on to `writer` what this layout shows: the selected columns, and rows of totals.
  package func applied(to writer: any ReportWriter) -> any ReportWriter {
    let below: any ReportWriter = hasTotal ? TotalRows(to: writer) : writer
    return columns.isEmpty ? below : ColumnSelection(columns, to: below)
  }
}
