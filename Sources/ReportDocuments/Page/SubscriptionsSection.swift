// Subscriptions: their status at the end of the page's days, and how many began and ended.
import Base
import Projections
import Revenue

extension PageWriter {
  func subscriptions(_ html: inout HTML) {
    let subscriptions = figures.subscriptions
    guard let momentMs = subscriptions.momentMs, !subscriptions.isEmpty else {
      return html.element("p", ["class": "soft"], text: "There are no subscriptions.")
    }
    html.element(
      "p", ["class": "soft"],
      text: "As they stood at the "
        + (subscriptions.isAtEnd
          ? "end of \(PagePeriod.dayTitle(period.last))"
          : "time of the newest record, \(PagePeriod.momentTitle(momentMs))")
        + ", for all apps and products\(hasFilters ? ", also those that this page leaves out" : "")."
    )
    statuses(&html)
    if subscriptions.months.isEmpty { return }
    html.element(
      "p", ["class": "soft"],
      text:
        "The figures by month are counted from sales, without family sharing, so the number of active "
        + "ones can differ from the one above.")
    chart(&html)
    monthTable(&html)
    html.element("div", ["class": "panels"]) { html in
      html.element("div") { appTable(&$0) }
      html.element("div") { recurring(&$0) }
    }
  }

  private func statuses(_ html: inout HTML) {
    html.element("dl", ["class": "figures small"]) { html in
      for (status, count) in zip(PageSubscriptions.statuses, figures.subscriptions.statusCounts) {
        let words = CodeWords(status: status)
        html.element("div") { html in
          html.element("dt", text: words.title)
          html.element("dd", ["class": "value"]) { $0.count(count) }
          html.element("dd", ["class": "change"], text: words.meaning)
        }
      }
    }
  }

  /// The months that are shown, from the first with a subscription.
  private var monthsShown: [Int] {
    guard let first = figures.subscriptions.months.first?.month else { return [] }
    return Array(first...max(first, figures.subscriptions.months.last?.month ?? first))
  }

  private func chart(_ html: inout HTML) {
    let bars = monthsShown.map { month in
      let step = Period(.month, ordinal: month)
      let active = figures.subscriptions.counts(ofMonth: month)[0]
      return BarChart.Bar(
        axisLabel: PagePeriod.axisLabel(step), title: "\(step): \(active)", value: active,
        isMarked: month >= period.firstMonth)
    }
    html.element("figure", ["class": "of-months"]) { html in
      html.element("figcaption", text: "Active subscriptions at the end of each month")
      BarChart(
        title: "Active subscriptions by month",
        description: "\(bars.count) months, the last with \(bars.last?.value ?? 0). "
          + "The table below has every figure.",
        id: "active", bars: bars, isOfCounts: true
      ).write(to: &html)
    }
  }

  private static let headings: [PageTable.Column] = [
    .number("Active"), .number("New"), .wide("Renewed"), .wide("Converted from a trial"),
    .wide("Recovered"), .number("Ended"),
  ]

  private func monthTable(_ html: inout HTML) {
    var table = PageTable(
      caption: "New and ended subscriptions, all apps together", id: "subscription-months",
      columns: [.text("Month")] + Self.headings, showsCaption: false)
    for month in monthsShown {
      let counts = figures.subscriptions.counts(ofMonth: month)
      table.rows.append([.period("\(Period(.month, ordinal: month))")] + counts.map { .count($0) })
    }
    details("New and ended subscriptions by month", &html) { table.write(to: &$0) }
  }

  /// The rows of the page's own months, or of the last of them.
  private func appTable(_ html: inout HTML) {
    let rows = figures.subscriptions.months.filter { $0.month == period.lastMonth }
    if rows.isEmpty { return }
    var table = PageTable(
      caption: "New and ended subscriptions in \(PagePeriod.monthTitle(period.lastMonth)), by app",
      id: "subscription-apps", columns: [.text("App")] + Self.headings)
    for row in rows {
      table.rows.append([.identifier(row.bundleID)] + row.counts.map { .count($0) })
    }
    if rows.count > 1 {
      table.sums =
        [.text("Total")]
        + figures.subscriptions.counts(ofMonth: period.lastMonth).map { .count($0) }
    }
    table.write(to: &html)
  }

  /// The monthly value of the active subscriptions, and what was charged in the month.
  private func recurring(_ html: inout HTML) {
    var recurring: [Currency: Int128] = [:]
    var gross: [Currency: Int128] = [:]
    for row in figures.subscriptions.months where row.month == period.lastMonth {
      recurring.merge(row.recurring, uniquingKeysWith: +)
      gross.merge(row.gross, uniquingKeysWith: +)
    }
    let currencies = Set(recurring.keys).union(gross.keys).sorted()
    if currencies.isEmpty { return }
    var table = PageTable(
      caption: "Subscription revenue of \(PagePeriod.monthTitle(period.lastMonth))",
      id: "recurring",
      columns: [
        .text("Currency"), .number("Charged in the month"), .number("Monthly recurring revenue"),
      ])
    for currency in currencies {
      table.rows.append([
        .text("\(currency)"), gross[currency].map { .amount($0, currency) } ?? .empty,
        recurring[currency].map { .amount($0, currency) } ?? .empty,
      ])
    }
    table.write(to: &html)
  }
}

// MARK: - Figures about subscriptions

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
    var gross: [Currency: Int128] = [:]
    var recurring: [Currency: Int128] = [:]
  }

  static let countColumns = ["active", "new", "renewed", "converted", "recovered", "churned"]
  static let statuses = ["active", "grace_period", "billing_retry", "expired", "revoked"]

  /// The moment of the statuses: the end of the days, or the last event if that is earlier. Nil if there is no event.
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
      ["month", "bundle_id", "currency", "gross", "mrr"] + Self.countColumns, atMs: momentMs)
    // The moment is the first of the next month, in which nothing has happened yet.
    for row in monthly {
      guard let month = PagePeriod(parsingMonth: row[0].text)?.firstMonth,
        (period.year.firstMonth...period.lastMonth).contains(month)
      else { continue }
      // Of several currencies, the first row has the counts.
      if months.last?.month != month || months.last?.bundleID != row[1].text {
        months.append(
          Month(month: month, bundleID: row[1].text, counts: row[5...].map { $0.number ?? 0 }))
      }
      guard let currency = Currency.parse(row[2].text) else { continue }
      months[months.count - 1].gross[currency] = row[3].number
      months[months.count - 1].recurring[currency] = row[4].number
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
