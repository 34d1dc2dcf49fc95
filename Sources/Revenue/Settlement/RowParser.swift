// Reads the rows of detailed and financial reports (settlement rules S2, S3 and S5).
import Base

/// Reads one report whose columns tabs separate.
struct RowParser {
  private let header: TabHeader
  private let columns: RowColumns
  private let codes: CodeReader
  private var cells: TabCells
  private var sums: RowSums
  private var month: MonthReader
  private var rows: [AppleReport.Row] = []
  private var exceptions: [AppleReport.Finding] = []
  private var recentProduct: Symbol = .none

  init(_ header: TabHeader, _ codes: CodeReader) throws(AppleReportError) {
    self.header = header
    self.codes = codes
    let names = try header.columns()
    columns = try RowColumns(names, header)
    cells = TabCells(columnCount: names.names.count)
    sums = RowSums(codes)
    month = MonthReader()
    if header.kind == .detailed { try month.read(head: header) }
  }

  mutating func parse(_ text: Text) throws(AppleReportError) -> AppleReport {
    var lines = ReportLines(text)
    while lines.number < header.line { _ = lines.next() }
    var totals = ReportTotals(codes)
    var rowLines = header.line..<header.line
    var isBehindRows = false
    while let line = lines.nextFilled() {
      isBehindRows = isBehindRows || ReportTotals.begins(line)
      do throws(CellFault) {
        if isBehindRows {
          try readTotals(line, &totals)
        } else {
          if rows.isEmpty { rowLines = lines.number - 1..<lines.number }
          rows.append(try row(line))
          rowLines = rowLines.lowerBound..<lines.number
        }
      } catch { throw AppleReportError(line: lines.number, error.message) }
    }
    guard let month = month.month, !rows.isEmpty else {
      throw AppleReportError("has no row: it is cut")
    }
    try totals.finish(sums, header.kind)
    if totals.hasUnread { exceptions.append(.totalsUnread) }
    return AppleReport(
      header.kind, month, rows: rows, exceptions: exceptions, rowLines: rowLines)
  }

  private mutating func readTotals(
    _ line: Text, _ totals: inout ReportTotals
  ) throws(CellFault) {
    if try totals.read(line, sums) { return }
    _ = cells.split(line)
    let isRow =
      returnFlag(cells[columns.flag]) != nil && codes.country(cells[columns.country]) != nil
      && codes.currency(cells[columns.shareCurrency]) != nil
    guard totals.isInList, !isRow else { throw CellFault("a row after the totals") }
    totals.hasUnread = true
  }

  // MARK: One row

  private mutating func row(_ line: Text) throws(CellFault) -> AppleReport.Row {
    guard cells.split(line) else { throw CellFault("a cell stands beyond the header's columns") }
    let units = try number(columns.units, ReportValue.integer, "a whole number")
    let unitShare = try number(columns.unitShare, ReportValue.micros, "an amount")
    let price = try number(columns.price, ReportValue.micros, "an amount")
    let type = try required(columns.type)
    var row = AppleReport.Row(
      number: Int32(rows.count + 1), transactionDay: AppleReport.Row.noDay,
      product: codes.symbols.symbol(try required(columns.product), recent: &recentProduct),
      country: try code(columns.country, codes.country, "two letters"),
      currency: try code(columns.currency, codes.currency, "three letters"),
      shareCurrency: try code(columns.shareCurrency, codes.currency, "three letters"),
      isReturn: try code(columns.flag, returnFlag, "S or R"),
      isInApp: type.count >= 2
        && (type[0] == 0x49 && type[1] == 0x41 || type[0] == 0x46 && type[1] == 0x49),
      priceMicros: abs(price), units: units, unitShareMicros: abs(unitShare),
      shareMicros: try number(columns.share, ReportValue.micros, "an amount"))
    noteExceptions(row)
    switch header.kind {
    case .financial: try month.read(cells[columns.start], cells[columns.end])
    default:
      row.transactionDay = try code(columns.transactionDay, ReportValue.day, "a day as MM/DD/YYYY")
      let settled = try code(columns.settlementDay, ReportValue.day, "a day as MM/DD/YYYY")
      if !month.days.contains(settled) { exceptions.append(.settledOutside(row: row.number)) }
    }
    sums.add(row)
    return row
  }

  private mutating func noteExceptions(_ row: AppleReport.Row) {
    exceptions += codes.unknownFindings()
    if row.isReturn ? row.units > 0 : row.units < 0 {
      exceptions.append(.signDisagrees(row: row.number))
    }
    let product = row.units.multipliedFullWidth(by: row.unitShareMicros)
    if product.high != row.shareMicros >> 63 || Int64(bitPattern: product.low) != row.shareMicros {
      exceptions.append(.shareDisagrees(row: row.number))
    }
  }

  private func returnFlag(_ text: Text) -> Bool? {
    guard text.count == 1 else { return nil }
    return text[0] == UInt8(ascii: "R") ? true : text[0] == UInt8(ascii: "S") ? false : nil
  }

  // MARK: Cells

  @inline(__always)
  private func required(_ column: Int) throws(CellFault) -> Text {
    let text = cells[column]
    if text.isEmpty { throw fault(column, "a value") }
    return text
  }

