// The sums of a page: those of a revenue report, added up along other lines, and checked against its totals.
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

  /// The place of a column's sum; nil if the column holds none.
  static func place(_ column: ReportColumn) -> Int? { names.firstIndex(of: column.name) }

  package subscript(place: Int) -> Int128 {
    get { values[place] }
    set { values[place] = newValue }
  }

  static func + (left: PageSums, right: PageSums) -> PageSums {
    var sum = left
    for place in names.indices { sum.values[place] += right.values[place] }
    return sum
  }

  mutating func add(_ refund: RefundSums) {
    values[2] += refund.returnedUnits
    values[3] += refund.returns
    values[4] += refund.reversedUnits
    values[5] += refund.reversals
  }

  /// Units, Returns and Reversals of both are the same.
  func hasSameRefunds(as other: PageSums) -> Bool { values[2...5] == other.values[2...5] }

  var hasRefunds: Bool { !hasSameRefunds(as: PageSums()) }
}

/// A revenue report's rows, as its writer receives them.
package struct PageRows {
  /// One row.
  package struct Row {
    /// The values of the dimensions, in their order.
    let labels: [String]
    /// Nil for what has no price: unpriced, trial and family-shared sales.
    let currency: Currency?
    let sums: PageSums

    package init(labels: [String], currency: Currency? = nil, sums: PageSums) {
      self.labels = labels
      self.currency = currency
      self.sums = sums
    }
  }

  let dimensions: [ReportDimension]
  package var rows: [Row] = []
  var summary = ReportSummary()

  package init(dimensions: [ReportDimension], rows: [Row] = []) {
    self.dimensions = dimensions
    self.rows = rows
  }

  /// The sums by currency.
  var totals: [Currency?: PageSums] {
    rows.reduce(into: [:]) { totals, row in
      totals[row.currency] = (totals[row.currency] ?? PageSums()) + row.sums
    }
  }

  /// The sums by the value of one dimension, for one currency, in the order of the values.
  func sums(by dimension: ReportDimension, _ currency: Currency?) -> [(
    label: String, sums: PageSums
  )] {
    guard let index = dimensions.firstIndex(of: dimension) else { return [] }
    var places: [String: Int] = [:]
    var result: [(label: String, sums: PageSums)] = []
    for row in rows where row.currency == currency {
      let label = row.labels[index]
      if let place = places[label] {
        result[place].sums = result[place].sums + row.sums
      } else {
        places[label] = result.count
        result.append((label, row.sums))
      }
    }
    return result.sorted { $0.label.utf8.lexicographicallyPrecedes($1.label.utf8) }
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
          PageSums.place(sum.column).map { sums[$0] == sum.value } ?? true
        }
      }
    if !isWhole { throw .inconsistent("the rows of a report do not add up to its totals") }
  }
}

/// Collects the rows of a revenue report.
final class PageRowCollector: ReportWriter {
  private(set) var result: PageRows
  /// The place of each column's sum.
  private var places: [Int?] = []
  private var column = 0
  private var labels: [String] = []
  private var currency: Currency?
  private var sums = PageSums()

  init(_ dimensions: [ReportDimension]) { result = PageRows(dimensions: dimensions) }

  func begin(_ columns: [ReportColumn]) { places = columns.map(PageSums.place) }

  func write(_ cell: ReportCell) {
    if column < result.dimensions.count {
      labels.append(PageCell(cell).text)
    } else if case .currency(let value) = cell {
      currency = value
    } else if let place = places[column] {
      sums[place] = PageCell(cell).number ?? 0
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
  /// The values of the wanted columns, in the order in which they are wanted.
  private(set) var rows: [[PageCell]] = []
  private(set) var summary = ReportSummary()
  private let wanted: [String]
  private var places: [Int?] = []
  private var row: [PageCell?] = []
  private var column = 0

  init(_ wanted: [String]) { self.wanted = wanted }

  func begin(_ columns: [ReportColumn]) {
    places = columns.map { column in wanted.firstIndex(of: column.name) }
    row = Array(repeating: nil, count: wanted.count)
  }

  func write(_ cell: ReportCell) {
    if let place = places[column] { row[place] = PageCell(cell) }
    column += 1
  }

  func endRow() {
    rows.append(row.map { $0 ?? PageCell(.empty) })
    row = Array(repeating: nil, count: wanted.count)
    column = 0
  }

  func end(_ summary: ReportSummary) { self.summary = summary }
}
