// The sums of a page, from the rows of a revenue report and checked against its totals; and numbers on a page.
package import Projections
package import Revenue

/// The sums of a row of the revenue report; amounts in micros.
package struct PageSums: Equatable {
  /// The report's columns, in the order of `values`.
  private static let names = [
    "units", "gross", "returned_units", "returns", "reversed_units", "reversals", "net",
    "unpriced_units", "trials", "family_shared",
  ]
  private var values = [Int128](repeating: 0, count: names.count)

  package init() {}

  var units: Int128 { values[0] }
  var gross: Int128 { values[1] }
  var returnedUnits: Int128 { values[2] }
  var returns: Int128 { values[3] }
  var reversedUnits: Int128 { values[4] }
  var reversals: Int128 { values[5] }
  package var net: Int128 { values[6] }
  package var unpricedUnits: Int128 { values[7] }
  var trials: Int128 { values[8] }
  var familyShared: Int128 { values[9] }

  /// The index of a column's sum; nil if the column has none.
  static func index(of column: ReportColumn) -> Int? { names.firstIndex(of: column.name) }

  package subscript(index: Int) -> Int128 {
    get { values[index] }
    set { values[index] = newValue }
  }

  static func + (left: PageSums, right: PageSums) -> PageSums {
    var sum = left
    for index in names.indices { sum.values[index] += right.values[index] }
    return sum
  }

  mutating func add(_ refund: RefundSums) {
    values[2] += refund.returnedUnits
    values[3] += refund.returns
    values[4] += refund.reversedUnits
    values[5] += refund.reversals
  }

  /// Whether units, Returns and Reversals of both are equal.
  func hasSameRefunds(as other: PageSums) -> Bool { values[2...5] == other.values[2...5] }

  var hasRefunds: Bool { !hasSameRefunds(as: PageSums()) }

  /// Rounds rows in one currency as reports do: gross, Returns and Reversals add up, and net follows from them.
  static func round(_ rows: [PageSums], _ currency: Currency) -> [PageSums] {
    var rounded = rows
    guard MinorRounding.round(&rounded, [\.[1], \.[3], \.[5]], currency) else { return rows }
    for index in rounded.indices {
      rounded[index][6] = rounded[index].gross - rounded[index].returns + rounded[index].reversals
    }
    return rounded
  }
}

/// A revenue report's rows, as its writer receives them.
package struct PageRows {
  /// One row.
  package struct Row {
    /// The values of the dimensions, in their order.
    let labels: [String]
    /// Nil for sales without a price: unpriced, trial and family-shared ones.
    let currency: Currency?
    let sums: PageSums

    package init(labels: [String], currency: Currency? = nil, sums: PageSums) {
      self.labels = labels
      self.currency = currency
      self.sums = sums
    }
  }

  /// How sums are shown.
  enum Rounding { case exact, apportioned, alone }

  let dimensions: [ReportDimension]
  package var rows: [Row] = []
  var summary = ReportSummary()
  var rounding = Rounding.exact

  package init(dimensions: [ReportDimension], rows: [Row] = []) {
    self.dimensions = dimensions
    self.rows = rows
  }

  /// The sums by currency, as they are shown.
  var totals: [Currency?: PageSums] {
    let exact = rows.reduce(into: [Currency?: PageSums]()) { totals, row in
      totals[row.currency] = (totals[row.currency] ?? PageSums()) + row.sums
    }
    return exact.reduce(into: [:]) { $0[$1.key] = rounded([$1.value], $1.key)[0] }
  }

  private func rounded(_ sums: [PageSums], _ currency: Currency?) -> [PageSums] {
    guard let currency else { return sums }
    return switch rounding {
    case .exact: sums
    case .apportioned: PageSums.round(sums, currency)
    case .alone: sums.flatMap { PageSums.round([$0], currency) }
    }
  }

  /// The sums by the value of one dimension, for one currency, in the order of the values, as they are shown.
  func sums(by dimension: ReportDimension, _ currency: Currency?) -> [(
    label: String, sums: PageSums
  )] {
    guard let index = dimensions.firstIndex(of: dimension) else { return [] }
    var indexes: [String: Int] = [:]
    var result: [(label: String, sums: PageSums)] = []
    for row in rows where row.currency == currency {
      let label = row.labels[index]
      if let known = indexes[label] {
        result[known].sums = result[known].sums + row.sums
      } else {
        indexes[label] = result.count
        result.append((label, row.sums))
      }
    }
    result.sort { $0.label.utf8.lexicographicallyPrecedes($1.label.utf8) }
    return zip(result, rounded(result.map(\.sums), currency)).map { ($0.label, $1) }
  }

  /// The sums by the value of one dimension over all currencies; only their counts may be shown.
  func counts(by dimension: ReportDimension) -> [(label: String, sums: PageSums)] {
    let merged = PageRows(
      dimensions: dimensions,
      rows: rows.map { Row(labels: $0.labels, currency: nil, sums: $0.sums) })
    return merged.sums(by: dimension, nil)
  }

  /// Throws if the rows do not add up to the report's own totals.
  package func check() throws(ProjectionError) {
    let totals = totals
    let isWhole =
      summary.totals.count == totals.count
      && summary.totals.allSatisfy { total in
        guard let sums = totals[total.currency] else { return false }
        return total.sums.allSatisfy { sum in
          PageSums.index(of: sum.column).map { sums[$0] == sum.value } ?? true
        }
      }
    if !isWhole { throw .inconsistent("the rows of a report do not add up to its totals") }
  }
}

