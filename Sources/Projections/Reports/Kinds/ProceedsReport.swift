// The proceeds report: what Apple's reports say was sold, what the developer gets and what Apple kept (rule S13).
import Base
import Ledger
import Revenue

struct ProceedsReport {
  static let columns = [
    ReportColumn("fiscal_month", isKey: true), ReportColumn("seller"),
    ReportColumn("product_id", isKey: true), ReportColumn("country_code", isKey: true),
    ReportColumn("line", isKey: true), ReportColumn("currency", isKey: true),
    ReportColumn("share_currency"), ReportColumn("units", .integer),
    ReportColumn("gross", .amount), ReportColumn("share", .amount), ReportColumn("kept", .amount),
  ]

  /// What the rows of a line of the report have in common, in the order of its columns.
  private struct Key: Hashable {
    let month: Int
    let seller: Seller?
    let product: Symbol
    let country: Symbol
    let isReturn: Bool
    let currency: Symbol
    let shareCurrency: Symbol
  }

  private struct Sums {
    var units: Int128 = 0
    var gross: Int128 = 0
    var share: Int128 = 0
  }

  private let cells: SettlementReportCells
  private let filter: ReportFilter
  private let books: SettlementBooks

  init(_ request: ReportRequest, _ database: Database) throws {
    filter = request.filter
    let source = try ReportSource(database, ReportRequest(request.kind))
    books = try SettlementBooks(database, source.symbols)
    cells = SettlementReportCells(source.symbols)
  }

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var sums: [Key: Sums] = [:]
    books.forEachCountingRow { row, file in
      let key = Key(
        month: file.month.ordinal, seller: books.seller(of: row, in: file),
        product: books.product(of: row), country: row.country, isReturn: row.isReturn,
        currency: row.currency, shareCurrency: row.shareCurrency)
      sums[key, default: Sums()].units += Int128(row.units)
      sums[key, default: Sums()].gross += Int128(row.units) * Int128(row.priceMicros)
      sums[key, default: Sums()].share += Int128(row.shareMicros)
    }
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    for (key, sum) in sums.sorted(by: { precedes($0.key, $1.key) }) where shows(key) {
      try write(key, sum, to: writer)
      summary.rowCount += 1
    }
    summary.exceptions = books.exceptionCounts
    return summary
  }

  private func shows(_ key: Key) -> Bool {
    filter.shows(month: key.month) && filter.shows(product: cells.symbols.text(key.product))
      && filter.shows(country: cells.symbols.text(key.country))
  }

  private func precedes(_ left: Key, _ right: Key) -> Bool {
    if left.month != right.month { return left.month < right.month }
    let sellers = (left.seller?.rawValue ?? "", right.seller?.rawValue ?? "")
    if sellers.0 != sellers.1 { return sellers.0.utf8.lexicographicallyPrecedes(sellers.1.utf8) }
    for column in [\Key.product, \.country] where left[keyPath: column] != right[keyPath: column] {
      return cells.symbols.text(left[keyPath: column])
        .precedes(cells.symbols.text(right[keyPath: column]))
    }
    if left.isReturn != right.isReturn { return right.isReturn }
    if left.currency != right.currency {
      return cells.symbols.text(left.currency).precedes(cells.symbols.text(right.currency))
    }
    return cells.symbols.text(left.shareCurrency).precedes(cells.symbols.text(right.shareCurrency))
  }

  private func write(_ key: Key, _ sums: Sums, to writer: any ReportWriter) throws {
    try cells.text(Period(.fiscalMonth, ordinal: key.month).description, writer)
    try cells.text(key.seller?.rawValue ?? "", writer)
    try cells.text(key.product, writer)
    try cells.text(key.country, writer)
    try writer.write(.word((key.isReturn ? LineType.return : .sale).word))
    try cells.text(key.currency, writer)
    try cells.text(key.shareCurrency, writer)
    try writer.write(.integer(try cells.count(sums.units)))
    try cells.amount(sums.gross, key.currency, writer)
    try cells.amount(sums.share, key.shareCurrency, writer)
    let isOfOne = key.currency == key.shareCurrency
    try cells.amount(isOfOne ? sums.gross - sums.share : nil, key.currency, writer)
    try writer.endRow()
  }
}

// MARK: - Cells and filters of the reports of settlement

/// Writes the cells that reports of settlement share.
struct SettlementReportCells {
  let symbols: StringInterner

  init(_ symbols: StringInterner) { self.symbols = symbols }

  func text(_ symbol: Symbol?, _ writer: any ReportWriter) throws {
    let text = symbols.text(symbol ?? .none)
    try writer.write(text.isEmpty ? .empty : .text(text))
  }

  func text(_ text: String, _ writer: any ReportWriter) throws {
    if text.isEmpty { return try writer.write(.empty) }
    try withText(text) { try writer.write(.text($0)) }
  }

  func amount(_ micros: Int128?, _ currency: Symbol?, _ writer: any ReportWriter) throws {
    guard let micros else { return try writer.write(.empty) }
    try writer.write(.amount(micros, .statedBy(symbols.text(currency ?? .none))))
  }

  /// `28.81 EUR`.
  func amountText(_ micros: Int128, _ currency: Symbol) -> String {
    let code = symbols.text(currency)
    return "\(Amount.text(micros: micros, currency: .statedBy(code))) \(symbols.string(currency))"
  }

  /// A number that is not an amount.
  func decimal(_ digits: String?, _ writer: any ReportWriter) throws {
    try writer.write(digits.map { .decimal($0) } ?? .empty)
  }

  func count(_ units: Int128) throws -> Int64 {
    guard let count = Int64(exactly: units) else {
      throw ReconciliationFault("there are more units than 64 bits hold")
    }
    return count
  }
}

extension ReportFilter {
  /// Whether a fiscal month is shown, by its months since year 0.
  func shows(month: Int) -> Bool {
    months?.contains(Period(.fiscalMonth, ordinal: month).description) ?? true
  }

  func shows(product: Text) -> Bool { products?.contains { $0.matches(product) } ?? true }

  func shows(country: Text) -> Bool {
    countries?.contains { country.elementsEqual($0.utf8) } ?? true
  }
}
