// The journal report: every line in order, with details of its sale (rules R8 and R9).
import Revenue

struct JournalReport {
  static let columns = [
    ReportColumn("date", .time, isKey: true), ReportColumn("line", isKey: true),
    ReportColumn("environment"),
    ReportColumn("bundle_id"), ReportColumn("sale_key", isKey: true),
    ReportColumn("transaction_id"),
    ReportColumn("product_id"), ReportColumn("country_code"), ReportColumn("user_identifier"),
    ReportColumn("kind"), ReportColumn("quantity", .integer), ReportColumn("currency", isKey: true),
    ReportColumn("unit_price", .amount), ReportColumn("amount", .amount),
    ReportColumn("price_basis"), ReportColumn("reason"),
    ReportColumn("position", .integer, isKey: true),
  ]

  let source: ReportSource

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    let order = try JournalOrder(source)
    var conversion = try source.request.conversion(source.database)
    var summary = ReportSummary()
    var totals: [Currency?: (quantity: Int64, amount: Int128)] = [:]
    try writer.begin(Self.columns)
    try order.forEach { line, sale in
      var shown = line
      var unitPrice = sale.unitPriceMicros
      if let price = unitPrice, let currency = sale.currency, conversion?.convert(&shown) ?? false {
        unitPrice = conversion?.convert(price, from: currency, atMs: line.dateMs)
      }
      try write(shown, sale, unitPrice, writer)
      totals[shown.currency, default: (0, 0)].quantity += shown.quantity
      totals[shown.currency, default: (0, 0)].amount += Int128(shown.amountMicros ?? 0)
      summary.rowCount += 1
    }
    summary.totals = totals.keys.sorted { ($0?.description ?? "") < ($1?.description ?? "") }
      .map { currency in
        let sums = totals[currency] ?? (0, 0)
        return ReportTotal(
          currency: currency,
          sums: [
            (ReportColumn("quantity", .integer), Int128(sums.quantity)),
            (ReportColumn("amount", .amount), sums.amount),
          ])
      }
    summary.rates = conversion?.usedRates ?? UsedRates()
    return summary
  }

  private func write(
    _ line: ReportLine, _ sale: LineSale, _ unitPrice: Int64?, _ writer: any ReportWriter
  ) throws {
    let symbols = source.symbols
    try writer.write(.time(line.dateMs))
    try writer.write(.word(line.type.word))
    try writer.write(.text(symbols.text(line.environment)))
    try writer.write(.text(symbols.text(line.bundle)))
    try writer.write(.text(sale.key))
    try writer.write(.text(sale.transactionID))
    try writer.write(.text(symbols.text(line.product)))
    try writer.write(.text(symbols.country(line.country)))
    try writer.write(sale.user.map(ReportCell.text) ?? .empty)
    try writer.write(.word(line.kind.word))
    try writer.write(.integer(line.quantity))
    try writer.write(line.currency.map(ReportCell.currency) ?? .empty)
    try writer.write(unitPrice.map { .amount(Int128($0), line.currency) } ?? .empty)
    try writer.write(line.amountMicros.map { .amount(Int128($0), line.currency) } ?? .empty)
    try writer.write(line.basis == .notApplicable ? .empty : .word(line.basis.word))
    try writer.write(line.reason.isEmpty ? .empty : .text(line.reason))
    try writer.write(.integer(Int64(line.position)))
    try writer.endRow()
  }
}
