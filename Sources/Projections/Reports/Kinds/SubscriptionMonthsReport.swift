// Subscriptions by month: who is subscribed, who comes and goes, and what each month brings in (rule R13).
import Base
import Revenue

struct SubscriptionMonthsReport {
  static let columns = [
    ReportColumn("month", isKey: true), ReportColumn("bundle_id", isKey: true),
    ReportColumn("active", .integer),
    ReportColumn("new", .integer), ReportColumn("renewed", .integer),
    ReportColumn("converted", .integer), ReportColumn("recovered", .integer),
    ReportColumn("churned", .integer), ReportColumn("gross"), ReportColumn("mrr"),
  ]

  /// What is subscribed to.
  private struct Subscribed: Hashable {
    var environment: Symbol
    var bundle: Symbol
    var original: TextKey
  }

  let source: ReportSource

  /// Writes the report, sorted by month, then by bundle as bytes.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    let sales = try subscriptions()
    let begun = sales.values.compactMap { $0.first?.saleDateMs }.min()
    guard let momentMs = source.request.momentMs, let begun, begun < momentMs else {
      return summary
    }
    let returns = try lastReturns()
    let calendar = months(from: begun, to: momentMs)
    var bundles: [Symbol: SubscriptionMonths] = [:]
    for (key, sales) in sales {
      let periods = sales.map { Self.period($0, returns[$0.id]) }
      bundles[
        key.bundle, default: SubscriptionMonths(startsMs: calendar.startsMs, momentMs: momentMs)
      ].add(periods)
    }
    let sorted = bundles.sorted {
      source.symbols.text($0.key).precedes(source.symbols.text($1.key))
    }
    for (_, months) in sorted {
      precondition(months.isBalanced, "who is subscribed does not follow from who came and went")
    }
    for index in calendar.startsMs.indices {
      for (bundle, months) in sorted {
        guard let first = months.first, index >= first else { continue }
        try write(
          Period(.month, ordinal: calendar.first + index), bundle, months.months[index], writer)
        summary.rowCount += 1
      }
    }
    return summary
  }

  // MARK: Sales

  /// The sales of each subscription in the order of (sale date, key as bytes).
  private func subscriptions() throws -> [Subscribed: [Sale]] {
    var result: [Subscribed: [Sale]] = [:]
    for sale in try SaleList(source).sales
    where sale.periodEndMs != nil && sale.kind != .familyShared && !sale.isPending
      && !sale.originalTransactionID.isEmpty && source.shows(environment: sale.environment)
    {
      let key = Subscribed(
        environment: sale.environment, bundle: sale.bundle,
        original: TextKey(text: sale.originalTransactionID))
      result[key, default: []].append(sale)
    }
    return result.mapValues { sales in
      sales.sorted { left, right in
        if left.saleDateMs != right.saleDateMs { return left.saleDateMs < right.saleDateMs }
        let keys = left.key.order(right.key)
        return keys != 0 ? keys < 0 : left.keyKind.rawValue < right.keyKind.rawValue
      }
    }
  }

  /// The date of the last Return of each sale that has one.
  private func lastReturns() throws -> [Int: Int64] {
    var result: [Int: Int64] = [:]
    try source.forEachConfirmedLine { line in
      if line.type == .return { result[line.sale] = line.dateMs }
    }
    return result
  }

  private static func period(_ sale: Sale, _ lastReturnMs: Int64?) -> SubscriptionPeriod {
    let endMs = sale.periodEndMs ?? sale.saleDateMs
    var coveredMs = endMs
    if sale.cancellationState == .returned, let lastReturnMs {
      coveredMs = min(coveredMs, lastReturnMs)
    }
    var price: (micros: Int64, currency: Currency)?
    if let amount = sale.amountMicros, let currency = sale.price?.currency {
      price = (amount, currency)
    }
    return SubscriptionPeriod(
      startMs: sale.saleDateMs, endMs: coveredMs, lengthMs: endMs - sale.saleDateMs,
      kind: sale.kind, isRenewal: sale.flags.contains(.isSignedRenewal), price: price)
  }

  // MARK: Months

  /// The months from one instant to that before another: the number of the first, and the first instant of each.
  private func months(from beginMs: Int64, to momentMs: Int64) -> (first: Int, startsMs: [Int64]) {
    var calendar = PeriodCalendar(.month, in: source.request.zone)
    let first = calendar.period(atMs: beginMs).ordinal
    let last = max(first, calendar.period(atMs: momentMs).ordinal)
    return (
      first,
      (first...last).map { source.request.zone.startMs(ofDay: Period.firstDay(ofMonth: $0)) }
    )
  }

  private func write(
    _ period: Period, _ bundle: Symbol, _ month: SubscriptionMonth, _ writer: any ReportWriter
  ) throws {
    try withText(period.description) { try writer.write(.text($0)) }
    try writer.write(.text(source.symbols.text(bundle)))
    let counts = [
      month.active, month.new, month.renewed, month.converted, month.recovered, month.churned,
    ]
    for count in counts { try writer.write(.integer(Int64(count))) }
    for sums in [month.gross, month.monthly] { try writer.write(.amounts(sums)) }
    try writer.endRow()
  }
}
