// A report's own totals, against the sums of its rows (settlement rule S4).
import Base

/// What the rows of a report add up to.
struct RowSums {
  /// Of all rows, or of those of one country and share currency.
  struct Sum {
    var share: Int128 = 0
    var units: Int128 = 0
    /// Of the rows with positive units: purchases.
    var positiveUnits: Int128 = 0
  }

  /// A country and a share currency, with the sum of their rows.
  struct Part {
    let country: Symbol
    let currency: Symbol
    var sum = Sum()
  }

  private let codes: CodeReader
  private(set) var rowCount = 0
  private(set) var whole = Sum()
  /// In the order in which the rows name them.
  private(set) var parts: [Part] = []
  private var places: [UInt64: Int] = [:]
  private var recent = 0

  init(_ codes: CodeReader) { self.codes = codes }

  private var hasSeveralCurrencies = false

  /// The share currency of all rows; nil if they have several.
  var currency: Symbol? { hasSeveralCurrencies ? nil : parts.first?.currency }

  @inline(__always)
  mutating func add(_ row: AppleReport.Row) {
    rowCount &+= 1
    if recent >= parts.count || parts[recent].country != row.country
      || parts[recent].currency != row.shareCurrency
    {
      recent = place(row.country, row.shareCurrency)
    }
    whole.add(row)
    parts[recent].sum.add(row)
  }

  private mutating func place(_ country: Symbol, _ currency: Symbol) -> Int {
    let key = Self.key(country, currency)
    if let place = places[key] { return place }
    places[key] = parts.count
    if let first = parts.first, first.currency != currency { hasSeveralCurrencies = true }
    parts.append(Part(country: country, currency: currency))
    return parts.count - 1
  }

  /// The index of a part, if rows have it.
  func known(_ country: Symbol, _ currency: Symbol) -> Int? {
    places[Self.key(country, currency)]
  }

  /// `DE EUR`.
  func name(_ part: Part) -> String {
    "\(codes.symbols.string(part.country)) \(codes.symbols.string(part.currency))"
  }

  private static func key(_ country: Symbol, _ currency: Symbol) -> UInt64 {
    UInt64(UInt32(bitPattern: country)) << 32 | UInt64(UInt32(bitPattern: currency))
  }
}

extension RowSums.Sum {
  @inline(__always)
  fileprivate mutating func add(_ row: AppleReport.Row) {
    share &+= Int128(row.shareMicros)
    units &+= Int128(row.units)
    if row.units > 0 { positiveUnits &+= Int128(row.units) }
  }

  /// Throws unless a number of units holds. Apple counts purchases, and sometimes takes returns off.
  fileprivate func check(units stated: Int64, _ name: String) throws(CellFault) {
    if stated == units || stated == positiveUnits { return }
    let purchases = units == positiveUnits ? "" : " (\(positiveUnits) without returns)"
    throw CellFault("\(name) is \(stated), but the rows add up to \(units)\(purchases)")
  }
}

/// Reads and checks what stands behind the rows.
struct ReportTotals {
  private static let names: [StaticString] = ["Total_Rows", "Total_Amount", "Total_Units"]
  private static let listHeader = "country of sale"

  private let codes: CodeReader
  private var hasRowsOrAmount = false
  /// Whether the list by country has begun.
  private(set) var isInList = false
  /// Nil before the list, and if its header has not the four columns.
  private var listColumns: ListColumns?
  private var cells = TabCells(columnCount: 1)
  private var listed: Set<Int> = []
  /// Whether something of the list could not be read.
  var hasUnread = false

  private struct ListColumns {
    let currency, units, share: Int
  }

  init(_ codes: CodeReader) { self.codes = codes }

  /// Whether a line is the first one behind the rows.
  @inline(__always)
  static func begins(_ line: Text) -> Bool {
    guard let first = line.first(where: { $0 != 0x20 }) else { return false }
    guard first == UInt8(ascii: "T") || first | 0x20 == UInt8(ascii: "c") else { return false }
    return total(line) != nil || isListHeader(line)
  }

  /// Reads a line and checks it against the rows.
  /// - Returns: false if it is neither a total nor a line of the list.
  mutating func read(_ line: Text, _ sums: RowSums) throws(CellFault) -> Bool {
    if let (index, number) = Self.total(line) {
      try check(Self.names[index], number, sums)
      return true
    }
    if !isInList, Self.isListHeader(line) {
      isInList = true
      return readListHeader(line)
    }
    guard let columns = listColumns else { return false }
    _ = cells.split(line)
    guard let country = codes.country(cells[0]),
      let currency = codes.currency(cells[columns.currency])
    else { return false }
    try checkListed(country, currency, columns, sums)
    return true
  }

