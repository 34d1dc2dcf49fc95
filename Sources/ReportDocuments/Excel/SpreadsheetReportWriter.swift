// Reports as Excel files: typed cells, and next to each amount that is not rounded its exact text.
import Base
package import Projections
package import Revenue

/// The suffix of the column next to a column of exact amounts, which has their exact text.
let exactSuffix = "_exact"

/// An amount as a number cell: the nearest binary number, and how many decimals are shown.
package struct AmountNumber {
  package let value: Double
  /// The currency's, or more if the amount needs them; at most 6.
  package let decimals: Int

  /// Whether the number has all of the amount's digits: Excel keeps 15.
  static func holds(_ micros: Int128) -> Bool {
    var digits = micros.magnitude
    while digits >= 1_000_000_000_000_000 {
      guard digits % 10 == 0 else { return false }
      digits /= 10
    }
    return true
  }

  package init(_ micros: Int128, _ currency: Currency?) {
    // The quotient of two exact numbers is rounded once. An amount beyond 2⁵³ micros, nine billion, is rounded twice:
    // the text next to it is exact.
    value = Double(micros) / 1_000_000
    var (rest, decimals) = (micros.magnitude % 1_000_000, 6)
    while decimals > (currency?.minorDigits ?? 0), rest % 10 == 0 {
      rest /= 10
      decimals -= 1
    }
    self.decimals = decimals
  }
}

