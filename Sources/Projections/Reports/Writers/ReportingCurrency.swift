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
