// The figures of a page: the reports that it shows, all from one state of the projections.
import Base
package import Ledger
package import Projections
package import Revenue

/// What a page is requested with.
package struct PageRequest: Sendable {
  /// A revenue report's filters; its days are replaced by those of the page.
  package let report: ReportRequest
  package let period: PagePeriod

  package init(_ report: ReportRequest, _ period: PagePeriod) {
    var report = report
    (report.from, report.to) = (period.first, period.last)
    (self.report, self.period) = (report, period)
  }
}

/// What a page is based on.
package struct PageBasis: Sendable {
  package let ledger: LedgerIdentity
  /// What was trusted in addition to Apple's own: hosts and certificates, as text.
  package let foreignTrust: [String]
  /// The versions that determine the figures, each with its name.
  package let versions: [(name: String, version: String)]

  package init(
    ledger: LedgerIdentity, foreignTrust: [String], versions: [(name: String, version: String)]
  ) {
    (self.ledger, self.foreignTrust, self.versions) = (ledger, foreignTrust, versions)
  }
}

/// All figures of a page.
package struct PageFigures {
  let request: PageRequest
  let basis: PageBasis
  /// The number of events behind it, the root of their tree, and when the last was recorded.
  var head: (size: Int, root: SHA256Digest)
  var lastEventAtMs: Int64?
  /// Revenue by step of the period, price basis and trust.
  var steps: PageRows
  /// Revenue by product and country.
  var places: PageRows
  /// Revenue by app.
  var apps: PageRows
  /// Revenue of the last 13 months.
  var months: PageRows
  /// Revenue of the previous period, by month or step.
  var before: PageRows
  var refunds: [RefundSums]
  var subscriptions: PageSubscriptions
  var changes: PageChanges?
  /// Nil if Apple has reported no fiscal month by the last day, or if the page leaves out some of its sales.
  var settlement: SettlementFigures?
  /// Whether rounding changed an amount of the page's days.
  private(set) var isRounded = false

  /// The currencies, in the order of the page: the reporting currency, then by descending units.
  package var currencies: [Currency]

  /// - Parameter older: the state since which changes are shown; nil shows none.
  init(
    _ request: PageRequest, _ basis: PageBasis, from database: Database, since older: Database?
  ) throws {
    (self.request, self.basis) = (request, basis)
    let runner = PageReports(request: request, database: database)
    head = try Report.head(of: database)
    lastEventAtMs = try Report.lastEventAtMs(of: database)
    steps = try runner.revenue([.period, .basis, .trust], request.period)
    places = try runner.revenue([.product, .country], request.period)
    apps = try runner.revenue([.app], request.period)
    months = try runner.revenue([.period], request.period.year, .month)
    before = try runner.before(months)
    refunds = try runner.refunds()
    subscriptions = try PageSubscriptions(runner, lastEventAtMs: lastEventAtMs)
    if request.report.filter.isEmpty,
      request.report.environments?.contains("Production") ?? true
    {
      settlement = try SettlementFigures(database, untilDay: request.period.last.dayNumber)
    }
    changes = try older.map { try PageChanges(request, from: $0, to: database) }
    currencies = []
    try check()
    if request.report.amounts == .minor { round() }
    currencies = orderedCurrencies
  }

  /// Rounds what is shown. Months are rounded one by one: each is a total.
  private mutating func round() {
    (steps.rounding, places.rounding, apps.rounding) = (.apportioned, .apportioned, .apportioned)
    (months.rounding, before.rounding) = (.alone, .alone)
    RefundSums.round(&refunds)
    isRounded = places.rows.contains { row in
      row.currency.map { PageSums.round([row.sums], $0) != [row.sums] } ?? false
    }
  }

  /// Checks that the period's figures add up to the same, however they are split.
  private func check() throws(ProjectionError) {
    guard steps.totals == places.totals else {
      throw .inconsistent("revenue by day differs from revenue by product and country")
    }
    guard apps.totals == places.totals else {
      throw .inconsistent("revenue by app differs from revenue by product and country")
    }
    var totals: [Currency?: PageSums] = [:]
    for refund in refunds { totals[refund.currency, default: PageSums()].add(refund) }
    for (currency, sums) in places.totals where totals[currency] == nil {
      totals[currency] = PageSums()
      guard sums.hasRefunds == false else {
        throw .inconsistent("refunds by reason differ from those of revenue")
      }
    }
    for (currency, sums) in totals where !sums.hasSameRefunds(as: total(currency)) {
      throw .inconsistent("refunds by reason differ from those of revenue")
    }
  }

  package func total(_ currency: Currency?) -> PageSums { places.totals[currency] ?? PageSums() }

  var hasSeveralApps: Bool { Set(apps.rows.map(\.labels)).count > 1 }

  /// The counts over all currencies.
  package var counts: PageSums { places.totals.values.reduce(PageSums(), +) }

  /// The reporting currency, otherwise the only currency of the amounts; nil if there are several.
  package var mainCurrency: Currency? {
    request.report.reportingCurrency ?? (currencies.count == 1 ? currencies[0] : nil)
  }

  private var orderedCurrencies: [Currency] {
    let totals = places.totals
    let earlier = before.totals
    var all = Set(totals.keys.compactMap(\.self))
    all.formUnion(earlier.keys.compactMap(\.self))
    if let main = request.report.reportingCurrency { all.insert(main) }
    func rank(_ currency: Currency) -> (Int, Int128, UInt8) {
      (
        currency == request.report.reportingCurrency ? 0 : 1, -(totals[currency]?.units ?? 0),
        currency.ordinal
      )
    }
    return all.sorted { rank($0) < rank($1) }
  }
}

