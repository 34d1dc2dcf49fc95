// The payout report: the rows of payment overviews, or each payment split by the shares of its rows (rule S13).
import Base
import Revenue

/// By what a payment can be split.
package enum PayoutGroup: String, CaseIterable, Sendable {
  case seller, country, product

  /// The name of its column.
  var column: String {
    switch self {
    case .seller: "seller"
    case .country: "country_code"
    case .product: "product_id"
    }
  }
}

struct PayoutReport {
  static func columns(_ groups: [PayoutGroup]) -> [ReportColumn] {
    if groups.isEmpty { return rowColumns }
    return [ReportColumn("fiscal_month", isKey: true)]
      + groups.map { ReportColumn($0.column, isKey: true) } + [
        ReportColumn("currency", isKey: true), ReportColumn("share", .amount),
        ReportColumn("proceeds", .amount), ReportColumn("bank_currency"),
      ]
  }

  private static let rowColumns = [
    ReportColumn("fiscal_month", isKey: true), ReportColumn("region", isKey: true),
    ReportColumn("currency", isKey: true), ReportColumn("units", .integer),
    ReportColumn("balance", .amount), ReportColumn("earned", .amount),
    ReportColumn("input_tax", .amount), ReportColumn("adjustments", .amount),
    ReportColumn("withholding_tax", .amount), ReportColumn("owed", .amount),
    ReportColumn("exchange_rate"), ReportColumn("effective_rate"),
    ReportColumn("proceeds", .amount), ReportColumn("bank_currency"),
    ReportColumn("paid", .flag), ReportColumn("expected_payment"), ReportColumn("latest_payment"),
  ]

  private let request: ReportRequest
  private let cells: SettlementReportCells
  private let books: SettlementBooks

  init(_ request: ReportRequest, _ database: Database) throws {
    self.request = request
    let source = try ReportSource(database, ReportRequest(request.kind))
    books = try SettlementBooks(database, source.symbols)
    cells = SettlementReportCells(source.symbols)
  }

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    var summary = ReportSummary()
    try writer.begin(Self.columns(request.payoutGroups))
    let overviews = books.overviews.filter { request.filter.shows(month: $0.month.ordinal) }
    if request.payoutGroups.isEmpty {
      for overview in overviews {
        for payment in overview.payments {
          try write(payment, of: overview.month, to: writer)
          summary.rowCount += 1
        }
      }
    } else {
      let split = PayoutSplit(books, request.payoutGroups, cells.symbols)
      for overview in overviews {
        let (rows, leftOut) = split.rows(of: overview)
        for row in rows { try write(row, of: overview.month, to: writer) }
        summary.rowCount += rows.count
        summary.remarks += leftOut.map { "left out: \($0)" }
      }
    }
    summary.exceptions = books.exceptionCounts
    return summary
  }

  // MARK: Rows as they stand

  private func write(
    _ payment: SettlementBooks.Payment, of month: FiscalMonth, to writer: any ReportWriter
  ) throws {
    let row = payment.row
    try cells.text(month.name, writer)
    try cells.text(row.region, writer)
    try cells.text(row.currency, writer)
    try writer.write(.integer(row.unitsSold))
    for amount in [
      row.balance, row.earned, row.inputTax, row.adjustments, row.withholdingTax, row.owed,
    ] {
      try cells.amount(Int128(amount), row.currency, writer)
    }
    try cells.decimal(row.exchangeRate, writer)
    try cells.decimal(payment.effectiveRate, writer)
    try cells.amount(row.proceeds.map { Int128($0) }, row.bankCurrency, writer)
    try cells.text(row.bankCurrency, writer)
    try writer.write(.flag(payment.isPaid))
    try cells.text(CivilDate(dayNumber: month.expectedPaymentDay).description, writer)
    try cells.text(CivilDate(dayNumber: month.latestPaymentDay).description, writer)
    try writer.endRow()
  }

  // MARK: Payments by group

  private func write(
    _ row: PayoutSplit.Row, of month: FiscalMonth, to writer: any ReportWriter
  ) throws {
    try cells.text(month.name, writer)
    for group in row.group { try cells.text(group, writer) }
    try cells.text(row.currency, writer)
    try cells.amount(row.shareMicros, row.currency, writer)
    try cells.amount(row.proceedsMicros, row.bankCurrency, writer)
    try cells.text(row.bankCurrency, writer)
    try writer.endRow()
  }
}

