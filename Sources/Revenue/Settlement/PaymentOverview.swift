// Reads the payment overview: lists of amounts by region, and what was paid for them (settlement rule S6).
import Base

/// Reads one overview.
struct PaymentOverview {
  private static let title = "Payments and Financial Reports"
  /// How many records, without empty ones, may hold the first header.
  private static let headerLineCountMax = 20
  /// A limit against hostile files: overviews have a row for each region and currency.
  private static let rowCountMax = 1 << 16

  private let codes: CodeReader
  private var lists: [AppleReport.PaymentList] = []
  private var rowCount = 0
  private var exceptions: [AppleReport.Finding] = []

  init(_ codes: CodeReader) { self.codes = codes }

  /// Whether a text is an overview, by its first record or a header.
  static func isOverview(_ text: Text) throws(AppleReportError) -> Bool {
    var records = OverviewRecords(text)
    var count = 0
    // What cannot be read as CSV is no overview, unless its title says so.
    while count < headerLineCountMax, let record = try? records.next() {
      if record.isEmpty { continue }
      if count == 0, contains(record[0], title) { return true }
      if try OverviewColumns(record) != nil { return true }
      count += 1
    }
    return false
  }

  mutating func parse(_ text: Text) throws(AppleReportError) -> AppleReport {
    var records = OverviewRecords(text)
    var month: FiscalMonth?
    var isFirst = true
    var firstLine: Int?
    var columns: OverviewColumns?
    var isInList = false
    while let record = try records.next() {
      if isFirst, !record.isEmpty {
        month = Self.month(in: record.cells.joined(separator: ","))
        isFirst = false
      }
      if let header = try OverviewColumns(record) {
        columns = header
        isInList = true
        firstLine = firstLine ?? record.line - 1
        lists.append(AppleReport.PaymentList())
      } else if isInList, let columns, !record[0].isEmpty {
        try readRow(record, columns)
      } else if columns != nil {
        isInList = false
        try readPayment(record)
      }
    }
    guard rowCount > 0, let firstLine else { throw AppleReportError("has no row: it is cut") }
    return AppleReport(
      .overview, month, lists: lists, exceptions: exceptions,
      rowLines: firstLine..<records.lineCount)
  }

  // MARK: Rows

  private mutating func readRow(
    _ record: OverviewRecord, _ columns: OverviewColumns
  ) throws(AppleReportError) {
    do throws(CellFault) {
      let row = try row(record, columns)
      exceptions += codes.unknownFindings()
      // Six amounts of at most 10¹⁸ micros each fit.
      let sum = row.balance + row.earned + row.inputTax + row.adjustments + row.withholdingTax
      if row.owed != sum {
        exceptions.append(
          .owedDisagrees(currency: row.currency, differenceMicros: row.owed - sum))
      }
      lists[lists.count - 1].rows.append(row)
    } catch { throw AppleReportError(line: record.line, error.message) }
  }

