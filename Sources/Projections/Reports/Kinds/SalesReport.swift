// The sales report: each sale, with the positions of the events that determined its values (rule R9).
import Revenue

struct SalesReport {
  static let columns = [
    ReportColumn("environment"), ReportColumn("bundle_id"), ReportColumn("sale_key", isKey: true),
    ReportColumn("product_id"), ReportColumn("kind"), ReportColumn("quantity", .integer),
    ReportColumn("sale_date", .time), ReportColumn("original_transaction_id"),
    ReportColumn("transaction_ids", .list), ReportColumn("first_position", .integer, isKey: true),
    ReportColumn("country_code"), ReportColumn("country_position", .integer),
    ReportColumn("user_identifier"), ReportColumn("user_position", .integer),
    ReportColumn("user_basis"),
    ReportColumn("currency", isKey: true), ReportColumn("unit_price", .amount),
    ReportColumn("price_basis"),
    ReportColumn("price_position", .integer), ReportColumn("is_upgraded", .flag),
    ReportColumn("cancelled", .flag), ReportColumn("cancellation_positions", .list),
    ReportColumn("reversal_positions", .list), ReportColumn("pending", .flag),
  ]

  let source: ReportSource

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    let list = try SaleList(source)
    let users = try source.userIdentifiers()
    let transactions = try list.transactions()
    var returns: [Int: [Int64]] = [:]
    var reversals: [Int: [Int64]] = [:]
    try source.forEachLine { line throws(ProjectionError) in
      switch line.type {
      case .sale: break
      case .return: returns[line.sale, default: []].append(Int64(line.position))
      case .reversal: reversals[line.sale, default: []].append(Int64(line.position))
      }
    }
    var summary = ReportSummary()
    try writer.begin(Self.columns)
    for sale in sorted(list) {
      try write(
        sale, users[sale.user], transactions[sale.id] ?? [], returns[sale.id] ?? [],
        reversals[sale.id] ?? [], writer)
      summary.rowCount += 1
    }
    return summary
  }

  /// R9: sorted by environment, bundle and key.
  private func sorted(_ list: SaleList) -> [Sale] {
    let symbols = source.symbols
    return list.sales.filter {
      source.shows($0) && source.isWithinDays($0.saleDateMs)
    }.sorted { left, right in
      if left.environment != right.environment {
        return symbols.text(left.environment).precedes(symbols.text(right.environment))
      }
      if left.bundle != right.bundle {
        return symbols.text(left.bundle).precedes(symbols.text(right.bundle))
      }
      let keys = left.key.order(right.key)
      return keys != 0 ? keys < 0 : left.keyKind.rawValue < right.keyKind.rawValue
    }
  }

  private func write(
    _ sale: Sale, _ user: Text?, _ transactions: [Text], _ returns: [Int64],
    _ reversals: [Int64], _ writer: any ReportWriter
  ) throws {
    let symbols = source.symbols
    func position(_ value: Int) -> ReportCell { value >= 0 ? .integer(Int64(value)) : .empty }
    try writer.write(.text(symbols.text(sale.environment)))
    try writer.write(.text(symbols.text(sale.bundle)))
    try writer.write(.text(sale.key))
    try writer.write(.text(symbols.text(sale.product)))
    try writer.write(.word(sale.kind.word))
    try writer.write(.integer(sale.quantity))
    try writer.write(.time(sale.saleDateMs))
    try writer.write(.text(sale.originalTransactionID))
    try writer.write(.list(transactions))
    try writer.write(position(sale.firstPosition))
    try writer.write(.text(symbols.country(sale.country)))
    try writer.write(position(sale.countryPosition))
    try writer.write(user.map(ReportCell.text) ?? .empty)
    try writer.write(position(sale.userPosition))
    try writer.write(sale.userBasis == .none ? .empty : .word(sale.userBasis.word))
    try writer.write(sale.price.map { .currency($0.currency) } ?? .empty)
    try writer.write(sale.price.map { .amount(Int128($0.micros), $0.currency) } ?? .empty)
    try writer.write(sale.priceBasis == .notApplicable ? .empty : .word(sale.priceBasis.word))
    try writer.write(position(sale.pricePosition))
    try writer.write(.flag(sale.isUpgraded))
    try writer.write(.flag(sale.cancellationState == .returned))
    try writer.write(.integers(returns))
    try writer.write(.integers(reversals))
    try writer.write(.flag(sale.isPending))
    try writer.endRow()
  }
}