/// Splits payments by the shares of their rows.
private struct PayoutSplit {
  struct Row {
    /// The texts of the groups.
    let group: [String]
    let currency: Symbol
    let shareMicros: Int128
    let proceedsMicros: Int128
    let bankCurrency: Symbol
  }

  private let books: SettlementBooks
  private let groups: [PayoutGroup]
  private let symbols: StringInterner

  init(_ books: SettlementBooks, _ groups: [PayoutGroup], _ symbols: StringInterner) {
    (self.books, self.groups, self.symbols) = (books, groups, symbols)
  }

  /// The rows of a month, and its currencies that can't be split, each with the reason.
  func rows(of overview: SettlementBooks.Overview) -> (rows: [Row], leftOut: [String]) {
    var shares: [Symbol: [[String]: Int128]] = [:]
    books.forEachCountingRow(of: overview.month) { row, file in
      shares[row.shareCurrency, default: [:]][group(of: row, in: file), default: 0] +=
        Int128(row.shareMicros)
    }
    let currencies = Set(overview.payments.map(\.row.currency)).union(shares.keys)
    var rows: [Row] = []
    var leftOut: [String] = []
    for currency in currencies.sorted(by: { symbols.text($0).precedes(symbols.text($1)) }) {
      let payments = overview.payments.filter { $0.row.currency == currency }
      let weights = (shares[currency] ?? [:]).sorted {
        Self.precedes($0.key, $1.key)
      }
      let (found, problem) = split(payments, weights, of: overview, currency)
      rows += found
      if let problem {
        leftOut.append("\(overview.month.name) \(symbols.string(currency)): \(problem)")
      }
    }
    return (rows.sorted { Self.precedes($0.group, $1.group) }, leftOut)
  }

  private static func precedes(_ left: [String], _ right: [String]) -> Bool {
    for (one, other) in zip(left, right) where one != other {
      return one.utf8.lexicographicallyPrecedes(other.utf8)
    }
    return false
  }

  private func group(of row: AppleReport.Row, in file: SettlementBooks.OpenFile) -> [String] {
    groups.map { group in
      switch group {
      case .seller: books.seller(of: row, in: file)?.rawValue ?? ""
      case .country: symbols.string(row.country)
      case .product: symbols.string(books.product(of: row))
      }
    }
  }

  private func split(
    _ payments: [SettlementBooks.Payment], _ weights: [(key: [String], value: Int128)],
    of overview: SettlementBooks.Overview, _ currency: Symbol
  ) -> (rows: [Row], problem: String?) {
    guard overview.tiedCurrencies.contains(currency) else {
      return ([], "the overview and the reports disagree")
    }
    guard let bank = payments.first?.row.bankCurrency, payments.allSatisfy(\.isPaid) else {
      return ([], "it is not paid")
    }
    guard payments.allSatisfy({ $0.row.bankCurrency == bank }) else {
      return ([], "it is paid in several currencies")
    }
    guard payments.allSatisfy({ $0.row.balance == 0 }) else {
      return ([], "it holds a balance of earlier months")
    }
    let total = weights.reduce(0) { $0 + $1.value }
    if total == 0 { return ([], "the shares add up to 0") }
    let proceeds = payments.reduce(Int128(0)) { $0 + Int128($1.row.proceeds ?? 0) }
    guard let bankCurrency = Currency.statedBy(symbols.text(bank)),
      let parts = PaymentAllocation.parts(
        of: proceeds, bankCurrency, by: weights.map(\.value), total: total)
    else { return ([], "the payment is not a whole number of minor units") }
    let rows = zip(weights, parts).map { weight, part in
      Row(
        group: weight.key, currency: currency, shareMicros: weight.value, proceedsMicros: part,
        bankCurrency: bank)
    }
    return (rows, nil)
  }
}
