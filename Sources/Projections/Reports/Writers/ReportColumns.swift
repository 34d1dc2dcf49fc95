// The columns of each report, known before it is made: options that name a column are checked against them.
import Revenue

extension ReportRequest {
  /// The columns of the report, in their order.
  package var columns: [ReportColumn] {
    switch kind {
    case .revenue: RevenueReport.columns(dimensions)
    case .journal: JournalReport.columns
    case .sales: SalesReport.columns
    case .exceptions: ExceptionsReport.columns(ofVersion: version)
    case .receipts: ReceiptsReport.columns
    case .users: UsersReport.columns
    case .subscriptions: isByMonth ? SubscriptionMonthsReport.columns : SubscriptionsReport.columns
    }
  }
}
