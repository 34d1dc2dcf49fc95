// The subscriptions report: each subscription as it stood at a moment (rule R13).
import Base
import Revenue

struct SubscriptionsReport {
  static let columns = [
    ReportColumn("environment"), ReportColumn("bundle_id"),
    ReportColumn("original_transaction_id", isKey: true), ReportColumn("product_id", isKey: true),
    ReportColumn("user_identifier"), ReportColumn("country_code"),
    ReportColumn("status", isKey: true),
    ReportColumn("started_at", .time), ReportColumn("current_period_start_at", .time),
    ReportColumn("expires_at", .time), ReportColumn("grace_period_expires_at", .time),
    ReportColumn("auto_renew", .flag), ReportColumn("auto_renew_product_id"),
    ReportColumn("expiration_intent"), ReportColumn("in_billing_retry", .flag),
    ReportColumn("price", .amount), ReportColumn("currency", isKey: true), ReportColumn("offer"),
    ReportColumn("revoked_at", .time), ReportColumn("position", .integer),
  ]

  let source: ReportSource

  /// Writes the report, sorted by environment, bundle and original transaction id as bytes.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    let list = try SaleList(source)
    let users = try source.userIdentifiers()
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    // Without a folded event there is no moment, and no subscription.
    guard let momentMs = source.request.momentMs else { return summary }
    for subscription in try sorted() {
      // A subscription that only renewal information names is not shown.
      guard let period = subscription.period else { continue }
      guard list.sales.indices.contains(period.sale) else {
        throw ProjectionError.inconsistent("the subscriptions do not match the sales")
      }
      try write(
        subscription, period, list.sale(period.sale), users[subscription.user], momentMs, writer)
      summary.rowCount += 1
    }
    return summary
  }

  private func sorted() throws -> [Subscription] {
    let symbols = source.symbols
    return try SubscriptionTable(source.database).all(source.arena)
      .filter { source.shows(environment: $0.environment) }
      .sorted { left, right in
        if left.environment != right.environment {
          return symbols.text(left.environment).precedes(symbols.text(right.environment))
        }
        if left.bundle != right.bundle {
          return symbols.text(left.bundle).precedes(symbols.text(right.bundle))
        }
        return left.original.precedes(right.original)
      }
  }

  private func write(
    _ subscription: Subscription, _ period: Subscription.Period, _ sale: Sale, _ user: Text?,
    _ momentMs: Int64, _ writer: any ReportWriter
  ) throws {
    let (symbols, price) = (source.symbols, sale.price)
    let renewal = subscription.renewal
    let status = SubscriptionTerms(period, renewal, isUpgraded: sale.isUpgraded)
      .status(atMs: momentMs)
    func text(_ symbol: Symbol?) -> ReportCell {
      guard let symbol, symbol != .none else { return .empty }
      return .text(symbols.text(symbol))
    }
    func time(_ epochMs: Int64?) -> ReportCell { epochMs.map { .time($0) } ?? .empty }
    func flag(_ value: Bool?) -> ReportCell { value.map { .flag($0) } ?? .empty }
    try writer.write(.text(symbols.text(subscription.environment)))
    try writer.write(.text(symbols.text(subscription.bundle)))
    try writer.write(.text(subscription.original))
    try writer.write(.text(symbols.text(period.product)))
    try writer.write(user.map { .text($0) } ?? .empty)
    try writer.write(.text(symbols.country(subscription.country)))
    try withText(status.rawValue) { try writer.write(.text($0)) }
    try writer.write(.time(period.startedAtMs))
    try writer.write(.time(period.startMs))
    try writer.write(.time(period.expiresAtMs))
    try writer.write(time(renewal?.gracePeriodExpiresAtMs))
    try writer.write(flag(renewal?.isAutoRenewing))
    try writer.write(text(renewal?.product))
    try writer.write(text(renewal?.expirationIntent))
    try writer.write(flag(renewal?.isInBillingRetry))
    try writer.write(price.map { .amount(Int128($0.micros), $0.currency) } ?? .empty)
    try writer.write(price.map { .currency($0.currency) } ?? .empty)
    try writer.write(period.offer == .none ? .empty : .word(period.offer.word))
    try writer.write(time(period.revokedAtMs))
    try writer.write(.integer(Int64(subscription.position ?? period.position)))
    try writer.endRow()
  }
}

// MARK: - Subscriptions by month: who is subscribed, who comes and goes, and what each month brings in (rule R13)

struct SubscriptionMonthsReport {
  private static let counts = [
    "active", "new", "renewed", "converted", "recovered", "churned",
  ].map { ReportColumn($0, .integer) }

  /// Up to version 4, the amounts of all currencies were a text.
  static func columns(ofVersion version: Int) -> [ReportColumn] {
    let keys = [ReportColumn("month", isKey: true), ReportColumn("bundle_id", isKey: true)]
    if version < 5 { return keys + counts + [ReportColumn("gross"), ReportColumn("mrr")] }
    return keys + [ReportColumn("currency", isKey: true)] + counts
      + [ReportColumn("gross", .amount), ReportColumn("mrr", .amount)]
  }