  /// Checks that nothing is missing.
  func finish(_ sums: RowSums, _ kind: AppleReport.Kind) throws(AppleReportError) {
    guard isInList || kind == .financial && hasRowsOrAmount else {
      throw AppleReportError(
        kind == .financial
          ? "has neither Total_Rows nor Total_Amount nor a list by country behind its rows: it is cut"
          : "has no list by country behind its rows: it is cut")
    }
    guard listColumns != nil else { return }
    for (index, part) in sums.parts.enumerated() where !listed.contains(index) {
      throw AppleReportError("the list by country has no \(sums.name(part)), but the rows have")
    }
  }

  // MARK: Totals

  /// Which total a line states, and the text of its number.
  private static func total(_ line: Text) -> (index: Int, number: Text)? {
    var cells = CellSequence(line)
    guard let first = cells.next() else { return nil }
    for (index, name) in names.enumerated() where first.starts(with: name.text) {
      let rest = Text(rebasing: first[name.utf8CodeUnitCount...])
      if rest.isEmpty { return (index, cells.next() ?? rest) }
      if rest[0] == UInt8(ascii: ":") {
        return (index, ReportValue.trimmed(Text(rebasing: rest[1...])))
      }
    }
    return nil
  }

  private mutating func check(
    _ name: StaticString, _ number: Text, _ sums: RowSums
  ) throws(CellFault) {
    let shown = "\(name)"
    switch shown {
    case "Total_Amount":
      hasRowsOrAmount = true
      guard let currency = sums.currency else { return }
      guard let stated = ReportValue.micros(number) else {
        throw .unreadable(number, shown, form: "an amount")
      }
      try check(share: stated, sums.whole.share, currency, shown)
    default:
      guard let stated = ReportValue.integer(number) else {
        throw .unreadable(number, shown, form: "a whole number")
      }
      if shown == "Total_Units" { return try sums.whole.check(units: stated, shown) }
      hasRowsOrAmount = true
      if stated != sums.rowCount {
        throw CellFault("Total_Rows is \(stated), but the file has \(sums.rowCount)")
      }
    }
  }

  private func check(
    share stated: Int64, _ share: Int128, _ currency: Symbol, _ name: String
  ) throws(CellFault) {
    if Int128(stated) == share { return }
    throw CellFault(
      "\(name) is \(codes.text(micros: Int128(stated), currency)), but the rows add up to "
        + codes.text(micros: share, currency))
  }

  // MARK: The list by country

  private static func isListHeader(_ line: Text) -> Bool {
    var cells = CellSequence(line)
    guard let first = cells.next(), first.count == listHeader.utf8.count else { return false }
    return ColumnNames.lowered(first) == listHeader
  }

  /// - Returns: whether the header has the four columns.
  private mutating func readListHeader(_ line: Text) -> Bool {
    guard let names = try? ColumnNames(CellSequence(line), line: 0),
      let currency = names.index("Partner Share Currency"), let units = names.index("Quantity"),
      let share = names.index("Extended Partner Share")
    else {
      hasUnread = true
      return true
    }
    listColumns = ListColumns(currency: currency, units: units, share: share)
    cells = TabCells(columnCount: names.names.count)
    return true
  }

  private mutating func checkListed(
    _ country: Symbol, _ currency: Symbol, _ columns: ListColumns, _ sums: RowSums
  ) throws(CellFault) {
    let name = "\(codes.symbols.string(country)) \(codes.symbols.string(currency))"
    guard let index = sums.known(country, currency) else {
      throw CellFault("the list by country has \(name), but no row has")
    }
    guard listed.insert(index).inserted else {
      throw CellFault("the list by country has \(name) twice")
    }
    guard let units = ReportValue.integer(cells[columns.units]) else {
      throw .unreadable(cells[columns.units], "Quantity", form: "a whole number")
    }
    guard let share = ReportValue.micros(cells[columns.share]) else {
      throw .unreadable(cells[columns.share], "Extended Partner Share", form: "an amount")
    }
    let sum = sums.parts[index].sum
    try sum.check(units: units, "Quantity of \(name)")
    try check(share: share, sum.share, currency, "Extended Partner Share of \(name)")
  }
}
