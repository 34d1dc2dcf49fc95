// Cells: the units of the ledger and of Apple that nothing in the evidence tells apart (settlement rules S8, S9).

/// Fiscal months, by their number: months since year 0, as `FiscalMonth.ordinal` has them.
package typealias FiscalMonthOrdinal = Int32

extension FiscalMonthOrdinal {
  /// No month.
  package static var noMonth: FiscalMonthOrdinal { .min }
}

/// What only one current file can be of: a month and a region, or the overview of a month.
package struct SettlementIdentity: Hashable, Sendable, CustomStringConvertible {
  /// As in `FY2026-P01`.
  package let month: String
  /// Nil for an overview.
  package let region: String?

  package init(month: String, region: String?) { (self.month, self.region) = (month, region) }

  package var description: String { "\(month) \(region ?? "overview")" }
}

/// What the units of a cell have in common.
package struct SettlementKey: Hashable, Sendable {
  /// Of Apple's cells the month of the report, of the ledger's that of the line.
  package var month: FiscalMonthOrdinal
  /// The month of the transaction; `noMonth` for a financial report, and for the ledger's cells.
  package var transactionMonth: FiscalMonthOrdinal = .noMonth
  /// Whether the line is Return; Reversals are Sale.
  package var isReturn: Bool
  package var product: Symbol
  package var country: Symbol
  /// The symbol of a code, which may be of no currency that is known; `Symbol.none` if nothing names one.
  package var currency: Symbol
  /// Micros, 0 or more; nil if it is not known.
  package var priceMicros: Int64?

  package init(
    month: FiscalMonthOrdinal, transactionMonth: FiscalMonthOrdinal = .noMonth, isReturn: Bool,
    product: Symbol, country: Symbol, currency: Symbol, priceMicros: Int64?
  ) {
    (self.month, self.transactionMonth, self.isReturn) = (month, transactionMonth, isReturn)
    (self.product, self.country, self.currency) = (product, country, currency)
    self.priceMicros = priceMicros
  }
}

/// The order of cells: months, Sale before Return, texts as bytes, prices as numbers, what is missing first.
struct SettlementOrder {
  /// The place of each symbol among all, by its bytes.
  private let places: [Int32]

  init(_ symbols: StringInterner) {
    let sorted = (0..<Symbol(symbols.count)).sorted {
      symbols.text($0).precedes(symbols.text($1))
    }
    var places = [Int32](repeating: 0, count: sorted.count)
    for (place, symbol) in sorted.enumerated() { places[Int(symbol)] = Int32(place) }
    self.places = places
  }

  func place(_ symbol: Symbol) -> Int32 { symbol == .none ? -1 : places[Int(symbol)] }

  func precedes(_ left: SettlementKey, _ right: SettlementKey) -> Bool {
    if left.month != right.month { return left.month < right.month }
    if left.transactionMonth != right.transactionMonth {
      return left.transactionMonth < right.transactionMonth
    }
    if left.isReturn != right.isReturn { return right.isReturn }
    if left.product != right.product { return place(left.product) < place(right.product) }
    if left.country != right.country { return place(left.country) < place(right.country) }
    if left.currency != right.currency { return place(left.currency) < place(right.currency) }
    return (left.priceMicros ?? -1) < (right.priceMicros ?? -1)
  }
}

extension SettlementKey {
  /// Units times price, with the line's sign, in micros; nil without a price.
  package func amountMicros(_ units: Int128) -> Int128? {
    priceMicros.map { Int128($0) * (isReturn ? -units : units) }
  }
}

/// A currency and a line, by which both sides are compared (S12).
struct SettlementAccount: Hashable {
  let currency: Symbol
  let isReturn: Bool

  init(_ key: SettlementKey) { (currency, isReturn) = (key.currency, key.isReturn) }
}

/// Units, and their amount in micros.
package struct SettlementSum: Equatable, Sendable {
  package var units: Int128 = 0
  package var micros: Int128 = 0

  package init() {}

  package mutating func add(_ units: Int128, _ micros: Int128) {
    self.units += units
    self.micros += micros
  }
}

/// The numbers of the lines or rows of each cell.
struct CellMembers {
  private var cells: [Int32] = []
  private var numbers: [Int64] = []
  /// After `sort`: where the numbers of each cell begin.
  private var starts: [Int] = []

  mutating func add(_ number: Int64, toCell cell: Int32) {
    cells.append(cell)
    numbers.append(number)
  }

  /// Puts each cell's numbers together, ascending.
  /// - Parameter indexes: the cell's new index for each old one.
  mutating func sort(_ indexes: [Int32]) {
    starts = [Int](repeating: 0, count: indexes.count + 1)
    for cell in cells { starts[Int(indexes[Int(cell)]) + 1] += 1 }
    for index in indexes.indices { starts[index + 1] += starts[index] }
    var ends = starts
    var sorted = [Int64](repeating: 0, count: numbers.count)
    for (cell, number) in zip(cells, numbers) {
      let index = Int(indexes[Int(cell)])
      sorted[ends[index]] = number
      ends[index] += 1
    }
    (cells, numbers) = ([], sorted)
    for index in indexes.indices { numbers[starts[index]..<starts[index + 1]].sort() }
  }

  /// The first different numbers of a cell, and how many more there are.
  func numbers(ofCell cell: Int, limit: Int) -> (first: [Int64], moreCount: Int) {
    var first: [Int64] = []
    var (count, last) = (0, Int64.min)
    for number in numbers[starts[cell]..<starts[cell + 1]] where number != last {
      last = number
      count += 1
      if count <= limit { first.append(number) }
    }
    return (first, count - first.count)
  }
}
