// Subscriptions on a page: how they stood at the end of its days, and who came and went.
import Base
import Projections
import Revenue

/// The figures about subscriptions.
struct PageSubscriptions {
  /// One app in one month.
  struct Month {
    /// Months since year 0.
    let month: Int
    let bundleID: String
    /// Counts by the report's columns, in the order of `countColumns`.
    let counts: [Int128]
    /// Micros by currency.
    let gross: [Currency: Int128]
    let recurring: [Currency: Int128]
  }

  static let countColumns = ["active", "new", "renewed", "converted", "recovered", "churned"]
  static let statuses = ["active", "grace_period", "billing_retry", "expired", "revoked"]

  /// The moment at which statuses are judged: the end of the days, or the last event if that is earlier. Nil if there
  /// is no event.
  let momentMs: Int64?
  /// Whether the moment is the end of the days.
  let isAtEnd: Bool
  /// How many subscriptions have each of `statuses`.
  var statusCounts: [Int128] = []
  /// The 13 months that end with the page's days, sorted by month, then by app.
  var months: [Month] = []

  var isEmpty: Bool { statusCounts.allSatisfy { $0 == 0 } && months.isEmpty }

  init(_ reports: PageReports, lastEventAtMs: Int64?) throws {
    let period = reports.request.period
    let endMs = reports.request.report.zone.startMs(ofDay: period.last.dayNumber + 1)
    isAtEnd = lastEventAtMs.map { $0 >= endMs } ?? false
    momentMs = lastEventAtMs.map { min($0, endMs) }
    guard let momentMs else { return }
    let counts = try reports.subscriptionStatuses(atMs: momentMs)
    statusCounts = Self.statuses.map { Int128(counts[$0] ?? 0) }
    let monthly = try reports.subscriptionMonths(
      ["month", "bundle_id", "gross", "mrr"] + Self.countColumns, atMs: momentMs)
    // The moment is the first of the month after: nothing has happened in that yet.
    months = monthly.compactMap { row in
      guard let month = PagePeriod(parsingMonth: row[0].text)?.firstMonth,
        (period.year.firstMonth...period.lastMonth).contains(month)
      else { return nil }
      return Month(
        month: month, bundleID: row[1].text, counts: row[4...].map { $0.number ?? 0 },
        gross: row[2].sums, recurring: row[3].sums)
    }
  }

  /// The counts of one month over all apps, in the order of `countColumns`.
  func counts(ofMonth month: Int) -> [Int128] {
    months.filter { $0.month == month }.reduce(
      into: Array(repeating: 0, count: Self.countColumns.count)
    ) { sums, row in
      for index in sums.indices { sums[index] += row.counts[index] }
    }
  }
}
