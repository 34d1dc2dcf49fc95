// The reconcile report: the ledger's sales tied to what Apple's files say it sold (settlement rules S8 to S12).
import AppStore
import Base
import Revenue

struct ReconcileReport {
  static let columns = [
    ReportColumn("fiscal_month", isKey: true), ReportColumn("class", isKey: true),
    ReportColumn("line", isKey: true), ReportColumn("product_id", isKey: true),
    ReportColumn("ledger_country"), ReportColumn("apple_country"),
    ReportColumn("ledger_currency"), ReportColumn("apple_currency"),
    ReportColumn("ledger_price", .amount), ReportColumn("apple_price", .amount),
    ReportColumn("ledger_month"), ReportColumn("transaction_month"),
    ReportColumn("ledger_units", .integer), ReportColumn("candidates", .integer),
    ReportColumn("ledger_amount", .amount), ReportColumn("apple_units", .integer),
    ReportColumn("apple_amount", .amount), ReportColumn("difference", .amount),
    ReportColumn("positions", .list), ReportColumn("rows", .list),
  ]

  /// The most positions and rows that are listed.
  private static let listedMax = 20

  private let filter: ReportFilter
  private let matched: MatchedBooks
  private let cells: SettlementReportCells

  /// Matches both sides; filters choose rows of the result.
  init(_ request: ReportRequest, _ database: Database) throws {
    filter = request.filter
    matched = try MatchedBooks(database)
    cells = SettlementReportCells(matched.symbols)
  }

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    for row in matched.reconciliation.rows where shows(row) {
      try write(row, to: writer)
      summary.rowCount += 1
    }
    summary.exceptions = matched.books.exceptionCounts
    summary.settlement = try SettlementFigures(matched) { filter.shows(month: $0.ordinal) }
    return summary
  }

  // MARK: Filters

  private func shows(_ row: ReconciliationRow) -> Bool {
    if let classes = filter.classes, !classes.contains(row.kind) { return false }
    let countries = [row.ledger?.country, row.apple?.country].compactMap { $0 }
    return filter.shows(month: Int(row.month))
      && filter.shows(product: cells.symbols.text(row.product))
      && countries.contains { filter.shows(country: cells.symbols.text($0)) }
  }

  // MARK: Cells

  private func write(_ row: ReconciliationRow, to writer: any ReportWriter) throws {
    try cells.text(monthText(row.month), writer)
    try writer.write(.word(row.kind.word))
    try writer.write(.word((row.isReturn ? LineType.return : .sale).word))
    try cells.text(row.product, writer)
    try cells.text(row.ledger?.country, writer)
    try cells.text(row.apple?.country, writer)
    try cells.text(row.ledger?.currency, writer)
    try cells.text(row.apple?.currency, writer)
    try cells.amount(row.ledger?.priceMicros.map { Int128($0) }, row.ledger?.currency, writer)
    try cells.amount(row.apple?.priceMicros.map { Int128($0) }, row.apple?.currency, writer)
    try cells.text(row.ledger.map { monthText($0.month) } ?? "", writer)
    try cells.text(row.apple.map { monthText($0.transactionMonth) } ?? "", writer)
    try writer.write(row.ledger == nil ? .empty : .integer(try cells.count(row.units)))
    try writer.write(row.ledger == nil ? .empty : .integer(try cells.count(row.candidates)))
    try cells.amount(row.ledgerMicros, row.ledger?.currency, writer)
    try writer.write(row.apple == nil ? .empty : .integer(try cells.count(row.units)))
    try cells.amount(row.appleMicros, row.apple?.currency, writer)
    try cells.amount(row.differenceMicros, row.differenceCurrency, writer)
    let positions = matched.reconciliation.positions(of: row, limit: Self.listedMax)
    try list(positions.first.map { "\($0)" }, moreCount: positions.moreCount, writer)
    let rows = matched.reconciliation.appleRows(of: row, limit: Self.listedMax)
    try list(
      rows.first.map { "\(matched.fileNames[$0.file]):\($0.row)" }, moreCount: rows.moreCount,
      writer)
    try writer.endRow()
  }

  private func monthText(_ month: FiscalMonthOrdinal) -> String {
    month == .noMonth ? "" : Period(.fiscalMonth, ordinal: Int(month)).description
  }

  /// Writes texts, and the number of those that are left out.
  private func list(_ texts: [String], moreCount: Int, _ writer: any ReportWriter) throws {
    let all = (moreCount > 0 ? texts + ["+\(moreCount)"] : texts).map { Array($0.utf8) }
    let bytes = all.flatMap { $0 }
    try withText(bytes) { bytes in
      var start = 0
      try writer.write(
        .list(
          all.map { text in
            defer { start += text.count }
            return UnsafeRawBufferPointer(rebasing: bytes[start..<start + text.count])
          }))
    }
  }
}
