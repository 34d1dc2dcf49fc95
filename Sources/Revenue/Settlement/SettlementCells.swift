// The cells of the journal's lines and of Apple's rows, collected one by one (settlement rules S8, S9).

/// A cell of the journal's lines.
package struct LedgerCell {
  package let key: SettlementKey
  package fileprivate(set) var units: Int128 = 0
  /// Of these, those of the month's first two days, and of its last two.
  fileprivate(set) var earlyUnits: Int128 = 0
  fileprivate(set) var lateUnits: Int128 = 0
  /// The sum of the lines' own amounts, signed; in micros.
  fileprivate(set) var amountMicros: Int128 = 0

  package var isFree: Bool { key.priceMicros == 0 }

  /// What the lines' amounts have beyond units times price, in micros.
  package var roundingMicros: Int128 { key.amountMicros(units).map { amountMicros - $0 } ?? 0 }
}

/// The ledger's cells, collected line by line.
package struct LedgerCells {
  package private(set) var cells: [LedgerCell] = []
  private(set) var sums: [SettlementAccount: SettlementSum] = [:]
  private var indexes: [SettlementKey: Int32] = [:]
  private var positions = CellMembers()
  private var month = FiscalMonth(containing: 0)

  package init() {}

  /// Adds a line.
  /// - Parameters:
  ///   - day: in `America/Los_Angeles`, days since 1970-01-01.
  ///   - quantity: signed, 0 for a refund of no whole unit.
  ///   - amountMicros: signed; nil if it is not known.
  package mutating func add(
    day: Int, isReturn: Bool, product: Symbol, country: Symbol, currency: Symbol, quantity: Int64,
    amountMicros: Int64?, position: Int
  ) {
    let (key, magnitude) = key(
      day: day, isReturn: isReturn, product: product, country: country, currency: currency,
      quantity: quantity, amountMicros: amountMicros)
    let index = indexes[key] ?? add(key)
    let units = Int128(magnitude)
    let amount = Int128(amountMicros ?? 0)
    cells[Int(index)].units += units
    if day < month.firstDay + 2 { cells[Int(index)].earlyUnits += units }
    if day > month.lastDay - 2 { cells[Int(index)].lateUnits += units }
    cells[Int(index)].amountMicros += amount
    sums[SettlementAccount(key), default: SettlementSum()].add(units, amount)
    positions.add(Int64(position), toCell: index)
  }

  /// The cell of a line, and the line's units.
  package mutating func key(
    day: Int, isReturn: Bool, product: Symbol, country: Symbol, currency: Symbol, quantity: Int64,
    amountMicros: Int64?
  ) -> (key: SettlementKey, units: UInt64) {
    if day < month.firstDay || day > month.lastDay { month = FiscalMonth(containing: day) }
    let units = max(1, quantity.magnitude)
    let key = SettlementKey(
      month: FiscalMonthOrdinal(month.ordinal), isReturn: isReturn, product: product,
      country: country, currency: currency,
      priceMicros: amountMicros.map { Self.price($0.magnitude, units) })
    return (key, units)
  }

  private mutating func add(_ key: SettlementKey) -> Int32 {
    let index = Int32(cells.count)
    cells.append(LedgerCell(key: key))
    indexes[key] = index
    return index
  }

  /// An amount divided by units, half to even.
  private static func price(_ amountMicros: UInt64, _ units: UInt64) -> Int64 {
    let (quotient, remainder) = amountMicros.quotientAndRemainder(dividingBy: units)
    let rest = units - remainder
    let isRaised = remainder > rest || (remainder == rest && quotient % 2 == 1)
    return Int64(clamping: quotient + (isRaised ? 1 : 0))
  }

  /// Puts the cells in their order.
  mutating func sort(_ order: SettlementOrder) {
    let sorted = cells.indices.sorted { order.precedes(cells[$0].key, cells[$1].key) }
    positions.sort(newIndexes(sorted))
    cells = sorted.map { cells[$0] }
    indexes = [:]
  }

  /// The first positions of a cell's lines, ascending, and how many more there are.
  func positions(ofCell cell: Int, limit: Int) -> (first: [Int64], moreCount: Int) {
    positions.numbers(ofCell: cell, limit: limit)
  }
}

