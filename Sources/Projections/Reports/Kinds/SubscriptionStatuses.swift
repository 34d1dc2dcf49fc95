// How many subscriptions have each status at a moment: the subscriptions report without its rows.
import Revenue

extension Report {
  /// The number of rows of the subscriptions report by status, by name. Unlike the report, it reads
  /// only the sales that were upgraded.
  /// - Parameter request: with the moment.
  package static func subscriptionStatuses(
    _ request: ReportRequest, from database: Database
  ) throws -> [String: Int] {
    precondition(request.kind.hasMoment, "statuses of another report")
    guard let momentMs = request.momentMs else { return [:] }
    let source = try ReportSource(database, request)
    var counts: [String: Int] = [:]
    let table = SubscriptionTable(database)
    let upgraded = try table.upgradedSales()
    for subscription in try table.all(source.arena)
    where source.shows(environment: subscription.environment) {
      guard let period = subscription.period else { continue }
      let status = SubscriptionTerms(
        period, subscription.renewal, isUpgraded: upgraded.contains(period.sale)
      ).status(atMs: momentMs)
      counts[status.rawValue, default: 0] += 1
    }
    return counts
  }
}
