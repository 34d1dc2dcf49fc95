// Takes units of the ledger's cells for those of Apple's, pass by pass (settlement rules S10, S11).

/// What a part of a cell is. Raw values are the order of the rules.
package enum SettlementClass: Int, CaseIterable, Sendable {
  case matched, settledLater, settledEarlier
  case unpricedHere, priceDiffers, currencyDiffers, countryDiffers
  case missingHere, open, missingThere, notReported
  case free, notInApp, rounding

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .matched: "matched"
    case .settledLater: "settled_later"
    case .settledEarlier: "settled_earlier"
    case .unpricedHere: "unpriced_here"
    case .priceDiffers: "price_differs"
    case .currencyDiffers: "currency_differs"
    case .countryDiffers: "country_differs"
    case .missingHere: "missing_here"
    case .open: "open"
    case .missingThere: "missing_there"
    case .notReported: "not_reported"
    case .free: "free"
    case .notInApp: "not_in_app"
    case .rounding: "rounding"
    }
  }

  /// The class with this name; nil if there is none.
  package init?(word: String) {
    guard let found = Self.allCases.first(where: { "\($0.word)" == word }) else { return nil }
    self = found
  }
}

/// Units that a cell of the ledger and one of Apple's share; or, without one of them, what is left of the other.
package struct SettlementMatch {
  package let ledger: Int?
  package let apple: Int?
  package let units: Int128
  package let kind: SettlementClass
}

/// The matching of both sides' cells.
struct SettlementMatching {
  /// Units of a cell of the ledger that are not taken yet.
  private struct Rest {
    var units: Int128
    /// Of these, at most as many are of the month's first two days, and of its last two.
    var early: Int128
    var late: Int128
  }

  /// Which units a step may take.
  private enum Limit { case none, early, late }

  /// What cells of both sides must share in a pass.
  private enum Pass {
    case exact, unpriced, price, currency, country

    /// The key that is equal for cells that match; nil for a cell of the ledger that the pass leaves out.
    func key(_ cell: SettlementKey, isOfLedger: Bool = false) -> SettlementKey? {
      var key = cell
      key.transactionMonth = .noMonth
      if isOfLedger, (key.priceMicros == nil) != (self == .unpriced) { return nil }
      switch self {
      case .exact: break
      case .unpriced, .currency: (key.currency, key.priceMicros) = (.none, nil)
      case .price: key.priceMicros = nil
      case .country: key.country = .none
      }
      return key
    }
  }

  private let ledger: [LedgerCell]
  private let apple: [AppleCell]
  private var ledgerRests: [Rest]
  private var appleRests: [Int128]
  private(set) var matches: [SettlementMatch] = []

  /// - Parameters: the cells of both sides, in their order.
  init(_ ledger: LedgerCells, _ apple: AppleCells) {
    self.ledger = ledger.cells
    self.apple = apple.cells
    ledgerRests = ledger.cells.map {
      $0.isFree
        ? Rest(units: 0, early: 0, late: 0)
        : Rest(units: $0.units, early: $0.earlyUnits, late: $0.lateUnits)
    }
    appleRests = apple.cells.map { $0.kind == .sold ? max(0, $0.units) : 0 }
  }

  /// Runs all passes.
  mutating func run() {
    exact()
    pass(.unpriced, .unpricedHere)
    pass(.price, .priceDiffers)
    pass(.currency, .currencyDiffers)
    pass(.country, .countryDiffers)
  }

  /// Pass A: everything agrees but the month, which may be a neighbour.
  private mutating func exact() {
    let groups = groups(.exact)
    func hasDay(_ key: SettlementKey) -> Bool { key.transactionMonth != .noMonth }
    step(.exact, groups) { ($0.ownMonth, .none) }
    step(.exact, groups) { ($0.ownMonth - 1, hasDay($0) ? .late : .none) }
    step(.exact, groups) { ($0.ownMonth + 1, .early) }
    step(.exact, groups) { hasDay($0) ? nil : ($0.month - 2, .none) }
  }

  private mutating func pass(_ pass: Pass, _ kind: SettlementClass) {
    step(pass, groups(pass), kind) { ($0.ownMonth, .none) }
  }

  /// The cells of the ledger that a pass may take from, by what they share; each group in its order.
  private func groups(_ pass: Pass) -> [SettlementKey: [Int]] {
    var groups: [SettlementKey: [Int]] = [:]
    for index in ledger.indices where ledgerRests[index].units > 0 {
      if let key = pass.key(ledger[index].key, isOfLedger: true) {
        groups[key, default: []].append(index)
      }
    }
    return groups
  }