  /// What is subscribed to.
  private struct Subscribed: Hashable {
    var environment: Symbol
    var bundle: Symbol
    var original: TextKey
  }

  let source: ReportSource

  /// Writes the report, sorted by month, then by bundle as bytes, then by currency.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var summary = ReportSummary()
    var conversion = try source.request.conversion(source.database)
    try writer.begin(Self.columns(ofVersion: source.request.version))
    let sales = try subscriptions()
    let begun = sales.values.compactMap { $0.first?.saleDateMs }.min()
    guard let momentMs = source.request.momentMs, let begun, begun < momentMs else {
      return summary
    }
    let returns = try lastReturns()
    let calendar = months(from: begun, to: momentMs)
    var bundles: [Symbol: SubscriptionMonths] = [:]
    for (key, sales) in sales {
      let periods = sales.map { Self.period($0, returns[$0.id], &conversion) }
      bundles[
        key.bundle, default: SubscriptionMonths(startsMs: calendar.startsMs, momentMs: momentMs)
      ].add(periods)
    }
    let sorted = bundles.sorted {
      source.symbols.text($0.key).precedes(source.symbols.text($1.key))
    }
    for (_, months) in sorted {
      precondition(months.isBalanced, "active subscriptions do not match beginnings and ends")
    }
    for index in calendar.startsMs.indices {
      for (bundle, months) in sorted {
        guard let first = months.first, index >= first else { continue }
        var month = months.months[index]
        // What a month's subscriptions bring in is worth what it is at the month's end.
        let isLast = index + 1 == calendar.startsMs.count
        let endMs = isLast ? momentMs : calendar.startsMs[index + 1]
        month.monthly = Self.converted(month.monthly, atMs: endMs - 1, &conversion)
        summary.rowCount += try write(
          Period(.month, ordinal: calendar.first + index), bundle, month, writer)
      }
    }
    summary.rates = conversion?.usedRates ?? UsedRates()
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

  private static func period(
    _ sale: Sale, _ lastReturnMs: Int64?, _ conversion: inout ReportingCurrency?
  ) -> SubscriptionPeriod {
    let endMs = sale.periodEndMs ?? sale.saleDateMs
    var coveredMs = endMs
    if sale.cancellationState == .returned, let lastReturnMs {
      coveredMs = min(coveredMs, lastReturnMs)
    }
    var price: (micros: Int64, currency: Currency)?
    var charged: (micros: Int64, currency: Currency)?
    if let amount = sale.amountMicros, let currency = sale.price?.currency {
      price = (amount, currency)
      charged = conversion?.converted(amount, from: currency, atMs: sale.saleDateMs) ?? price
    }
    return SubscriptionPeriod(
      startMs: sale.saleDateMs, endMs: coveredMs, lengthMs: endMs - sale.saleDateMs,
      kind: sale.kind, isRenewal: sale.flags.contains(.isSignedRenewal), price: price,
      charged: charged)
  }

  /// Sums in the reporting currency where rates allow it.
  private static func converted(
    _ sums: [Currency: Int128], atMs epochMs: Int64, _ conversion: inout ReportingCurrency?
  ) -> [Currency: Int128] {
    guard conversion != nil else { return sums }
    var result: [Currency: Int128] = [:]
    for (currency, micros) in sums {
      let exact = Int64(exactly: micros)
      let sum = exact.flatMap { conversion?.converted($0, from: currency, atMs: epochMs) }
      result[sum?.currency ?? currency, default: 0] += sum.map { Int128($0.micros) } ?? micros
    }
    return result
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

  /// Writes a row for each currency, of which the first has the counts; returns how many.
  private func write(
    _ period: Period, _ bundle: Symbol, _ month: SubscriptionMonth, _ writer: any ReportWriter
  ) throws -> Int {
    let counts = [
      month.active, month.new, month.renewed, month.converted, month.recovered, month.churned,
    ]
    func writeKeys() throws {
      try withText(period.description) { try writer.write(.text($0)) }
      try writer.write(.text(source.symbols.text(bundle)))
    }
    if source.request.version < 5 {
      try writeKeys()
      for count in counts { try writer.write(.integer(Int64(count))) }
      for sums in [month.gross, month.monthly] { try writer.write(.amounts(sums)) }
      try writer.endRow()
      return 1
    }
    let currencies = Set(month.gross.keys).union(month.monthly.keys).sorted()
    let rows = currencies.isEmpty ? [nil] : currencies.map(Optional.some)
    for (index, currency) in rows.enumerated() {
      try writeKeys()
      try writer.write(currency.map { .currency($0) } ?? .empty)
      for count in counts { try writer.write(index == 0 ? .integer(Int64(count)) : .empty) }
      for sums in [month.gross, month.monthly] {
        let sum = currency.map { ReportCell.amount(sums[$0] ?? 0, $0) }
        try writer.write(sum ?? .empty)
      }
      try writer.endRow()
    }
    return rows.count
  }
}

// MARK: - How many subscriptions have each status at a moment: the subscriptions report without its rows

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