  private mutating func row(
    _ record: OverviewRecord, _ columns: OverviewColumns
  ) throws(CellFault) -> AppleReport.PaymentRow {
    if record.cells.dropFirst(columns.count).contains(where: { !$0.isEmpty }) {
      throw CellFault("a cell stands beyond the header's columns")
    }
    func value<Value>(
      _ column: OverviewColumns.Column, _ read: (Text) -> Value?, _ form: String
    ) throws(CellFault) -> Value? {
      guard let index = columns[column], !record[index].isEmpty else { return nil }
      return try withText(record[index]) { (text) throws(CellFault) in
        guard let value = read(text) else {
          throw .unreadable(text, column.rawValue, form: form)
        }
        return value
      }
    }
    func micros(_ column: OverviewColumns.Column) throws(CellFault) -> Int64 {
      try value(column, ReportValue.micros, "an amount") ?? 0
    }
    guard let currency = regionCurrency(record[0]) else {
      throw CellFault(
        "the first cell is \"\(PrintableText.shortened(record[0]))\": "
          + "no currency stands in brackets at its end")
    }
    guard rowCount < Self.rowCountMax else {
      throw CellFault("the overview has more than \(Self.rowCountMax) rows")
    }
    rowCount += 1
    let row = AppleReport.PaymentRow(
      number: rowCount, region: record[0], currency: currency,
      unitsSold: try value(.unitsSold, ReportValue.integer, "a whole number") ?? 0,
      balance: try micros(.balance), earned: try micros(.earned),
      preTaxSubtotal: try micros(.preTaxSubtotal), inputTax: try micros(.inputTax),
      adjustments: try micros(.adjustments), withholdingTax: try micros(.withholdingTax),
      owed: try micros(.owed),
      exchangeRate: try value(.exchangeRate, ReportValue.rate, "a rate"),
      proceeds: try value(.proceeds, ReportValue.micros, "an amount"),
      bankCurrency: try value(.bankCurrency, codes.currency, "three letters") ?? .none)
    if row.proceeds != nil, row.bankCurrency == .none {
      throw CellFault("Bank Account Currency is empty, but Proceeds is not")
    }
    return row
  }

  /// The currency of `Switzerland (CHF)`.
  private func regionCurrency(_ cell: String) -> Symbol? {
    let end = Array(cell.utf8.suffix(5))
    guard end.count == 5, end[0] == UInt8(ascii: "("), end[4] == UInt8(ascii: ")") else {
      return nil
    }
    return withText(Array(end[1...3])) { codes.currency($0) }
  }

  // MARK: Payments

  /// Looks for the payment of the last list, then for the payee.
  private mutating func readPayment(_ record: OverviewRecord) throws(AppleReportError) {
    for cell in record.cells where !cell.isEmpty {
      let last = lists.count - 1
      if lists[last].payment != nil {
        lists[last].payee = lists[last].payee ?? cell
      } else if let payment = payment(cell) {
        lists[last].payment = payment
        exceptions += codes.unknownFindings()
        try checkPayment(lists[last], payment, line: record.line)
      }
    }
  }

  /// An amount, perhaps in quotes, and its currency.
  private func payment(_ cell: String) -> AppleReport.Payment? {
    withText(cell) { text in
      let split = text.count - 3
      guard split > 0, ReportValue.isSpace(text[split - 1]) else { return nil }
      var amount = ReportValue.trimmed(Text(rebasing: text[..<split]))
      if amount.count > 2, amount.first == UInt8(ascii: "\""), amount.last == UInt8(ascii: "\"") {
        amount = ReportValue.trimmed(Text(rebasing: amount[1..<amount.count - 1]))
      }
      guard let micros = ReportValue.micros(amount),
        let currency = codes.currency(Text(rebasing: text[split...]))
      else { return nil }
      return AppleReport.Payment(micros: micros, currency: currency)
    }
  }

  /// The payment is that of the rows that have proceeds.
  private func checkPayment(
    _ list: AppleReport.PaymentList, _ payment: AppleReport.Payment, line: Int
  ) throws(AppleReportError) {
    var sum: Int128 = 0
    for row in list.rows {
      guard let proceeds = row.proceeds else { continue }
      guard row.bankCurrency == payment.currency else {
        throw AppleReportError(
          line: line,
          "the payment is in \(codes.symbols.string(payment.currency)), but the proceeds of "
            + "row \(row.number) are in \(codes.symbols.string(row.bankCurrency))")
      }
      sum += Int128(proceeds)
    }
    if sum == Int128(payment.micros) { return }
    throw AppleReportError(
      line: line,
      "the payment is \(codes.text(micros: Int128(payment.micros), payment.currency)), but the "
        + "proceeds add up to \(codes.text(micros: sum, payment.currency))")
  }

  // MARK: The month