/// Collects the rows of a revenue report.
final class PageRowCollector: ReportWriter {
  private(set) var result: PageRows
  /// The index of each column's sum.
  private var indexes: [Int?] = []
  private var column = 0
  private var labels: [String] = []
  private var currency: Currency?
  private var sums = PageSums()

  init(_ dimensions: [ReportDimension]) { result = PageRows(dimensions: dimensions) }

  func begin(_ columns: [ReportColumn]) { indexes = columns.map(PageSums.index(of:)) }

  func write(_ cell: ReportCell) {
    if column < result.dimensions.count {
      labels.append(PageCell(cell).text)
    } else if case .currency(let value) = cell {
      currency = value
    } else if let index = indexes[column] {
      sums[index] = PageCell(cell).number ?? 0
    }
    column += 1
  }

  func endRow() {
    result.rows.append(.init(labels: labels, currency: currency, sums: sums))
    (column, labels, currency, sums) = (0, [], nil, PageSums())
  }

  func end(_ summary: ReportSummary) { result.summary = summary }
}

/// A cell that outlives the writer's call.
struct PageCell {
  let text: String
  /// A count, or micros; nil for other cells.
  let number: Int128?
  /// Micros by currency; empty for other cells.
  let sums: [Currency: Int128]

  init(_ cell: ReportCell) {
    var text = ""
    var number: Int128?
    var sums: [Currency: Int128] = [:]
    switch cell {
    case .text(let bytes): text = String(decoding: bytes, as: UTF8.self)
    case .word(let word): text = word.description
    case .currency(let currency): text = currency.description
    case .integer(let value):
      number = Int128(value)
      text = String(value)
    case .amount(let micros, let currency):
      number = micros
      text = Amount.text(micros: micros, currency: currency)
    case .amounts(let values): sums = values
    default: break
    }
    (self.text, self.number, self.sums) = (text, number, sums)
  }
}

/// Collects the rows of any report as texts, by the names of its columns.
final class PageCellCollector: ReportWriter {
  /// The values of the wanted columns, in the order of the request.
  private(set) var rows: [[PageCell]] = []
  private(set) var summary = ReportSummary()
  private let wanted: [String]
  private var indexes: [Int?] = []
  private var row: [PageCell?] = []
  private var column = 0

  init(_ wanted: [String]) { self.wanted = wanted }

  func begin(_ columns: [ReportColumn]) {
    indexes = columns.map { column in wanted.firstIndex(of: column.name) }
    row = Array(repeating: nil, count: wanted.count)
  }

  func write(_ cell: ReportCell) {
    if let index = indexes[column] { row[index] = PageCell(cell) }
    column += 1
  }

  func endRow() {
    rows.append(row.map { $0 ?? PageCell(.empty) })
    row = Array(repeating: nil, count: wanted.count)
    column = 0
  }

  func end(_ summary: ReportSummary) { self.summary = summary }
}

// MARK: - Numbers on a page