  /// Takes units for each of Apple's cells in order.
  /// - Parameters:
  ///   - kind: what they become; nil decides by the months.
  ///   - place: the ledger's month from which a cell takes, and which of its units; nil if it takes none.
  private mutating func step(
    _ pass: Pass, _ groups: [SettlementKey: [Int]], _ kind: SettlementClass? = nil,
    _ place: (SettlementKey) -> (month: FiscalMonthOrdinal, limit: Limit)?
  ) {
    // Cells of a group before this one have nothing left.
    var firsts: [SettlementKey: Int] = [:]
    for index in apple.indices where appleRests[index] > 0 {
      guard let (month, limit) = place(apple[index].key), var key = pass.key(apple[index].key)
      else { continue }
      key.month = month
      guard let group = groups[key] else { continue }
      var next = firsts[key] ?? 0
      while next < group.count, appleRests[index] > 0 {
        take(from: group[next], for: index, limit, kind)
        if ledgerRests[group[next]].units > 0 { break }
        next += 1
      }
      firsts[key] = next
    }
  }

  private mutating func take(
    from cell: Int, for index: Int, _ limit: Limit, _ kind: SettlementClass?
  ) {
    var rest = ledgerRests[cell]
    var units = min(rest.units, appleRests[index])
    switch limit {
    case .none: break
    case .early: units = min(units, rest.early)
    case .late: units = min(units, rest.late)
    }
    guard units > 0 else { return }
    rest.units -= units
    if limit == .early { rest.early -= units }
    if limit == .late { rest.late -= units }
    // All other steps take of the rest first.
    rest.early = min(rest.early, rest.units)
    rest.late = min(rest.late, rest.units)
    ledgerRests[cell] = rest
    appleRests[index] -= units
    matches.append(
      SettlementMatch(
        ledger: cell, apple: index, units: units,
        kind: kind ?? .ofMonths(ledger[cell].key.month, apple[index].key.month)))
  }

  /// What is left of both sides.
  /// - Parameter months: which months are complete and reported.
  mutating func addRests(_ months: SettlementMonths) {
    for (index, cell) in ledger.enumerated() {
      let units = cell.isFree ? cell.units : ledgerRests[index].units
      if units > 0 { add(ledger: index, units, cell.isFree ? .free : months.rest(cell.key.month)) }
      if cell.roundingMicros != 0 { add(ledger: index, 0, .rounding) }
    }
    for (index, cell) in apple.enumerated() {
      let taken = cell.kind == .sold ? max(0, cell.units) - appleRests[index] : 0
      let units = cell.units - taken
      if units != 0 {
        matches.append(
          SettlementMatch(ledger: nil, apple: index, units: units, kind: .ofRest(cell.kind)))
      }
    }
  }

  private mutating func add(ledger: Int, _ units: Int128, _ kind: SettlementClass) {
    matches.append(SettlementMatch(ledger: ledger, apple: nil, units: units, kind: kind))
  }
}

extension SettlementKey {
  /// The month in which Apple's cell looks first: that of the transaction, else of the report.
  fileprivate var ownMonth: FiscalMonthOrdinal {
    transactionMonth == .noMonth ? month : transactionMonth
  }
}

extension SettlementClass {
  /// Units of pass A, by the months of the ledger and of Apple's report.
  fileprivate static func ofMonths(
    _ ledger: FiscalMonthOrdinal, _ apple: FiscalMonthOrdinal
  ) -> SettlementClass {
    ledger == apple ? .matched : ledger < apple ? .settledLater : .settledEarlier
  }

  /// Units of Apple's that nothing matches.
  fileprivate static func ofRest(_ kind: AppleCell.Kind) -> SettlementClass {
    switch kind {
    case .sold: .missingHere
    case .free: .free
    case .notInApp: .notInApp
    }
  }
}

/// What is known of months: which have rows that count, and which are complete (S6).
package struct SettlementMonths {
  package var reported: Set<FiscalMonthOrdinal> = []
  package var complete: Set<FiscalMonthOrdinal> = []

  package init() {}

  /// What units of the ledger are that nothing matches.
  func rest(_ month: FiscalMonthOrdinal) -> SettlementClass {
    if !reported.contains(month) { return .notReported }
    return isClosed(month) ? .missingThere : .open
  }

  /// Whether a month and the two after it are complete: what Apple has not settled then, it may never settle.
  func isClosed(_ month: FiscalMonthOrdinal) -> Bool {
    (month...month + 2).allSatisfy(complete.contains)
  }
}
