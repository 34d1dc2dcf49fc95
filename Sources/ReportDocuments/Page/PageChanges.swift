// What changed in months that had already ended, since an earlier state of the ledger.
import Base
import Projections
import Revenue

/// Revenue of ended months, as it was known before and as it is known now.
struct PageChanges {
  /// One month, country and currency.
  struct Row {
    let month: String
    let countryCode: String
    /// Nil for sales without a price.
    let currency: Currency?
    let unitsBefore: Int128
    let unitsAfter: Int128
    /// In micros.
    let netBefore: Int128
    let netAfter: Int128
    let saleCount: Int
  }

  /// The number of events of the earlier state.
  let size: Int
  /// When its last event was recorded; nil if it has none.
  let atMs: Int64?
  let rows: [Row]

  init(_ request: PageRequest, from older: Database, to newer: Database) throws {
    size = try Report.head(of: older).size
    atMs = try Report.lastEventAtMs(of: older)
    guard let atMs, let environment = request.report.environments?.first else {
      rows = []
      return
    }
    let difference = try RevenueDifference(
      from: older, to: newer, environment: environment, zone: request.report.zone,
      currency: request.report.reportingCurrency,
      ratesAgeMaxDays: request.report.ratesAgeMaxDays, saleLimit: 0)
    rows = difference.rows.compactMap { row in
      guard let month = PagePeriod(parsingMonth: row.place.month),
        request.report.zone.startMs(ofDay: month.last.dayNumber + 1) <= atMs
      else { return nil }
      return Row(
        month: row.place.month, countryCode: row.place.countryCode,
        currency: row.place.currency.flatMap { Currency.parse($0) },
        unitsBefore: Int128(row.before.netUnits), unitsAfter: Int128(row.after.netUnits),
        netBefore: row.before.netMicros, netAfter: row.after.netMicros, saleCount: row.saleCount)
    }
  }
}
