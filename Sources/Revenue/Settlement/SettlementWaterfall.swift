// From the receipts of a fiscal month to what Apple paid for it, step by step (settlement rules S11 to S13).
import Base

/// What becomes of a fiscal month's receipts in one currency. Amounts are in micros.
package struct SettlementWaterfall: Sendable {
  /// In their order. A sum is what all steps before it come to.
  package enum Step: Int, CaseIterable, Sendable {
    case sales, returns
    case settledInOtherMonths, open, missingThere, notReported, rounding
    case soldInOtherMonths, missingHere, differences, apps
    case gross
    case kept, converted
    case share
    case notInReports, balance, inputTax, adjustments, withheld, otherwise
    case owed
    case notPaid
    case paid

    package var isSum: Bool { [.gross, .share, .owed, .paid].contains(self) }
  }

  package struct Bar: Sendable {
    package let step: Step
    /// What the step adds; of a sum all that was added before.
    package let micros: Int128
    /// Where the step begins: what was added before it; of a sum 0.
    package let fromMicros: Int128
  }

  package let month: FiscalMonth
  package let currency: Symbol
  /// What arrived at the bank, by its currency, and from how many rows of the overview.
  package fileprivate(set) var proceeds: [Symbol: Int128] = [:]
  fileprivate var steps: [Step: Int128] = [:]
  /// Whether the month has an overview: without one nothing is said of what is owed and paid.
  fileprivate let hasOverview: Bool

  fileprivate init(_ month: FiscalMonth, _ currency: Symbol, hasOverview: Bool) {
    (self.month, self.currency, self.hasOverview) = (month, currency, hasOverview)
  }

  /// The steps that change something, and the sums; what is owed only if it is another sum than the share.
  package var bars: [Bar] {
    var total: Int128 = 0
    var bars: [Bar] = []
    for step in Step.allCases {
      if step == .notInReports, !hasOverview { break }
      if step == .owed, bars.last?.step == .share { continue }
      if step.isSum {
        bars.append(Bar(step: step, micros: total, fromMicros: 0))
      } else if let micros = steps[step], micros != 0 {
        bars.append(Bar(step: step, micros: micros, fromMicros: total))
        total += micros
      }
    }
    return bars
  }

  /// What all steps up to a sum come to.
  package func total(_ sum: Step) -> Int128 {
    Step.allCases.prefix(sum.rawValue).reduce(0) { $0 + (steps[$1] ?? 0) }
  }
}