/// Changes and shares in percent, computed exactly and rounded once.
package enum PagePercent {
  /// `12.3 %`: part ÷ whole, rounded half to even to one decimal. Nil if the whole is not positive.
  package static func text(_ part: Int128, of whole: Int128) -> String? {
    guard let (digits, isNegative) = permille(part, of: whole) else { return nil }
    return "\(isNegative && digits > 0 ? "−" : "")\(digits / 10).\(digits % 10) %"
  }

  /// The increase from `before` to `after`, with a sign. Nil if `before` is 0, or too small to compare with.
  package static func change(from before: Int128, to after: Int128) -> String? {
    guard before != 0, let (digits, isNegative) = permille(after - before, of: abs(before)),
      // A greater percentage is meaningless.
      digits < 1_000_000
    else { return nil }
    let sign = digits == 0 ? "±" : isNegative ? "−" : "+"
    return "\(sign)\(digits / 10).\(digits % 10) %"
  }

  /// Tenths of a percent.
  private static func permille(_ part: Int128, of whole: Int128) -> (UInt128, isNegative: Bool)? {
    guard whole > 0 else { return nil }
    let (product, overflow) = part.magnitude.multipliedReportingOverflow(by: 1000)
    guard !overflow else { return nil }
    var (quotient, rest) = product.quotientAndRemainder(dividingBy: whole.magnitude)
    let complement = whole.magnitude - rest
    if rest > complement || rest == complement && quotient % 2 == 1 { quotient += 1 }
    return (quotient, part < 0)
  }
}

extension HTML {
  /// Writes the text of an amount or a count. The style sheet separates groups of three digits, shrinks decimals beyond
  /// the currency's own and draws a true minus sign; the text itself, which is also what a reader copies, is the same
  /// as in every other report, with a hyphen that spreadsheets read.
  /// - Parameter fineWidth: the room for such decimals, so that decimal points are aligned; 0 for none.
  package mutating func number(_ text: String, minorDigits: Int = 0, fineWidth: Int = 0) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    var digits = Substring(parts[0])
    var sign = ""
    while let first = digits.first, !first.isWholeNumber { sign.append(digits.removeFirst()) }
    if sign == "-" {
      element("b", ["class": "sign"]) { $0.element("i", text: "-") }
      sign = ""
    }
    let head = digits.count % 3 == 0 && !digits.isEmpty ? 3 : digits.count % 3
    self.text(sign + digits.prefix(head))
    digits = digits.dropFirst(head)
    while !digits.isEmpty {
      element("span", text: String(digits.prefix(3)))
      digits = digits.dropFirst(3)
    }
    let decimals = parts.count == 2 ? parts[1] : ""
    if minorDigits > 0, !decimals.isEmpty { self.text("." + decimals.prefix(minorDigits)) }
    let fine = (minorDigits > 0 || decimals.isEmpty ? "" : ".") + decimals.dropFirst(minorDigits)
    if fineWidth > 0 {
      element("small", ["class": "w\(fineWidth)"], text: fine)
    } else if !fine.isEmpty {
      element("small", text: fine)
    }
  }

  mutating func amount(_ micros: Int128, _ currency: Currency, fineWidth: Int = 0) {
    number(
      Amount.text(micros: micros, currency: currency), minorDigits: currency.minorDigits,
      fineWidth: fineWidth)
  }

  /// An amount with a leading sign, 0 without one.
  mutating func signedAmount(_ micros: Int128, _ currency: Currency, fineWidth: Int = 0) {
    number(
      (micros > 0 ? "+" : "") + Amount.text(micros: micros, currency: currency),
      minorDigits: currency.minorDigits, fineWidth: fineWidth)
  }

  /// The room that decimals beyond the currency's own need in a column with these amounts; 0 if there are none.
  static func fineWidth(_ amounts: [(micros: Int128, currency: Currency)]) -> Int {
    var width = 0
    for (micros, currency) in amounts {
      let text = Amount.text(micros: micros, currency: currency)
      let decimals = text.split(separator: ".").dropFirst().first?.count ?? 0
      // Without its own decimals, the point is among the small characters.
      guard decimals > currency.minorDigits else { continue }
      width = max(width, decimals - currency.minorDigits + (currency.minorDigits == 0 ? 1 : 0))
    }
    return width
  }

  mutating func count(_ value: Int128) { number(String(value)) }

  mutating func signedCount(_ value: Int128) { number((value > 0 ? "+" : "") + String(value)) }
}
