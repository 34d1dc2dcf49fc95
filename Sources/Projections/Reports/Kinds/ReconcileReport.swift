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

  /// S8: Apple's stores end their day no later than there.
  private static let zone = "America/Los_Angeles"
  /// The most positions and rows that are listed.
  private static let listedMax = 20

  private let source: ReportSource
  private let filter: ReportFilter
  private let books: SettlementBooks
  private let reconciliation: Reconciliation
  /// The names of the files that count, by their numbers in rows.
  private let fileNames: [String]

  /// Matches both sides.
  init(_ request: ReportRequest, _ database: Database) throws {
    filter = request.filter
    // Filters choose rows of the result: everything is matched before.
    var request = request
    request.filter = ReportFilter()
    source = try ReportSource(database, request)
    books = try SettlementBooks(source.database, source.symbols)
    let counting = books.open.filter(\.counts).sorted { $0.file.sha256Hex < $1.file.sha256Hex }
    fileNames = counting.map(\.file.name)
    reconciliation = try Reconciliation(
      Self.ledgerCells(source), Self.appleCells(counting), books.months, source.symbols)
  }

  private static func ledgerCells(_ source: ReportSource) throws -> LedgerCells {
    var cells = LedgerCells()
    var calendar = PeriodCalendar(.day, in: try TimeZoneTable(zone))
    let unknown = source.symbols.symbol("ZZ")
    var currencies: [Currency: Symbol] = [:]
    try source.forEachConfirmedLine { line in
      guard line.kind.isPaid else { return }
      var currency = Symbol.none
      if let known = line.currency {
        currency = currencies[known] ?? source.symbols.symbol(known)
        currencies[known] = currency
      }
      cells.add(
        day: calendar.dayNumber(atMs: line.dateMs), isReturn: line.type == .return,
        product: line.product, country: line.country == .none ? unknown : line.country,
        currency: currency, quantity: line.quantity, amountMicros: line.amountMicros,
        position: line.position)
    }
    return cells
  }

  private static func appleCells(_ files: [SettlementBooks.OpenFile]) -> AppleCells {
    var cells = AppleCells()
    for (number, file) in files.enumerated() {
      var transactionMonth = file.month
      for row in file.report.rows {
        let day = Int(row.transactionDay)
        let hasDay = row.transactionDay != AppleReport.Row.noDay
        if hasDay, day < transactionMonth.firstDay || day > transactionMonth.lastDay {
          transactionMonth = FiscalMonth(containing: day)
        }
        cells.add(
          row, month: FiscalMonthOrdinal(file.month.ordinal),
          transactionMonth: hasDay ? FiscalMonthOrdinal(transactionMonth.ordinal) : .noMonth,
          file: Int32(number))
      }
    }
    return cells
  }

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    for row in reconciliation.rows where shows(row) {
      try write(row, to: writer)
      summary.rowCount += 1
    }
    summary.exceptions = books.exceptionCounts
    return summary
  }

  // MARK: Filters

  private func shows(_ row: ReconciliationRow) -> Bool {
    if let months = filter.months, !months.contains(monthText(row.month)) { return false }
    if let classes = filter.classes, !classes.contains(row.kind) { return false }
    if let products = filter.products {
      let product = source.symbols.text(row.product)
      guard products.contains(where: { $0.matches(product) }) else { return false }
    }
    if let countries = filter.countries {
      let own = [row.ledger?.country, row.apple?.country].compactMap { $0 }
      guard own.contains(where: { countries.contains(source.symbols.string($0)) }) else {
        return false
      }
    }
    return true
  }

  // MARK: Cells

  private func write(_ row: ReconciliationRow, to writer: any ReportWriter) throws {
    try text(monthText(row.month), writer)
    try writer.write(.word(row.kind.word))
    try writer.write(.word((row.isReturn ? LineType.return : .sale).word))
    try text(row.product, writer)
    try text(row.ledger?.country, writer)
    try text(row.apple?.country, writer)
    try text(row.ledger?.currency, writer)
    try text(row.apple?.currency, writer)
    try amount(row.ledger?.priceMicros.map { Int128($0) }, row.ledger?.currency, writer)
    try amount(row.apple?.priceMicros.map { Int128($0) }, row.apple?.currency, writer)
    try text(row.ledger.map { monthText($0.month) } ?? "", writer)
    try text(row.apple.map { monthText($0.transactionMonth) } ?? "", writer)
    try writer.write(row.ledger == nil ? .empty : .integer(count(row.units)))
    try writer.write(row.ledger == nil ? .empty : .integer(count(row.candidates)))
    try amount(row.ledgerMicros, row.ledger?.currency, writer)
    try writer.write(row.apple == nil ? .empty : .integer(count(row.units)))
    try amount(row.appleMicros, row.apple?.currency, writer)
    try amount(row.differenceMicros, row.differenceCurrency, writer)
    let positions = reconciliation.positions(of: row, limit: Self.listedMax)
    try list(positions.first.map { "\($0)" }, moreCount: positions.moreCount, writer)
    let rows = reconciliation.appleRows(of: row, limit: Self.listedMax)
    try list(
      rows.first.map { "\(fileNames[$0.file]):\($0.row)" }, moreCount: rows.moreCount, writer)
    try writer.endRow()
  }

  private func monthText(_ month: FiscalMonthOrdinal) -> String {
    month == .noMonth ? "" : Period(.fiscalMonth, ordinal: Int(month)).description
  }

  private func count(_ units: Int128) throws -> Int64 {
    guard let count = Int64(exactly: units) else {
      throw ReconciliationFault("a cell has more units than 64 bits hold")
    }
    return count
  }

  private func text(_ symbol: Symbol?, _ writer: any ReportWriter) throws {
    let text = source.symbols.text(symbol ?? .none)
    try writer.write(text.isEmpty ? .empty : .text(text))
  }

  private func text(_ text: String, _ writer: any ReportWriter) throws {
    if text.isEmpty { return try writer.write(.empty) }
    try withText(text) { try writer.write(.text($0)) }
  }

  private func amount(
    _ micros: Int128?, _ currency: Symbol?, _ writer: any ReportWriter
  ) throws {
    guard let micros else { return try writer.write(.empty) }
    let code = source.symbols.text(currency ?? .none)
    try writer.write(.amount(micros, .statedBy(code)))
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