/// The waterfalls of a fiscal month, in each of its currencies.
package struct SettlementWaterfalls {
  private let month: FiscalMonth
  private let ordinal: FiscalMonthOrdinal
  private let overview: AppleReport?
  private var byCurrency: [Symbol: SettlementWaterfall] = [:]
  /// Of the rows that count, by currency: what the steps must come to.
  private var (gross, share): ([Symbol: Int128], [Symbol: Int128]) = ([:], [:])

  /// - Parameter overview: the month's payment overview; nil if there is none.
  package init(of month: FiscalMonth, overview: AppleReport?) {
    self.month = month
    ordinal = FiscalMonthOrdinal(month.ordinal)
    self.overview = overview
    if let overview { add(overview) }
  }

  private mutating func add(
    _ micros: Int128, to step: SettlementWaterfall.Step, _ currency: Symbol
  ) {
    byCurrency[
      currency,
      default: SettlementWaterfall(month, currency, hasOverview: overview != nil)
    ].steps[step, default: 0] += micros
  }

  /// Adds a row of the comparison: what the month's receipts are, and what Apple has more or less.
  package mutating func add(_ row: ReconciliationRow) {
    let isSoldNow = row.ledger?.month == ordinal
    let isSettledNow = row.apple?.month == ordinal
    if let ledger = row.ledger, let micros = row.ledgerMicros {
      if isSoldNow {
        add(micros, to: ledger.isReturn ? .returns : .sales, ledger.currency)
        if !isSettledNow { add(-micros, to: Self.step(of: row.kind), ledger.currency) }
      } else if isSettledNow {
        add(micros, to: .soldInOtherMonths, ledger.currency)
      }
    }
    guard isSettledNow, let apple = row.apple else { return }
    let step: SettlementWaterfall.Step =
      switch row.kind {
      case .missingHere: .missingHere
      case .notInApp, .free: .apps
      default: .differences
      }
    add(row.appleMicros ?? 0, to: step, apple.currency)
    if let ledger = row.ledger { add(-(row.ledgerMicros ?? 0), to: step, ledger.currency) }
  }

  /// The step that takes away what was sold in the month and not settled in it.
  private static func step(of kind: SettlementClass) -> SettlementWaterfall.Step {
    switch kind {
    case .open: .open
    case .missingThere: .missingThere
    case .notReported: .notReported
    case .rounding, .free: .rounding
    default: .settledInOtherMonths
    }
  }

  /// Adds a row of the month's reports that counts.
  package mutating func add(_ row: AppleReport.Row) {
    let rowGross = Int128(row.units) * Int128(row.priceMicros)
    let rowShare = Int128(row.shareMicros)
    gross[row.currency, default: 0] += rowGross
    share[row.shareCurrency, default: 0] += rowShare
    if row.currency == row.shareCurrency {
      add(rowShare - rowGross, to: .kept, row.currency)
    } else {
      add(-rowGross, to: .converted, row.currency)
      add(rowShare, to: .converted, row.shareCurrency)
    }
  }

  private mutating func add(_ overview: AppleReport) {
    for list in overview.lists {
      for row in list.rows {
        let parts: [(SettlementWaterfall.Step, Int64)] = [
          (.balance, row.balance), (.inputTax, row.inputTax), (.adjustments, row.adjustments),
          (.withheld, row.withholdingTax),
        ]
        var sum = Int128(row.earned)
        for (step, micros) in parts {
          add(Int128(micros), to: step, row.currency)
          sum += Int128(micros)
        }
        // The share is taken off again below.
        add(Int128(row.earned), to: .notInReports, row.currency)
        add(Int128(row.owed) - sum, to: .otherwise, row.currency)
        if list.payment != nil, let proceeds = row.proceeds {
          byCurrency[row.currency]?.proceeds[row.bankCurrency, default: 0] += Int128(proceeds)
        } else {
          add(-Int128(row.owed), to: .notPaid, row.currency)
        }
      }
    }
  }

  /// The waterfalls, by currency as bytes. Throws unless the steps come to what the reports state.
  package func all(
    _ symbols: StringInterner
  ) throws(ReconciliationFault) -> [SettlementWaterfall] {
    let order = SettlementOrder(symbols)
    var found: [SettlementWaterfall] = []
    for (currency, waterfall) in byCurrency {
      var waterfall = waterfall
      if overview != nil {
        waterfall.steps[.notInReports, default: 0] -= share[currency] ?? 0
      }
      guard waterfall.total(.gross) == gross[currency] ?? 0,
        waterfall.total(.share) == share[currency] ?? 0
      else {
        throw ReconciliationFault(
          "the steps of \(month.name) in '\(symbols.string(currency))' do not come to Apple's gross and share"
        )
      }
      if waterfall.steps.values.contains(where: { $0 != 0 }) { found.append(waterfall) }
    }
    return found.sorted { order.place($0.currency) < order.place($1.currency) }
  }
}

/// What is open or missing, by fiscal month and currency. Amounts are in micros.
package struct SettlementRests: Sendable {
  package struct Rest: Sendable {
    package let month: FiscalMonthOrdinal
    package let currency: Symbol
    /// By class: `open`, `missing_there`, `missing_here`, `not_reported`.
    package fileprivate(set) var sums: [SettlementClass: SettlementSum] = [:]

    package var unitCount: Int128 { sums.values.reduce(0) { $0 + $1.units } }
  }

  /// The classes that are counted, as columns.
  package static let classes: [SettlementClass] = [
    .open, .missingThere, .missingHere, .notReported,
  ]

  private struct Key: Hashable {
    let month: FiscalMonthOrdinal
    let currency: Symbol
  }

  private var rests: [Key: Rest] = [:]

  package init(_ rows: [ReconciliationRow]) {
    for row in rows where Self.classes.contains(row.kind) {
      guard let side = row.ledger ?? row.apple else { continue }
      let key = Key(month: row.month, currency: side.currency)
      rests[key, default: Rest(month: key.month, currency: key.currency)]
        .sums[row.kind, default: SettlementSum()]
        .add(row.units, row.ledgerMicros ?? row.appleMicros ?? 0)
    }
  }

  /// The newest month first, then by currency as bytes; what has no price comes last.
  package func all(_ symbols: StringInterner) -> [Rest] {
    let order = SettlementOrder(symbols)
    func place(_ rest: Rest) -> Int32 { rest.currency == .none ? .max : order.place(rest.currency) }
    return rests.values.sorted {
      $0.month != $1.month ? $0.month > $1.month : place($0) < place($1)
    }
  }
}
