// The subscriptions report: each subscription as it stood at a moment (rule R13).
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
