// The ledger's side of settlement: lines as cells, both sides matched, and the facts of single lines (rules S8, S14).
import AppStore
import Base
import Revenue

/// Lines of Production as the cells of settlement rule S8.
struct SettlementLedger {
  private(set) var cells = LedgerCells()
  private let symbols: StringInterner
  /// S8: Apple's stores end their day no later than there.
  private var calendar: PeriodCalendar
  private let unknownCountry: Symbol
  private var currencies: [Currency: Symbol] = [:]

  init(_ symbols: StringInterner) throws(TimeZoneError) {
    self.symbols = symbols
    calendar = PeriodCalendar(.day, in: try TimeZoneTable("America/Los_Angeles"))
    unknownCountry = symbols.symbol("ZZ")
  }

  mutating func add(_ line: ReportLine) {
    guard line.kind.isPaid else { return }
    cells.add(
      day: calendar.dayNumber(atMs: line.dateMs), isReturn: line.type == .return,
      product: line.product, country: country(of: line), currency: currency(of: line),
      quantity: line.quantity, amountMicros: line.amountMicros, position: line.position)
  }

  /// The cell of a line, and the line's units.
  mutating func key(of line: ReportLine) -> (key: SettlementKey, units: UInt64) {
    cells.key(
      day: calendar.dayNumber(atMs: line.dateMs), isReturn: line.type == .return,
      product: line.product, country: country(of: line), currency: currency(of: line),
      quantity: line.quantity, amountMicros: line.amountMicros)
  }

  private func country(of line: ReportLine) -> Symbol {
    line.country == .none ? unknownCountry : line.country
  }

  private mutating func currency(of line: ReportLine) -> Symbol {
    guard let currency = line.currency else { return .none }
    if let known = currencies[currency] { return known }
    let symbol = symbols.symbol(currency)
    currencies[currency] = symbol
    return symbol
  }
}

/// Both sides, matched.
struct MatchedBooks {
  let books: SettlementBooks
  let reconciliation: Reconciliation
  /// All lines of Production.
  let source: ReportSource
  var symbols: StringInterner { source.symbols }
  /// The names of the files that count, by their numbers in rows.
  let fileNames: [String]
  fileprivate var ledger: SettlementLedger

  /// Matches all lines of Production with all rows that count.
  init(_ database: Database) throws {
    source = try ReportSource(database, ReportRequest(.reconcile))
    let symbols = source.symbols
    books = try SettlementBooks(database, symbols)
    var ledger = try SettlementLedger(symbols)
    try source.forEachConfirmedLine { ledger.add($0) }
    self.ledger = ledger
    let counting = books.open.filter(\.counts).sorted { $0.file.sha256Hex < $1.file.sha256Hex }
    fileNames = counting.map(\.file.name)
    reconciliation = try Reconciliation(
      ledger.cells, Self.cells(of: counting, books), books.months, symbols)
  }

  private static func cells(
    of files: [SettlementBooks.OpenFile], _ books: SettlementBooks
  ) -> AppleCells {
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
          row, product: books.product(of: row), month: FiscalMonthOrdinal(file.month.ordinal),
          transactionMonth: hasDay ? FiscalMonthOrdinal(transactionMonth.ordinal) : .noMonth,
          file: Int32(number))
      }
    }
    return cells
  }
}

// MARK: - Facts of lines

/// What Apple's reports say of single lines of the journal (`--with-settlement`).
final class SettlementLines {
  static let columns = [
    ReportColumn("settlement_month"), ReportColumn("proceeds", .amount),
    ReportColumn("proceeds_currency"),
  ]

  private var ledger: SettlementLedger
  private let facts: [SettlementKey: SettlementFact]
  private let cells: SettlementReportCells
  private let production: Symbol?

  /// - Returns: nil if the request does not ask for them.
  init?(_ request: ReportRequest, _ database: Database) throws {
    guard request.hasSettlement else { return nil }
    let matched = try MatchedBooks(database)
    ledger = matched.ledger
    facts = matched.reconciliation.facts
    cells = SettlementReportCells(matched.symbols)
    production = matched.symbols.known(EnvironmentName.production.description)
  }

  /// Writes the three cells of a line, before any conversion; empty where there is no fact.
  func write(_ line: ReportLine, to writer: any ReportWriter) throws {
    guard line.environment == production, line.trust != .unconfirmed, line.kind.isPaid,
      case let (key, units) = ledger.key(of: line), let fact = facts[key]
    else {
      for _ in Self.columns { try writer.write(.empty) }
      return
    }
    let share = Int128(fact.unitShareMicros) * Int128(units)
    try cells.text(
      fact.month.map { Period(.fiscalMonth, ordinal: Int($0)).description } ?? "", writer)
    try cells.amount(line.type == .return ? -share : share, fact.shareCurrency, writer)
    try cells.text(fact.shareCurrency, writer)
  }
}
