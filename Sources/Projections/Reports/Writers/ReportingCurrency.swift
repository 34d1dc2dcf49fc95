// Conversion of lines to a reporting currency, where rates allow it (rule R10).
import Base
import Revenue

/// Converts lines with the declared rates.
struct ReportingCurrency {
  let target: Currency
  private var converter: RateConverter

  /// Loads the rates of a database.
  init(
    _ target: Currency, ageMaxDays: Int?, _ database: Database
  ) throws(ProjectionError) {
    self.target = target
    var rates: [DeclaredRate] = []
    do throws(DatabaseError) {
      let rows = try database.prepare(
        """
        SELECT d.source, r.day, r.base, r.quote, r.rate, r.position, r.ordinal
        FROM rates r JOIN declarations d ON d.position = r.position
        """)
      while try rows.step() {
        guard let base = Currency.parse(rows.bytes(2)), let quote = Currency.parse(rows.bytes(3)),
          let rate = try? Decimal18(parsing: rows.bytes(4))
        else { continue }
        rates.append(
          DeclaredRate(
            source: rows.text(0), dateDay: try rows.day(1), base: base, quote: quote,
            rate: rate, position: try rows.unsigned(5), orderInFile: try rows.ordinal(6)))
      }
    } catch { throw .database(error) }
    converter = RateConverter(RateTable(rates), to: target, ageMaxDays: ageMaxDays)
  }

  /// R10: converts micros as of the UTC day of an instant; nil if no rate allows it.
  mutating func convert(
    _ micros: Int64, from currency: Currency, atMs epochMs: Int64
  ) -> Int64? {
    converter.convert(micros: micros, from: currency, utcDay: Timestamp.utcDay(ms: epochMs))
  }

  /// R10: converts a line to the reporting currency; false if no rate allows it.
  mutating func convert(_ line: inout ReportLine) -> Bool {
    guard let currency = line.currency, let amount = line.amountMicros else { return true }
    guard let converted = convert(amount, from: currency, atMs: line.dateMs) else {
      return false
    }
    line.amountMicros = converted
    line.currency = target
    return true
  }

  /// R10: the day of the rate that is too old to convert a line; nil if the line stays in its currency for another
  /// reason.
  mutating func staleRateDay(of line: ReportLine) -> CivilDate? {
    guard let currency = line.currency else { return nil }
    return converter.staleRateDay(from: currency, utcDay: Timestamp.utcDay(ms: line.dateMs))
      .map(CivilDate.init(dayNumber:))
  }

  /// The positions of the declarations whose rates convert a currency on the UTC day of an instant.
  mutating func declarations(of currency: Currency, atMs epochMs: Int64) -> [Int] {
    converter.declarations(of: currency, utcDay: Timestamp.utcDay(ms: epochMs)).map { Int($0) }
  }

  /// The rates that were used.
  var usedRates: UsedRates {
    // Reports from before rates had an age limit must stay byte for byte the same.
    UsedRates(
      sources: converter.sourcesUsed,
      oldest: converter.ageMaxDays == nil ? nil : converter.oldestUsed)
  }
}

extension ReportRequest {
  /// The conversion to the reporting currency; nil if the request names none.
  func conversion(_ database: Database) throws(ProjectionError) -> ReportingCurrency? {
    guard let reportingCurrency else { return nil }
    return try ReportingCurrency(reportingCurrency, ageMaxDays: ratesAgeMaxDays, database)
  }
}

// MARK: - A report's amounts, rounded to the minor unit of their currency so that rows add up to the rounded total

/// The amounts of one column in one currency, which are rounded together.
private struct AmountGroup: Hashable {
  let column: Int
  let currency: Currency
}

extension ReportColumn {
  /// Whether its amounts are not added up, so that each is rounded by itself.
  fileprivate var isUnitPrice: Bool { name == "unit_price" }
}

/// Takes a report's rows before they are written: how an amount is rounded follows from the remainders of all. Kept
/// are only amounts that are not whole minor units, 16 bytes for each.
final class RowRemainders: ReportWriter {
  fileprivate var groups: [AmountGroup: MinorRounding] = [:]
  private var columns: [ReportColumn] = []
  private var column = 0

  func begin(_ columns: [ReportColumn]) { self.columns = columns }

  func write(_ cell: ReportCell) {
    switch cell {
    case .amount(let micros, let currency?) where !columns[column].isUnitPrice:
      add(micros, currency)
    case .amounts(let sums):
      for (currency, micros) in sums { add(micros, currency) }
    default: break
    }
    column += 1
  }

  private func add(_ micros: Int128, _ currency: Currency) {
    groups[AmountGroup(column: column, currency: currency), default: MinorRounding(currency)]
      .add(micros)
  }

  func endRow() { column = 0 }

  /// Decides how each amount is rounded.
  func end(_ summary: ReportSummary) {
    for group in groups.keys { groups[group]?.finish() }
  }
}

/// Passes on the same rows, in the same order, with rounded amounts.
final class RoundedRows: ReportWriter {
  private let remainders: RowRemainders
  private let writer: any ReportWriter
  /// How many amounts of each group were passed on.
  private var counts: [AmountGroup: Int] = [:]
  private var columns: [ReportColumn] = []
  private var column = 0

  init(_ remainders: RowRemainders, to writer: any ReportWriter) {
    self.remainders = remainders
    self.writer = writer
  }

  func begin(_ columns: [ReportColumn]) throws {
    self.columns = columns
    try writer.begin(columns)
  }

  func write(_ cell: ReportCell) throws {
    defer { column += 1 }
    switch cell {
    case .amount(let micros, let currency?):
      let rounded =
        columns[column].isUnitPrice
        ? MinorRounding.halfToEven(micros, currency) : next(micros, currency)
      try writer.write(.amount(rounded, currency))
    case .amounts(var sums):
      for (currency, micros) in sums { sums[currency] = next(micros, currency) }
      try writer.write(.amounts(sums))
    default: try writer.write(cell)
    }
  }

  private func next(_ micros: Int128, _ currency: Currency) -> Int128 {
    let group = AmountGroup(column: column, currency: currency)
    let ordinal = counts[group, default: 0]
    counts[group] = ordinal + 1
    return remainders.groups[group]?.rounded(micros, ordinal: ordinal) ?? micros
  }

  func endRow() throws {
    column = 0
    try writer.endRow()
  }

  func end(_ summary: ReportSummary) throws { try writer.end(summary) }
}

extension ReportSummary {
  /// Rounds the totals, half to even.
  mutating func roundTotals() {
    isRounded = true
    totals = totals.map { total in
      guard let currency = total.currency else { return total }
      return ReportTotal(
        currency: currency,
        sums: total.sums.map { column, value in
          (column, column.content == .amount ? MinorRounding.halfToEven(value, currency) : value)
        })
    }
  }
}

// MARK: - Rows with a report's totals, below its rows

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
