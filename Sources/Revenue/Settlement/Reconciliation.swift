// The rows that tie the ledger to what Apple reported, and the identity that they must satisfy (settlement rule S12).
import Base

/// A row: units that a cell of the ledger and one of Apple's share, or what is left of one of them. Amounts are in
/// micros.
package struct ReconciliationRow {
  package let kind: SettlementClass
  /// The side that is not there is nil.
  package let ledger: SettlementKey?
  package let apple: SettlementKey?
  package let units: Int128
  /// All units of the ledger's cell.
  package let candidates: Int128
  package let ledgerMicros: Int128?
  package let appleMicros: Int128?
  fileprivate let ledgerCell: Int?
  fileprivate let appleCell: Int?

  /// The month of Apple's report; without it, of the ledger.
  package var month: FiscalMonthOrdinal { apple?.month ?? ledger?.month ?? .noMonth }
  package var isReturn: Bool { apple?.isReturn ?? ledger?.isReturn ?? false }
  package var product: Symbol { apple?.product ?? ledger?.product ?? .none }

  /// What Apple has more; nil if the currencies differ, or if neither amount is known.
  package var differenceMicros: Int128? {
    if kind == .currencyDiffers || (ledgerMicros == nil && appleMicros == nil) { return nil }
    return (appleMicros ?? 0) - (ledgerMicros ?? 0)
  }

  /// The currency of the difference.
  package var differenceCurrency: Symbol {
    appleMicros == nil ? ledger?.currency ?? .none : apple?.currency ?? .none
  }
}

/// The sides do not add up to what they were made of: a fault of this program.
package struct ReconciliationFault: ReportableError, CustomStringConvertible {
  package let cause: String

  package init(_ cause: String) { self.cause = cause }

  package var description: String { "reconcile: \(cause); this is a fault of the program" }
}

/// The ledger and Apple's reports, matched.
package struct Reconciliation {
  package private(set) var rows: [ReconciliationRow] = []
  private let ledger: LedgerCells
  private let apple: AppleCells

  /// Matches both sides. Throws if the rows do not add up to both.
  package init(
    _ ledger: LedgerCells, _ apple: AppleCells, _ months: SettlementMonths,
    _ symbols: StringInterner
  ) throws(ReconciliationFault) {
    var (ledger, apple) = (ledger, apple)
    let order = SettlementOrder(symbols)
    ledger.sort(order)
    apple.sort(order)
    (self.ledger, self.apple) = (ledger, apple)
    var matching = SettlementMatching(ledger, apple)
    matching.run()
    matching.addRests(months)
    rows = matching.matches.map { Self.row($0, ledger, apple) }
    rows.sort { Self.precedes($0, $1, order) }
    try checkIdentity(symbols)
  }

  private static func row(
    _ match: SettlementMatch, _ ledger: LedgerCells, _ apple: AppleCells
  ) -> ReconciliationRow {
    let ledgerCell = match.ledger.map { ledger.cells[$0] }
    let appleKey = match.apple.map { apple.cells[$0].key }
    let ledgerMicros =
      match.kind == .rounding
      ? ledgerCell?.roundingMicros : ledgerCell?.key.amountMicros(match.units)
    return ReconciliationRow(
      kind: match.kind, ledger: ledgerCell?.key, apple: appleKey, units: match.units,
      candidates: ledgerCell?.units ?? 0, ledgerMicros: ledgerMicros,
      appleMicros: appleKey?.amountMicros(match.units), ledgerCell: match.ledger,
      appleCell: match.apple)
  }

  private static func precedes(
    _ left: ReconciliationRow, _ right: ReconciliationRow, _ order: SettlementOrder
  ) -> Bool {
    if left.month != right.month { return left.month < right.month }
    if left.kind != right.kind { return left.kind.rawValue < right.kind.rawValue }
    if left.isReturn != right.isReturn { return right.isReturn }
    if left.product != right.product {
      return order.place(left.product) < order.place(right.product)
    }
    func ledgerOrder(_ row: ReconciliationRow) -> (Int32, Int32, Int64, FiscalMonthOrdinal) {
      guard let key = row.ledger else { return (-1, -1, -1, .noMonth) }
      return (
        order.place(key.country), order.place(key.currency), key.priceMicros ?? -1, key.month
      )
    }
    func appleOrder(_ row: ReconciliationRow) -> (FiscalMonthOrdinal, Int32, Int32, Int64) {
      guard let key = row.apple else { return (.noMonth, -1, -1, -1) }
      return (
        key.transactionMonth, order.place(key.country), order.place(key.currency),
        key.priceMicros ?? -1
      )
    }
    let (one, other) = (ledgerOrder(left), ledgerOrder(right))
    return one == other ? appleOrder(left) < appleOrder(right) : one < other
  }

  /// The first positions of the lines of a row's cell, ascending, and how many more there are.
  package func positions(
    of row: ReconciliationRow, limit: Int
  ) -> (first: [Int64], moreCount: Int) {
    row.ledgerCell.map { ledger.positions(ofCell: $0, limit: limit) } ?? ([], 0)
  }

  /// The first rows of Apple's of a row's cell, by file and number, and how many more there are.
  package func appleRows(
    of row: ReconciliationRow, limit: Int
  ) -> (first: [(file: Int, row: Int)], moreCount: Int) {
    row.appleCell.map { apple.rows(ofCell: $0, limit: limit) } ?? ([], 0)
  }

  /// The share of a unit in Apple's cell of a row; nil without Apple's side.
  func unitShare(of row: ReconciliationRow) -> UnitShare? {
    row.appleCell.flatMap { apple.cells[$0].unitShare }
  }

  // MARK: Identity

  /// Throws unless, by currency and line, the rows hold every unit and amount of both sides once, and what one side
  /// has more explains the difference between them.
  private func checkIdentity(_ symbols: StringInterner) throws(ReconciliationFault) {
    var ledgerSums: [SettlementAccount: SettlementSum] = [:]
    var appleSums: [SettlementAccount: SettlementSum] = [:]
    var explained: [SettlementAccount: Int128] = [:]
    for row in rows {
      if let key = row.ledger {
        ledgerSums[SettlementAccount(key), default: SettlementSum()]
          .add(row.units, row.ledgerMicros ?? 0)
        if row.kind == .currencyDiffers {
          explained[SettlementAccount(key), default: 0] -= row.ledgerMicros ?? 0
        }
      }
      if let key = row.apple {
        appleSums[SettlementAccount(key), default: SettlementSum()]
          .add(row.units, row.appleMicros ?? 0)
        if row.kind == .currencyDiffers {
          explained[SettlementAccount(key), default: 0] += row.appleMicros ?? 0
        }
      }
      if let difference = row.differenceMicros,
        let key = row.appleMicros == nil ? row.ledger : row.apple
      {
        explained[SettlementAccount(key), default: 0] += difference
      }
    }
    let nothing = SettlementSum()
    for account in Set(ledgerSums.keys).union(appleSums.keys).union(ledger.sums.keys)
      .union(apple.sums.keys)
    {
      let (ledgerSum, appleSum) = (ledgerSums[account] ?? nothing, appleSums[account] ?? nothing)
      guard ledgerSum == ledger.sums[account] ?? nothing,
        appleSum == apple.sums[account] ?? nothing,
        ledgerSum.micros + (explained[account] ?? 0) == appleSum.micros
      else {
        let currency = symbols.string(account.currency)
        throw ReconciliationFault(
          "the rows of \(account.isReturn ? "Return" : "Sale") in '\(currency)' do not add up")
      }
    }
  }
}
