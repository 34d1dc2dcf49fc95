// Values that several commands on reports take: a zone, a currency, an age of rates.
import Base
import Projections
import Revenue

extension Invocation {
  /// The zone of `--timezone`, which must exist on this system; UTC if the option is not given.
  func timeZone() throws(UsageError) -> TimeZoneTable {
    let name = try value(
      "timezone", "is not the name of a time zone", read: ExportOptions.zoneName)
    guard let name else { return .utc }
    do throws(TimeZoneError) { return try TimeZoneTable(name) } catch {
      throw UsageError("--timezone \(ShownArgument.text(name))", "\(error)")
    }
  }

  /// The currency of `--in`; nil if the option is not given.
  func reportingCurrency() throws(UsageError) -> Currency? {
    let code = try value(
      "in", "is not a currency code of three letters", read: ExportOptions.currencyCode)
    guard let code else { return nil }
    guard let currency = Currency.parse(code) else {
      throw UsageError("--in \(ShownArgument.text(code))", "is not an ISO 4217 currency")
    }
    return currency
  }

  /// The days of `--rates-max-age`, or its default.
  func ratesAgeMaxDays() throws(UsageError) -> Int {
    try value("rates-max-age", "is not a number of days", read: ExportOptions.dayCount)
      ?? ReportRequest.ratesAgeMaxDaysStandard
  }
}
