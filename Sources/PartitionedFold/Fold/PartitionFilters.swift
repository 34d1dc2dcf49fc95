// Which filters a report of one partition may have: its rows and those of other partitions are put together afterwards.
import JSON
import Projections

enum PartitionFilters {
  /// The members that `ReportRequest.write(to:)` writes.
  private static let known: Set<String> = [
    "by", "period", "refunds", "timezone", "from", "to", "at", "environment", "include_pending",
    "in", "rates_max_age", "app", "product", "country", "user", "kind",
  ]
  /// Those that need all rows at once, or change how rows look.
  private static let ofWholeReports: Set<String> = [
    "sort", "top", "amounts", "columns", "total", "csv_delimiter", "csv_decimal", "csv_dates",
  ]

  /// Refuses members that this program does not know: a mistyped one would be ignored.
  static func check(_ filters: JSONValue, of kind: ReportKind) throws(TaskError) {
    guard case .object(let members) = filters else { throw TaskError("its filters are no object") }
    for key in members.map(\.key) {
      if ofWholeReports.contains(key) {
        throw TaskError("the filter '\(key)' applies to whole reports, not to those of partitions")
      }
      guard known.contains(key) else { throw TaskError("the filter '\(key)' is unknown") }
    }
    if let key = members.map(\.key).firstRepeated {
      throw TaskError("the filter '\(key)' is given twice")
    }
  }

  /// Refuses reports whose rows cannot be put together.
  static func check(_ request: ReportRequest) throws(TaskError) {
    if request.isByMonth {
      throw TaskError("subscriptions by month cannot be put together from partitions")
    }
    // The first of equal exceptions decides whether a filter shows them, and it may be of another partition.
    guard request.kind == .exceptions else { return }
    if request.from != nil || request.to != nil || !request.filter.isEmpty {
      throw TaskError("exceptions of partitions can be filtered by environment alone")
    }
  }
}