  private static let monthNames = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
  ]

  /// The month that a title names: `(September, 2014)`. Without quotes its comma stands between two cells.
  private static func month(in line: String) -> FiscalMonth? {
    let pieces = line.utf8.split(separator: UInt8(ascii: "("), omittingEmptySubsequences: false)
    for piece in pieces.dropFirst() {
      guard let end = piece.firstIndex(of: UInt8(ascii: ")")) else { continue }
      let parts = piece[..<end].split(separator: UInt8(ascii: ","))
        .map { withText(Array($0)) { String(decoding: ReportValue.trimmed($0), as: UTF8.self) } }
      guard parts.count == 2, let index = monthNames.firstIndex(of: parts[0]),
        parts[1].utf8.count == 4, let year = Int(parts[1]), year >= 1000
      else { continue }
      if let month = FiscalMonth(namesakeOrdinal: year * 12 + index) { return month }
    }
    return nil
  }

  private static func contains(_ text: String, _ part: String) -> Bool {
    let (text, part) = (Array(text.utf8), Array(part.utf8))
    guard text.count >= part.count else { return false }
    return (0...text.count - part.count).contains { text[$0...].starts(with: part) }
  }
}

// MARK: - Columns

/// Where the columns of a list stand.
private struct OverviewColumns {
  /// In the order of a localised header.
  enum Column: String, CaseIterable {
    case unitsSold = "Units Sold"
    case balance = "Balance"
    case earned = "Earned"
    case preTaxSubtotal = "Pre-Tax Subtotal"
    case inputTax = "Input Tax"
    case adjustments = "Adjustments"
    case withholdingTax = "Withholding Tax"
    case owed = "Total Owed"
    case exchangeRate = "Exchange Rate"
    case proceeds = "Proceeds"
    case bankCurrency = "Bank Account Currency"
  }

  private static let firstNames: Set = ["region (currency)", "country or region (currency)"]
  private var indexes: [Column: Int] = [:]
  /// Of all columns, with the first.
  let count: Int

  subscript(column: Column) -> Int? { indexes[column] }

  /// Nil if the record is no header.
  init?(_ record: OverviewRecord) throws(AppleReportError) {
    count = (record.cells.lastIndex { !$0.isEmpty } ?? -1) + 1
    let lowered = record.cells.map { withText($0) { ColumnNames.lowered($0) } }
    if lowered.contains(where: Self.firstNames.contains) {
      try readEnglish(record, lowered)
    } else if !readLocalised(record) {
      return nil
    }
  }

  private mutating func readEnglish(
    _ record: OverviewRecord, _ lowered: [String]
  ) throws(AppleReportError) {
    var met: Set<String> = []
    for (index, name) in lowered.enumerated() where !name.isEmpty {
      guard met.insert(name).inserted else {
        throw AppleReportError(
          line: record.line, "the column \"\(PrintableText.shortened(name))\" stands twice")
      }
      if let column = Column.allCases.first(where: { $0.rawValue.lowercased() == name }) {
        indexes[column] = index
      }
    }
    for column in [Column.exchangeRate, .proceeds] where indexes[column] == nil {
      throw AppleReportError(
        line: record.line,
        "the header has no \(column.rawValue): an estimate of a month that is not closed")
    }
    for column in [Column.earned, .owed, .bankCurrency] where indexes[column] == nil {
      throw AppleReportError(line: record.line, "the header has no \(column.rawValue)")
    }
  }

  /// A header in another language: its columns stand in the usual order, with or without Balance.
  private mutating func readLocalised(_ record: OverviewRecord) -> Bool {
    guard record[0].utf8.last == UInt8(ascii: ")") else { return false }
    let filled = record.cells.indices.dropFirst().filter { !record.cells[$0].isEmpty }
    let columns = Column.allCases.filter { $0 != .balance || filled.count == Column.allCases.count }
    let hasDigit = filled.contains { record.cells[$0].utf8.contains { digitValue($0) != nil } }
    guard filled.count == columns.count, !hasDigit else { return false }
    for (column, index) in zip(columns, filled) { indexes[column] = index }
    return true
  }
}