/// The new index of each element, from the old indexes in the new order.
private func newIndexes(_ sorted: [Int]) -> [Int32] {
  var result = [Int32](repeating: 0, count: sorted.count)
  for (new, old) in sorted.enumerated() { result[old] = Int32(new) }
  return result
}

// MARK: - Apple

/// A cell of Apple's rows.
package struct AppleCell {
  /// Whether its units are matched, and if not, why (S9).
  package enum Kind: Int8, Hashable, Sendable { case sold, free, notInApp }

  package let key: SettlementKey
  package let kind: Kind
  /// As the line has them: those of a Return are positive. Units below 1 are matched with nothing.
  package fileprivate(set) var units: Int128 = 0
  fileprivate(set) var unitShare: UnitShare?
}

/// Apple's cells, collected row by row.
package struct AppleCells {
  private struct CellKey: Hashable {
    let key: SettlementKey
    let kind: AppleCell.Kind
  }

  package private(set) var cells: [AppleCell] = []
  private(set) var sums: [SettlementAccount: SettlementSum] = [:]
  private var indexes: [CellKey: Int32] = [:]
  private var rows = CellMembers()

  package init() {}

  /// Adds a row of a report of `month`. Its file's place among those that count, sorted by digest, and its number
  /// identify it.
  /// - Parameter product: that of the row's vendor identifier (S16).
  package mutating func add(
    _ row: AppleReport.Row, product: Symbol, month: FiscalMonthOrdinal,
    transactionMonth: FiscalMonthOrdinal, file: Int32
  ) {
    let key = SettlementKey(
      month: month, transactionMonth: transactionMonth, isReturn: row.isReturn,
      product: product, country: row.country, currency: row.currency,
      priceMicros: row.priceMicros)
    let kind: AppleCell.Kind = !row.isInApp ? .notInApp : row.priceMicros == 0 ? .free : .sold
    let index = indexes[CellKey(key: key, kind: kind)] ?? add(key, kind)
    let units = Int128(row.isReturn ? -row.units : row.units)
    cells[Int(index)].units += units
    let (share, known) = (UnitShare(row), cells[Int(index)].unitShare)
    cells[Int(index)].unitShare = known == nil || known == share ? share : .unclear
    sums[SettlementAccount(key), default: SettlementSum()]
      .add(units, key.amountMicros(units) ?? 0)
    rows.add(Int64(file) << 32 | Int64(row.number), toCell: index)
  }

  private mutating func add(_ key: SettlementKey, _ kind: AppleCell.Kind) -> Int32 {
    let index = Int32(cells.count)
    cells.append(AppleCell(key: key, kind: kind))
    indexes[CellKey(key: key, kind: kind)] = index
    return index
  }

  /// Puts the cells in their order.
  mutating func sort(_ order: SettlementOrder) {
    let sorted = cells.indices.sorted {
      let (left, right) = (cells[$0], cells[$1])
      if left.key != right.key { return order.precedes(left.key, right.key) }
      return left.kind.rawValue < right.kind.rawValue
    }
    rows.sort(newIndexes(sorted))
    cells = sorted.map { cells[$0] }
    indexes = [:]
  }

  /// The first rows of a cell, by file and number, and how many more there are.
  func rows(ofCell cell: Int, limit: Int) -> (first: [(file: Int, row: Int)], moreCount: Int) {
    let (first, moreCount) = rows.numbers(ofCell: cell, limit: limit)
    return (first.map { (Int($0 >> 32), Int($0 & 0xFFFF_FFFF)) }, moreCount)
  }
}
