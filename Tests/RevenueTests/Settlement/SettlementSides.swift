// The ledger's and Apple's side of a settlement, from a few words a line, and what comes of them.
import Base
import Revenue
import TestSupport
import Testing

/// Both sides.
struct SettlementSides {
  private struct DayCurrency: Hashable {
    let day: Int
    let currency: Symbol
  }

  let symbols = StringInterner(TextArena())
  private(set) var months = SettlementMonths()
  private var ledger = LedgerCells()
  private var apple = AppleCells()
  private var days: [DayCurrency: DaySums] = [:]
  private var counting = CountingSums()
  private var rowsByMonth: [FiscalMonthOrdinal: [AppleReport.Row]] = [:]
  var rowsOfApple: [AppleReport.Row] { rowsByMonth.values.flatMap(\.self) }
  private(set) var overviews: [(month: FiscalMonth, report: AppleReport)] = []
  private var lineCount = 0

  /// `2025-10-01 S 2 DE EUR 9.99`: the day, Sale, Return or reVersal, units, country, currency, and the price of a
  /// unit; `-` is none. A price as `=10.00` is the amount of all units.
  mutating func line(_ words: String) throws {
    let parts = words.split(separator: " ").map(String.init)
    let units = try #require(Int64(parts[2]))
    let isReturn = parts[1] == "R"
    let isWhole = parts[5].hasPrefix("=")
    let price = try micros(isWhole ? String(parts[5].dropFirst()) : parts[5])
    let amount = price.map { $0 * (isWhole ? 1 : max(1, units)) * (isReturn ? -1 : 1) }
    let day = try CivilDate(parsing: parts[0]).dayNumber
    let currency = parts[4] == "-" ? Symbol.none : symbols.symbol(parts[4])
    ledger.add(
      day: day, isReturn: isReturn, product: symbols.symbol("pro"),
      country: symbols.symbol(parts[3]), currency: currency,
      quantity: isReturn ? -units : units, amountMicros: amount, position: lineCount)
    lineCount += 1
    guard let amount else { return }
    var sums = days[DayCurrency(day: day, currency: currency)] ?? DaySums()
    switch parts[1] {
    case "R": sums.returns -= Int128(amount)
    case "V": sums.reversals += Int128(amount)
    default: sums.gross += Int128(amount)
    }
    days[DayCurrency(day: day, currency: currency)] = sums
  }

  /// `FY2026-P01 2025-10-01 S 2 DE EUR 9.99 5.88 EUR`: the report's month; the day of the transaction, `-` for none;
  /// and perhaps the share of a unit and its currency, then `type=…`.
  mutating func row(_ words: String) throws {
    let parts = words.split(separator: " ").map(String.init)
    let month = try #require(FiscalMonth(parsing: parts[0]))
    var transactionMonth = FiscalMonthOrdinal.noMonth
    if parts[1] != "-" {
      let day = try CivilDate(parsing: parts[1]).dayNumber
      transactionMonth = FiscalMonthOrdinal(FiscalMonth(containing: day).ordinal)
    }
    func text(_ day: Int) -> String {
      let date = CivilDate(dayNumber: day).description
      return "\(date.dropFirst(5).prefix(2))/\(date.suffix(2))/\(date.prefix(4))"
    }
    let units = (parts[2] == "R" ? "-" : "") + parts[3]
    let share = parts.count > 7 ? "\(parts[7]) \(parts[8])" : "0.00 EUR"
    let type = parts.count > 9 ? " \(parts[9])" : ""
    let report = AppleReportText(
      region: "WW", days: (text(month.firstDay), text(month.lastDay)),
      ["pro \(parts[2]) \(units) \(share) \(parts[4]) \(parts[6]) \(parts[5])\(type)"])
    let rows = try withText(report.text) { try AppleReport(parsing: $0, symbols: symbols).rows }
    add(rows[0], month, transactionMonth)
  }

  /// A row of a report, which completes its month.
  mutating func add(
    _ row: AppleReport.Row, _ month: FiscalMonth,
    _ transactionMonth: FiscalMonthOrdinal = .noMonth
  ) {
    let ordinal = FiscalMonthOrdinal(month.ordinal)
    apple.add(
      row, product: row.product, month: ordinal, transactionMonth: transactionMonth, file: 0)
    counting.add(row, month: ordinal)
    rowsByMonth[ordinal, default: []].append(row)
    months.reported.insert(ordinal)
    months.complete.insert(ordinal)
  }

  mutating func overview(_ month: String, _ text: [UInt8]) throws {
    let report = try withText(text) { try AppleReport(parsing: $0, symbols: symbols) }
    overviews.append((try #require(FiscalMonth(parsing: month)), report))
  }

  private func micros(_ text: String) throws -> Int64? {
    if text == "-" { return nil }
    let parts = text.split(separator: ".")
    let whole = try #require(Int64(parts[0])) * 1_000_000
    return whole + (parts.count > 1 ? try #require(Int64(parts[1])) * 10_000 : 0)
  }

  func rowsOfApple(of month: FiscalMonth) -> [AppleReport.Row] {
    rowsByMonth[FiscalMonthOrdinal(month.ordinal)] ?? []
  }

  func reconciliation() throws -> Reconciliation {
    try Reconciliation(ledger, apple, months, symbols)
  }

  /// `class units ledger-month apple-month`, in the report's order.
  func rows() throws -> [String] {
    try reconciliation().rows.map { row in
      "\(row.kind.word) \(row.units) \(name(row.ledger?.month)) \(name(row.apple?.month))"
    }
  }

  private func name(_ month: FiscalMonthOrdinal?) -> String {
    month.map { String(Period(.fiscalMonth, ordinal: Int($0)).description.suffix(3)) } ?? "-"
  }

  // MARK: Entries

  /// All postings in order. Throws unless every entry is balanced.
  /// - Parameter isOfApple: whether the entries of sales rest on Apple's reports alone.
  func postings(
    isOfApple: Bool = false, _ accounts: EntryAccounts = EntryAccounts(), paidDay: Int? = nil
  ) throws -> [Posting] {
    var book = EntryBook(accounts)
    if isOfApple {
      book.addGross(counting)
    } else {
      for (key, sums) in days { book.addSales(sums, day: key.day, currency: key.currency) }
      let rows = try reconciliation().rows
      book.addDifferences(rows)
      book.addUnsettled(rows, months)
    }
    book.addShares(counting)
    for (month, report) in overviews { book.addPayments(report, of: month, paidDay: paidDay) }
    return try book.postings(symbols)
  }

  /// `2025-11-01 settlement FY2026-P01 EUR: Expenses:Apple:Kept 16.03 EUR`
  func text(_ posting: Posting) -> String {
    "\(CivilDate(dayNumber: posting.entry.day)) \(posting.entry.name(symbols)): \(posting.account) "
      + "\(amount(posting.micros, posting.currency))"
  }

  /// `16.03 EUR`.
  func amount(_ micros: Int128, _ currency: Symbol) -> String {
    let code = symbols.string(currency)
    return "\(Amount.text(micros: micros, currency: Currency.parse(code))) \(code)"
  }

  /// What an account holds after all postings, by currency, without currencies of which it holds nothing.
  func balance(of account: EntryAccount, _ postings: [Posting]) -> [String] {
    var sums: [Symbol: Int128] = [:]
    for posting in postings where posting.account == account.standard {
      sums[posting.currency, default: 0] += posting.micros
    }
    return sums.filter { $0.value != 0 }.map { amount($0.value, $0.key) }.sorted()
  }
}