  @inline(__always)
  private func number(
    _ column: Int, _ read: (Text) -> Int64?, _ form: StaticString
  ) throws(CellFault) -> Int64 {
    guard let value = read(cells[column]) else { throw fault(column, form) }
    return value
  }

  @inline(__always)
  private func code<Value>(
    _ column: Int, _ read: (Text) -> Value?, _ form: StaticString
  ) throws(CellFault) -> Value {
    guard let value = read(cells[column]) else { throw fault(column, form) }
    return value
  }

  private func fault(_ column: Int, _ form: StaticString) -> CellFault {
    CellFault.unreadable(cells[column], columns.name(of: column), form: "\(form)")
  }
}

/// Why a line is refused; its number is known further out.
struct CellFault: Error {
  let message: String

  init(_ message: String) { self.message = message }

  static func unreadable(_ text: Text, _ name: String, form: String) -> CellFault {
    if text.isEmpty { return CellFault("\(name) is empty") }
    let shown = PrintableText.shortened(String(decoding: text, as: UTF8.self))
    return CellFault("\(name) is \"\(shown)\", not \(form)")
  }
}

// MARK: - Columns

/// Where the columns of rows stand.
private struct RowColumns {
  private var names: [Int: String] = [:]
  let units, unitShare, share, shareCurrency, flag, type, country, price, currency, product: Int
  /// Of a financial report.
  let start, end: Int
  /// Of a detailed report.
  let transactionDay, settlementDay: Int

  init(_ columns: ColumnNames, _ header: TabHeader) throws(AppleReportError) {
    var names: [Int: String] = [:]
    var missing: [String] = []
    func index(_ anyOf: String...) -> Int {
      for name in anyOf {
        if let index = columns.index(name) {
          names[index] = name
          return index
        }
      }
      missing.append(anyOf.joined(separator: " (or ") + (anyOf.count > 1 ? ")" : ""))
      return 0
    }
    units = index("Quantity")
    unitShare = index("Partner Share")
    share = index("Extended Partner Share")
    shareCurrency = index("Partner Share Currency")
    flag = index("Sales or Return", "Sale or Return")
    type = index("Product Type Identifier")
    country = index("Country Of Sale")
    price = index("Customer Price")
    currency = index("Customer Currency")
    product = index("Vendor Identifier", "SKU")
    let isDetailed = header.kind == .detailed
    start = isDetailed ? 0 : index("Start Date")
    end = isDetailed ? 0 : index("End Date")
    transactionDay = isDetailed ? index("Transaction Date") : 0
    settlementDay = isDetailed ? index("Settlement Date") : 0
    self.names = names
    guard missing.isEmpty else {
      throw AppleReportError(
        line: header.line, "the header has no \(missing.joined(separator: ", "))")
    }
  }

  func name(of column: Int) -> String { names[column] ?? "" }
}

// MARK: - The month

/// The fiscal month of a report, from the first and last day that it states.
private struct MonthReader {
  private(set) var month: FiscalMonth?
  /// The days of the month.
  private(set) var days: ClosedRange<Int32> = 0...0
  /// The cells that were read last: all rows have the same.
  private var recentStart: Text?
  private var recentEnd = Text(start: nil, count: 0)

  /// Reads the two days of a row.
  @inline(__always)
  mutating func read(_ start: Text, _ end: Text) throws(CellFault) {
    if let recentStart, recentStart.equals(start), recentEnd.equals(end) { return }
    try readOther(start, end)
  }

  private mutating func readOther(_ start: Text, _ end: Text) throws(CellFault) {
    guard let first = ReportValue.day(start) else {
      throw .unreadable(start, "Start Date", form: "a day as MM/DD/YYYY")
    }
    guard let last = ReportValue.day(end) else {
      throw .unreadable(end, "End Date", form: "a day as MM/DD/YYYY")
    }
    let span = "\(CivilDate(dayNumber: Int(first))) to \(CivilDate(dayNumber: Int(last)))"
    if month != nil, first != days.lowerBound || last != days.upperBound {
      throw CellFault(
        "mixed months: \(span), but before \(CivilDate(dayNumber: Int(days.lowerBound))) to "
          + "\(CivilDate(dayNumber: Int(days.upperBound)))")
    }
    guard let found = FiscalMonth(firstDay: Int(first), lastDay: Int(last)) else {
      throw CellFault("no fiscal month: \(span) are not the days of one")
    }
    (month, days) = (found, first...last)
    (recentStart, recentEnd) = (start, end)
  }

  /// Reads the days of a detailed report, which stand before its header.
  mutating func read(head: TabHeader) throws(AppleReportError) {
    var start: Text?
    var end: Text?
    for (line, number) in head.before {
      var cells = CellSequence(line)
      let name = cells.next().map { ColumnNames.lowered($0) }
      guard name == "start date" || name == "end date" else { continue }
      let day = cells.next() ?? Text(start: nil, count: 0)
      if name == "start date" { start = start ?? day } else { end = end ?? day }
      guard let start, let end else { continue }
      // Each further line must state the same day.
      let isStart = name == "start date"
      do throws(CellFault) { try read(isStart ? day : start, isStart ? end : day) } catch {
        throw AppleReportError(line: number, error.message)
      }
    }
    guard start != nil, end != nil else {
      throw AppleReportError(
        "no \(start == nil ? "Start Date" : "End Date") stands before the header")
    }
  }
}
