// What people read of settlement: a fiscal month from the receipts to the bank, and what is open or missing.
import Base
import Ledger
package import Revenue

/// The settlement of a fiscal month, and what is open or missing in any.
package struct SettlementFigures: Sendable {
  /// What Apple's files say of a month.
  package enum MonthState: Sendable {
    case complete, reported, noReport

    /// What people read: which reports there are.
    package var word: String {
      switch self {
      case .complete: "complete"
      case .reported: "some"
      case .noReport: "none"
      }
    }
  }

  /// The newest month that has a report.
  package let month: FiscalMonth
  /// By currency.
  package let waterfalls: [SettlementWaterfall]
  /// The newest month first.
  package let rests: [SettlementRests.Rest]
  private let months: SettlementMonths
  private var codes: [Symbol: String] = [:]

  /// Nil if no month that ends by a day, in days since 1970-01-01, has a report.
  package init?(_ database: Database, untilDay: Int) throws {
    // Most ledgers have no such files, and matching reads every line.
    if try SettlementFiles(database).files.isEmpty { return nil }
    try self.init(try MatchedBooks(database)) { $0.lastDay <= untilDay }
  }

  /// Nil if none of the months that are shown has a report.
  init?(_ matched: MatchedBooks, showing isShown: (FiscalMonth) -> Bool) throws {
    let (books, rows) = (matched.books, matched.reconciliation.rows)
    let reported = books.open.filter { $0.counts && isShown($0.month) }.map(\.month)
    guard let month = reported.max(by: { $0.ordinal < $1.ordinal }) else { return nil }
    self.month = month
    months = books.months
    let overview = books.open.first { $0.file.kind == .overview && $0.month == month }?.report
    var waterfalls = SettlementWaterfalls(of: month, overview: overview)
    for row in rows { waterfalls.add(row) }
    books.forEachCountingRow(of: month) { row, _ in waterfalls.add(row) }
    self.waterfalls = try waterfalls.all(matched.symbols)
    rests = SettlementRests(rows).all(matched.symbols)
    let currencies =
      self.waterfalls.flatMap { [$0.currency] + $0.proceeds.keys } + rests.map(\.currency)
    for currency in Set(currencies) { codes[currency] = matched.symbols.string(currency) }
  }

  /// The code of a currency, as Apple or the receipts state it; empty if nothing names one.
  package func code(_ currency: Symbol) -> String { codes[currency] ?? "" }

  /// The currency that decides the digits of amounts.
  package func currency(_ symbol: Symbol) -> Currency? {
    withText(code(symbol)) { Currency.statedBy($0) }
  }

  package func state(_ month: FiscalMonthOrdinal) -> MonthState {
    if months.complete.contains(month) { return .complete }
    return months.reported.contains(month) ? .reported : .noReport
  }

  package static func name(_ month: FiscalMonthOrdinal) -> String {
    Period(.fiscalMonth, ordinal: Int(month)).description
  }
}

extension SettlementWaterfall.Step {
  /// What people read.
  package var title: String {
    switch self {
    case .sales: "Sales of the receipts"
    case .returns: "Returns of the receipts"
    case .settledInOtherMonths: "Settled in other months"
    case .open: "Open: Apple may still settle"
    case .missingThere: "Missing in Apple’s reports"
    case .notReported: "Without a report of Apple’s"
    case .rounding: "Rounding"
    case .soldInOtherMonths: "Sold in other months"
    case .missingHere: "Without a receipt here"
    case .differences: "Another price, currency or country"
    case .apps: "Other than in-app purchases"
    case .gross: "Gross of Apple’s reports"
    case .kept: "Kept by Apple: commission and taxes"
    case .converted: "Converted"
    case .share: "Share"
    case .notInReports: "Earned, not in the reports"
    case .balance: "Carried forward from before"
    case .inputTax: "Input tax"
    case .adjustments: "Adjustments"
    case .withheld: "Withheld tax"
    case .otherwise: "Owed otherwise"
    case .owed: "Owed"
    case .notPaid: "Carried forward"
    case .paid: "Paid"
    }
  }
}
