// One of two states of the books that are compared: its lines of some days, in one currency where rates allow it.
import Base
import Revenue

/// Which lines of a journal are compared, and how they are shown.
struct ComparedLines {
  /// As the App Store names it.
  let environment: String
  /// The zone of days and months.
  let zone: TimeZoneTable
  /// The first and the last day, in days since 1970-01-01 in the zone, both included.
  let firstDay: Int
  let lastDay: Int
  /// The currency to convert to (rule R10); nil converts nothing.
  let currency: Currency?
  /// R10: how many days older than its line a rate may be; nil sets no limit.
  let ratesAgeMaxDays: Int?

  /// - Parameters:
  ///   - fromDay: the first day; nil has no beginning.
  ///   - toDay: the last day; nil has no end.
  init(
    environment: String, zone: TimeZoneTable, fromDay: CivilDate?, toDay: CivilDate?,
    currency: Currency?, ratesAgeMaxDays: Int?
  ) {
    self.environment = environment
    self.zone = zone
    firstDay = fromDay?.dayNumber ?? .min
    lastDay = toDay?.dayNumber ?? .max
    self.currency = currency
    self.ratesAgeMaxDays = ratesAgeMaxDays
  }
}

/// What the rates of one state of the books converted, and what they could not.
package struct ComparedRates: Equatable, Sendable {
  /// The rates used (rule R10).
  package fileprivate(set) var used = UsedRates()
  /// The lines that keep their own currencies, because no rate converts them.
  package fileprivate(set) var unconvertedCount = 0
}

/// One state of the books, as a comparison reads it. Amounts are converted with the rates that were known then.
struct ComparedBooks {
  private let lines: ComparedLines
  private var calendar: PeriodCalendar
  private var conversion: ReportingCurrency?
  private var unconvertedCount = 0
  private var lastPeriod: Period?
  private var lastMonth = ""

  init(_ database: Database, _ lines: ComparedLines) throws(ProjectionError) {
    self.lines = lines
    calendar = PeriodCalendar(.month, in: lines.zone)
    guard let currency = lines.currency else { return }
    conversion = try ReportingCurrency(currency, ageMaxDays: lines.ratesAgeMaxDays, database)
  }

  /// Whether a line of this date, in epoch milliseconds, is compared.
  mutating func isWithinDays(_ dateMs: Int64) -> Bool {
    if lines.firstDay == .min, lines.lastDay == .max { return true }
    let day = calendar.dayNumber(atMs: dateMs)
    return lines.firstDay <= day && day <= lines.lastDay
  }

  /// The month of a date in epoch milliseconds, such as `2026-03`.
  mutating func month(_ dateMs: Int64) -> String {
    let period = calendar.period(atMs: dateMs)
    if period != lastPeriod {
      lastPeriod = period
      lastMonth = period.description
    }
    return lastMonth
  }

  /// R10: an amount of a line of this date, converted; unchanged if no rate allows it.
  mutating func converted(
    _ micros: Int64, _ currency: Currency, atMs dateMs: Int64
  ) -> (micros: Int64, currency: Currency) {
    guard let target = conversion?.target else { return (micros, currency) }
    guard let converted = conversion?.convert(micros, from: currency, atMs: dateMs) else {
      unconvertedCount += 1
      return (micros, currency)
    }
    return (converted, target)
  }

  /// The declarations whose rates convert a line of this date.
  mutating func rateDeclarations(_ currency: Currency?, atMs dateMs: Int64) -> [Int] {
    guard let currency else { return [] }
    return conversion?.declarations(of: currency, atMs: dateMs) ?? []
  }

  var isConverting: Bool { conversion != nil }

  var rates: ComparedRates {
    var rates = ComparedRates()
    rates.used = conversion?.usedRates ?? UsedRates()
    rates.unconvertedCount = unconvertedCount
    return rates
  }
}