/// Runs the reports of a page.
struct PageReports {
  let request: PageRequest
  let database: Database

  /// Revenue of some days, checked against its own totals.
  func revenue(
    _ dimensions: [ReportDimension], _ days: PagePeriod, _ granularity: Period.Granularity? = nil
  ) throws -> PageRows {
    var report = request.report
    // Rounded once they are summed for a table.
    report.amounts = .exact
    report.dimensions = dimensions
    report.granularity = granularity ?? request.period.granularity
    (report.from, report.to) = (days.first, days.last)
    let collector = PageRowCollector(dimensions)
    try Report.write(report, from: database, to: collector)
    try collector.result.check()
    return collector.result
  }

  /// Revenue of the previous period. That of a month is already among the months.
  func before(_ months: PageRows) throws -> PageRows {
    let before = request.period.before
    guard request.period.isMonth else { return try revenue([.period], before) }
    let label = Period(.month, ordinal: before.firstMonth).description
    return PageRows(dimensions: [.period], rows: months.rows.filter { $0.labels == [label] })
  }

  func refunds() throws -> [RefundSums] {
    var report = request.report
    report.dimensions = []
    return try Report.refunds(report, from: database)
  }

  /// The number of subscriptions by status, at a moment.
  func subscriptionStatuses(atMs momentMs: Int64) throws -> [String: Int] {
    try Report.subscriptionStatuses(subscriptions(atMs: momentMs), from: database)
  }

  /// Subscriptions by month until a moment: the wanted columns of the report.
  func subscriptionMonths(_ columns: [String], atMs momentMs: Int64) throws -> [[PageCell]] {
    var report = subscriptions(atMs: momentMs)
    report.isByMonth = true
    let collector = PageCellCollector(columns)
    try Report.write(report, from: database, to: collector)
    return collector.rows
  }

  private func subscriptions(atMs momentMs: Int64) -> ReportRequest {
    var report = ReportRequest(.subscriptions)
    report.environments = request.report.environments
    report.zone = request.report.zone
    report.reportingCurrency = request.report.reportingCurrency
    report.ratesAgeMaxDays = request.report.ratesAgeMaxDays
    report.amounts = request.report.amounts
    report.momentMs = momentMs
    return report
  }
}
