// The columns of each report, known before it is made: options that name a column are checked against them.

extension ReportRequest {
  /// The columns of the report's rows, in their order, before a selection.
  package var columns: [ReportColumn] {
    switch kind {
    case .revenue: RevenueReport.columns(dimensions)
    case .journal: JournalReport.columns
    case .sales: SalesReport.columns
    case .exceptions: ExceptionsReport.columns
    case .receipts: ReceiptsReport.columns
    case .users: UsersReport.columns
    case .subscriptions: isByMonth ? SubscriptionMonthsReport.columns : SubscriptionsReport.columns
    }
  }
}
