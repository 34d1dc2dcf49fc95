// The columns of a report, known before any row is.

extension Report {
  /// The columns that a request's rows have, before a selection.
  package static func columns(of request: ReportRequest) -> [ReportColumn] {
    switch request.kind {
    case .revenue: RevenueReport.columns(request.dimensions)
    case .journal: JournalReport.columns
    case .sales: SalesReport.columns
    case .exceptions: ExceptionsReport.columns
    case .receipts: ReceiptsReport.columns
    case .users: UsersReport.columns
    case .subscriptions:
      request.isByMonth ? SubscriptionMonthsReport.columns : SubscriptionsReport.columns
    }
  }
}
