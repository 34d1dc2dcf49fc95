// Conversion of lines to a reporting currency, where rates allow it (rule R10).
import Base
package import Revenue

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

  /// R10: converts micros as of the UTC day of an instant, with the reporting currency; nil if no rate allows it.
  mutating func converted(
    _ micros: Int64, from currency: Currency, atMs epochMs: Int64
  ) -> (micros: Int64, currency: Currency)? {
    convert(micros, from: currency, atMs: epochMs).map { ($0, target) }
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

  /// R10: the rates that convert a currency on the UTC day of an instant; nil if none does, or if it is the target.
  mutating func rateUse(of currency: Currency, atMs epochMs: Int64) -> RateUse? {
    converter.rateUse(of: currency, utcDay: Timestamp.utcDay(ms: epochMs))
  }

  /// The rates that were used.
  var usedRates: UsedRates {
    // Reports from before rates had an age limit must stay byte for byte the same.
    UsedRates(
      sources: converter.sourcesUsed,
      oldest: converter.ageMaxDays == nil ? nil : converter.oldestUsed)
  }
}

/// A line's amount in the reporting currency, and the rates that lead to it.
package struct LineConversion: Sendable {
  package let amountMicros: Int64
  package let use: RateUse
}

extension LedgerQueries {
  /// R10: the lines of a sale in another currency, in their order; nil for one without a price, or without a rate.
  package func conversions(
    of sale: SaleDetail, to target: Currency, ageMaxDays: Int
  ) throws -> [LineConversion?] {
    var conversion = try ReportingCurrency(target, ageMaxDays: ageMaxDays, database)
    return sale.lines.map { line in
      guard let currency = sale.currency, let amount = line.amountMicros,
        let use = conversion.rateUse(of: currency, atMs: line.dateMs),
        let converted = conversion.convert(amount, from: currency, atMs: line.dateMs)
      else { return nil }
      return LineConversion(amountMicros: converted, use: use)
    }
  }
}

extension ReportRequest {
  /// The conversion to the reporting currency; nil if the request names none.
  func conversion(_ database: Database) throws(ProjectionError) -> ReportingCurrency? {
    guard let reportingCurrency else { return nil }
    return try ReportingCurrency(reportingCurrency, ageMaxDays: ratesAgeMaxDays, database)
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
