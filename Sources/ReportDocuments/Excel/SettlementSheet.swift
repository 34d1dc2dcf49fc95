// The sheet of settlement: from the receipts of a fiscal month to the bank, with a chart, and what is open or missing.
import Base
import Projections
import Revenue

/// Writes the third sheet.
struct SettlementSheet {
  /// A chart is as high as this many rows.
  private static let chartRowCount = 20
  /// How many currencies have charts.
  private static let chartsMax = 6

  private let workbook: Workbook
  private var row = 0

  init(_ workbook: Workbook) {
    self.workbook = workbook
    workbook.setColumn(.settlement, 0, width: 36)
    for column in 1...7 { workbook.setColumn(.settlement, column, width: 18) }
  }

  /// - Parameter settlement: nil if no month that is shown has a report.
  mutating func write(_ settlement: SettlementFigures?) throws {
    guard let settlement else {
      return try line(["Apple has reported none of these fiscal months."])
    }
    for (index, waterfall) in settlement.waterfalls.enumerated() {
      try write(waterfall, settlement, hasChart: index < Self.chartsMax)
    }
    try write(settlement.rests, settlement)
    workbook.print(.settlement, rowCount: row, columnCount: Self.chartColumn)
  }

  private mutating func write(
    _ waterfall: SettlementWaterfall, _ settlement: SettlementFigures, hasChart: Bool
  ) throws {
    let code = settlement.code(waterfall.currency)
    let title = "\(waterfall.month.name), \(code)"
    let start = row
    try line([title], .title)
    try line(["Step"], .heading, numbers: ["Amount"])
    if hasChart {
      try Array("Parts of the chart".utf8).withUnsafeBytes {
        try workbook.write($0, row - 1, Self.chartColumn, on: .settlement)
      }
    }
    let first = row
    for bar in waterfall.bars {
      try cell(bar.step.title, 0, bar.step.isSum ? .name : nil)
      try amount(bar.micros, waterfall.currency, 1, settlement)
      if hasChart { try chartCells(bar) }
      row += 1
    }
    if hasChart {
      try workbook.drawColumns(
        title, rows: first..<row, colors: Self.colors, first: Self.chartColumn, at: 3)
    }
    for (currency, micros) in waterfall.proceeds.sorted(by: { $0.key < $1.key }) {
      try cell("At the bank, \(settlement.code(currency))", 0, .name)
      try amount(micros, currency, 1, settlement)
      row += 1
    }
    row = max(row + 1, hasChart ? start + Self.chartRowCount : row)
  }

  /// Of the part below a bar, which is not seen; of increases, decreases and sums; of what a bar has beyond 0.
  private static let colors: [UInt32?] = [nil, 0x3C8799, 0xA8321A, 0x0A5F73, 0xA8321A]
  /// The first column that only the chart reads, to the right of it.
  private static let chartColumn = 12

  /// Writes the parts of a bar that the chart stacks, those above and those below 0 apart.
  private func chartCells(_ bar: SettlementWaterfall.Bar) throws {
    let (low, high) = (
      min(bar.fromMicros, bar.fromMicros + bar.micros),
      max(bar.fromMicros, bar.fromMicros + bar.micros)
    )
    let (above, below) = (max(0, high) - max(0, low), min(0, low) - min(0, high))
    let place = bar.step.isSum ? 3 : bar.micros < 0 ? 2 : 1
    var parts = [max(0, low) + min(0, high), 0, 0, 0, above == 0 ? 0 : below]
    parts[place] = above == 0 ? below : above
    for (index, micros) in parts.enumerated() {
      try workbook.write(
        Double(micros) / 1_000_000, row, Self.chartColumn + index, on: .settlement)
    }
  }

  private mutating func write(
    _ rests: [SettlementRests.Rest], _ settlement: SettlementFigures
  ) throws {
    if rests.isEmpty {
      return try line(["Nothing is open or missing in any fiscal month."])
    }
    try line(["Open and missing, by fiscal month"], .title)
    try line(
      ["Month", "Reports", "Currency"], .heading,
      numbers: ["Open", "Missing at Apple", "Without a receipt", "Without a report", "Units"])
    for rest in rests {
      try cell(SettlementFigures.name(rest.month), 0, nil)
      try cell(settlement.state(rest.month).word, 1, nil)
      let code = settlement.code(rest.currency)
      try cell(code.isEmpty ? "no price" : code, 2, nil)
      for (column, kind) in SettlementRests.classes.enumerated() {
        guard let sum = rest.sums[kind] else { continue }
        try amount(sum.micros, rest.currency, column + 3, settlement)
      }
      try workbook.write(Double(rest.unitCount), row, 7, on: .settlement)
      row += 1
    }
  }

  private mutating func line(
    _ texts: [String], _ look: Workbook.CellFormat? = nil, numbers: [String] = []
  ) throws {
    for (column, text) in texts.enumerated() { try cell(text, column, look) }
    for (column, text) in numbers.enumerated() {
      try cell(text, texts.count + column, .numberHeading)
    }
    row += 1
  }

  private func cell(_ text: String, _ column: Int, _ look: Workbook.CellFormat?) throws {
    try Array(text.utf8).withUnsafeBytes {
      try workbook.write($0, row, column, look, on: .settlement)
    }
  }

  /// As text where a number cell would lose digits.
  private func amount(
    _ micros: Int128, _ currency: Symbol, _ column: Int, _ settlement: SettlementFigures
  ) throws {
    guard let currency = settlement.currency(currency) else { return }
    if AmountNumber.holds(micros) {
      let number = AmountNumber(micros, currency)
      try workbook.write(number.value, decimals: number.decimals, row, column, on: .settlement)
    } else {
      try cell(Amount.text(micros: micros, currency: currency), column, .right)
    }
  }
}