/// Writes rows to the first sheet of an Excel file, and what they are based on to the second; what they say of a fiscal
/// month to a third. The file's bytes follow
/// from the rows, the facts, and the versions of libxlsxwriter and zlib.
package final class SpreadsheetReportWriter: ReportWriter {
  /// From this number on, not every integer has its own binary number.
  private static let integerMax: UInt64 = 1 << 53
  /// How many rows are written between two checks for interruptions.
  private static let checkedRowCount = 256

  private let about: SpreadsheetAbout
  private let workbook: Workbook
  private let sink: (UnsafeRawBufferPointer) throws -> Void
  private let check: () throws -> Void
  private var columns: [ReportColumn] = []
  /// The column on the sheet of each of the report's columns.
  private var indexes: [Int] = []
  private var granularities: [Period.Granularity?] = []
  private var columnCount = 0
  /// The row on the sheet; the first is the heading.
  private var row = 0
  private var column = 0
  private var bytes: [UInt8] = []

  /// - Parameters:
  ///   - check: called repeatedly while rows are written; an error ends the report.
  ///   - sink: receives the file's bytes, all of them at the end.
  package init(
    _ about: SpreadsheetAbout, check: @escaping () throws -> Void,
    _ sink: @escaping (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    self.about = about
    self.check = check
    self.sink = sink
    workbook = try Workbook(
      name: about.sheetName, title: about.title, createdAtMs: about.createdAtMs,
      form: about.form, hasSettlement: about.hasSettlement)
  }

  package func begin(_ columns: [ReportColumn]) throws {
    self.columns = columns
    for column in columns {
      let granularity = about.periods[column.name]
      indexes.append(columnCount)
      granularities.append(granularity)
      try head(column.name, column, granularity)
      if column.content == .amount, about.hasExactTexts {
        try head(column.name + exactSuffix, nil, nil)
      }
    }
    row = 1
  }

  /// Writes a heading and prepares the column below it. Nil is the column of exact texts.
  private func head(
    _ name: String, _ column: ReportColumn?, _ granularity: Period.Granularity?
  ) throws {
    // Room for the filter's arrow.
    let nameWidth = Double(name.count + 4)
    func width(_ least: Double) -> Double { max(least, min(nameWidth, 60)) }
    switch (column?.content, granularity) {
    case (nil, _): workbook.setColumn(.rows, columnCount, width: width(16), .right)
    case (_, .day): workbook.setColumn(.rows, columnCount, width: width(12), .day)
    case (_, .month): workbook.setColumn(.rows, columnCount, width: width(10), .month)
    case (.time, _): workbook.setColumn(.rows, columnCount, width: width(20), .time)
    case (.amount, _): workbook.setColumn(.rows, columnCount, width: width(14), decimals: 2)
    case (.integer, _), (.flag, _): workbook.setColumn(.rows, columnCount, width: width(10))
    case (.list, _): workbook.setColumn(.rows, columnCount, width: width(28))
    case (.text, _):
      let isLong = ["_id", "_key", "_identifier", "detail"].contains { name.hasSuffix($0) }
      workbook.setColumn(.rows, columnCount, width: width(isLong ? 26 : 12))
    }
    let isNumber = column.map { $0.content == .amount || $0.content == .integer } ?? true
    try Array(name.utf8).withUnsafeBytes {
      try workbook.write($0, 0, columnCount, isNumber ? .numberHeading : .heading)
    }
    columnCount += 1
  }

  package func write(_ cell: ReportCell) throws {
    if row >= Workbook.rowCountMax { throw SpreadsheetError.tooManyRows }
    let index = indexes[column]
    let granularity = granularities[column]
    column += 1
    switch cell {
    case .empty: break
    case .text(let text):
      if let granularity, let date = SpreadsheetDate.number(of: text, granularity) {
        try workbook.write(date, row, index)
      } else {
        try write(text, index)
      }
    case .word(let word):
      try write(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount), index)
    case .currency(let currency): try write(index) { currency.append(to: &$0) }
    case .integer(let value):
      if value.magnitude <= Self.integerMax {
        try workbook.write(Double(value), row, index)
      } else {
        try write(index) { $0.append(contentsOf: "\(value)".utf8) }
      }
    case .decimal(let digits):
      // A rate of at most 12 decimals: a spreadsheet keeps 15 digits.
      if let value = Double(digits) { try workbook.write(value, row, index) }
    case .real(let value):
      if value.isFinite {
        try workbook.write(value, row, index)
      } else {
        try write(index) { $0.append(contentsOf: ReportCell.text(value).utf8) }
      }
    case .amount(let micros, let currency): try write(micros, currency, index)
    case .amounts(let sums): try write(index) { $0.append(contentsOf: Amount.text(sums).utf8) }
    case .time(let epochMs):
      if let date = SpreadsheetDate.number(atMs: epochMs, in: about.zone) {
        try workbook.write(date, row, index)
      } else {
        try write(index) { Timestamp.append(ms: epochMs, to: &$0) }
      }
    case .flag(let value): try workbook.write(value, row, index)
    case .list(let texts):
      try write(index) { bytes in
        for text in texts {
          if !bytes.isEmpty { bytes.append(0x20) }
          bytes.append(contentsOf: text)
        }
      }
    case .integers(let values):
      try write(index) {
        $0.append(contentsOf: values.map { String($0) }.joined(separator: " ").utf8)
      }
    }
  }

  private func write(_ micros: Int128, _ currency: Currency?, _ index: Int) throws {
    func text(_ index: Int) throws {
      try write(index) { Amount.append(micros: micros, currency: currency, to: &$0) }
    }
    // Excel would show other digits, and a sum would hide that.
    if !about.hasExactTexts, !AmountNumber.holds(micros) { return try text(index) }
    let number = AmountNumber(micros, currency)
    try workbook.write(number.value, decimals: number.decimals, row, index)
    // A total's cell may be in a column that otherwise has no amounts.
    if about.hasExactTexts, columns[column - 1].content == .amount { try text(index + 1) }
  }

  private func write(_ text: UnsafeRawBufferPointer, _ index: Int) throws {
    try workbook.write(text, row, index)
  }

  private func write(_ index: Int, _ append: (inout [UInt8]) -> Void) throws {
    bytes.removeAll(keepingCapacity: true)
    append(&bytes)
    try bytes.withUnsafeBytes { try workbook.write($0, row, index) }
  }

  package func endRow() throws {
    column = 0
    row += 1
    guard row.isMultiple(of: Self.checkedRowCount) else { return }
    try check()
  }

  package func end(_ summary: ReportSummary) throws {
    var sheet = AboutSheet(workbook)
    try sheet.write(about, summary)
    if let note = about.note { try sheet.note(note) }
    if about.hasSettlement {
      var sheet = SettlementSheet(workbook)
      try sheet.write(summary.settlement)
    }
    try check()
    try workbook.finish(rowCount: row, columnCount: columnCount) { [sink, check] bytes in
      try check()
      try sink(bytes)
    }
  }
}
