// The entries report: balanced postings for double-entry accounts (settlement rule S15).
import Base
import Ledger
import Revenue

struct EntriesReport {
  static let columns = [
    ReportColumn("date", isKey: true), ReportColumn("entry", isKey: true), ReportColumn("kind"),
    ReportColumn("fiscal_month"), ReportColumn("description"),
    ReportColumn("account", isKey: true), ReportColumn("amount", .amount),
    ReportColumn("currency", isKey: true),
  ]

  /// The columns of `--check`: what is posted, and what should be.
  static let checkColumns = [
    ReportColumn("currency", isKey: true), ReportColumn("posted", .amount),
    ReportColumn("open", .amount), ReportColumn("not_reported", .amount),
    ReportColumn("rounding", .amount), ReportColumn("share", .amount),
    ReportColumn("paid", .amount), ReportColumn("balance", .amount),
  ]

  /// How many currencies a remark names.
  private static let remarkedMax = 6

  /// What sums of sales are by.
  private struct DayCurrency: Hashable {
    let day: Int
    let currency: Currency
  }

  private let symbols: StringInterner
  private let books: SettlementBooks
  private let postings: [Posting]
  private let posted: [Symbol: Int128]
  private let balance: ReceivableBalance
  /// Those of the receivable.
  private let currencies: [Symbol]
  private let request: ReportRequest

  init(_ request: ReportRequest, _ database: Database) throws {
    self.request = request
    var entries = EntryBook(request.accounts)
    var balance = ReceivableBalance()
    switch request.basis {
    case .ledger:
      let matched = try MatchedBooks(database)
      symbols = matched.symbols
      books = matched.books
      try Self.addSales(matched.source, request.zone, to: &entries)
      let rows = matched.reconciliation.rows
      entries.addDifferences(rows)
      entries.addUnsettled(rows, books.months)
      balance.add(rows, books.months)
    case .apple:
      symbols = try ReportSource(database, request).symbols
      books = try SettlementBooks(database, symbols)
    }
    var counting = CountingSums()
    books.forEachCountingRow { row, file in
      counting.add(row, month: FiscalMonthOrdinal(file.month.ordinal))
      balance.add(row)
    }
    if request.basis == .apple { entries.addGross(counting) }
    entries.addShares(counting)
    for file in books.open where file.file.kind == .overview {
      entries.addPayments(
        file.report, of: file.month, paidDay: request.paidOn[file.month.name]?.dayNumber)
      balance.addPayments(file.report)
    }
    postings = try entries.postings(symbols)
    currencies = try balance.currencies(checking: entries, symbols)
    (self.balance, posted) = (balance, entries.receivable)
  }

  /// Adds what the revenue report has by day and currency.
  private static func addSales(
    _ source: ReportSource, _ zone: TimeZoneTable, to entries: inout EntryBook
  ) throws {
    var calendar = PeriodCalendar(.day, in: zone)
    var sums: [DayCurrency: RevenueSums] = [:]
    try source.forEachConfirmedLine { line in
      guard line.kind.isPaid, let currency = line.currency else { return }
      let key = DayCurrency(day: calendar.dayNumber(atMs: line.dateMs), currency: currency)
      _ = sums[key, default: RevenueSums()].add(line)
    }
    for (key, sum) in sums {
      entries.addSales(
        DaySums(gross: sum.gross, returns: sum.returns, reversals: sum.reversals), day: key.day,
        currency: source.symbols.symbol(key.currency))
    }
  }

  /// Writes the report; returns its totals and remarks.
  func write(to writer: any ReportWriter) throws -> ReportSummary {
    let cells = SettlementReportCells(symbols)
    var summary = ReportSummary()
    summary.rowCount =
      try request.isCheck ? writeCheck(cells, writer) : writePostings(cells, writer)
    summary.exceptions = books.exceptionCounts
    let paid = Set(postings.filter { $0.entry.kind == .payment }.map(\.entry.monthName))
    summary.unknownNames = request.paidOn.keys.filter { !paid.contains($0) }.sorted()
      .map(UnknownName.payment)
    let open = currencies.filter { balance[$0].total != 0 }
    if !request.isCheck, !open.isEmpty {
      let amounts = open.prefix(Self.remarkedMax).map { cells.amountText(balance[$0].total, $0) }
      let more = open.count - amounts.count
      summary.remarks = [
        "the receivable's balance is \(amounts.joined(separator: ", "))"
          + (more > 0 ? " and \(more) more ('--check' shows all)" : "")
          + ": what is open and what Apple owes"
      ]
    }
    return summary
  }

  private func writePostings(
    _ cells: SettlementReportCells, _ writer: any ReportWriter
  ) throws -> Int {
    try writer.begin(Self.columns)
    for posting in postings {
      let entry = posting.entry
      let name = entry.name(symbols)
      try cells.text(CivilDate(dayNumber: entry.day).description, writer)
      try cells.text(name, writer)
      try writer.write(.word(entry.kind.word))
      try cells.text(entry.monthName, writer)
      try cells.text("App Store | \(name)", writer)
      try cells.text(posting.account, writer)
      try cells.amount(posting.micros, posting.currency, writer)
      try cells.text(posting.currency, writer)
      try writer.endRow()
    }
    return postings.count
  }

  /// Writes the receivable's balance as posted and as it should be, by currency.
  private func writeCheck(
    _ cells: SettlementReportCells, _ writer: any ReportWriter
  ) throws -> Int {
    try writer.begin(Self.checkColumns)
    for currency in currencies {
      let parts = balance[currency]
      try cells.text(currency, writer)
      for micros in [
        posted[currency] ?? 0, parts.open, parts.notReported, parts.rounding, parts.share,
        parts.paid, parts.total,
      ] {
        try cells.amount(micros, currency, writer)
      }
      try writer.endRow()
    }
    return currencies.count
  }
}
