// What Apple's reports say of a single line: a fact, or nothing; never an average (settlement rule S14).

/// What is known of every unit of a cell of the ledger.
package struct SettlementFact: Equatable {
  /// The month in which Apple settled all of them; nil if it was in several.
  package let month: FiscalMonthOrdinal?
  /// What the developer gets for a unit, in micros.
  package let unitShareMicros: Int64
  package let shareCurrency: Symbol
}

/// The share of a unit in all rows of a cell of Apple's.
enum UnitShare: Equatable {
  case one(micros: Int64, currency: Symbol)
  /// Rows differ, or one of them contradicts itself.
  case unclear

  init(_ row: AppleReport.Row) {
    let isOfOneSign = row.units == 0 || (row.units < 0) == row.isReturn
    let product = Int128(row.units) * Int128(row.unitShareMicros)
    self =
      isOfOneSign && product == Int128(row.shareMicros)
      ? .one(micros: row.unitShareMicros, currency: row.shareCurrency) : .unclear
  }
}

extension Reconciliation {
  /// The facts of the ledger's cells all of whose units agree with Apple's in everything but the month (pass A), in
  /// rows with one share of a unit.
  package var facts: [SettlementKey: SettlementFact] {
    struct Taken {
      var units: Int128 = 0
      var share: UnitShare?
      var months: Set<FiscalMonthOrdinal> = []
    }
    var cells: [SettlementKey: Taken] = [:]
    for row in rows {
      guard let ledger = row.ledger, let apple = row.apple, let share = unitShare(of: row),
        [.matched, .settledLater, .settledEarlier].contains(row.kind)
      else { continue }
      cells[ledger, default: Taken()].units += row.units
      let known = cells[ledger]?.share
      cells[ledger]?.share = known == nil || known == share ? share : .unclear
      cells[ledger]?.months.insert(apple.month)
    }
    var facts: [SettlementKey: SettlementFact] = [:]
    for row in rows {
      guard let key = row.ledger, facts[key] == nil, let taken = cells[key],
        taken.units == row.candidates, case .one(let micros, let currency) = taken.share
      else { continue }
      facts[key] = SettlementFact(
        month: taken.months.count == 1 ? taken.months.first : nil, unitShareMicros: micros,
        shareCurrency: currency)
    }
    return facts
  }
}
