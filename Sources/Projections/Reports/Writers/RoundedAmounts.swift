// A report's amounts, rounded to the minor unit of their currency.
import Base
package import Revenue

/// How the amounts of a report are rounded.
package enum ReportRounding: Sendable {
  /// Each column by largest remainder, so that rows add up to the rounded total.
  case apportioned
  /// Gross, Returns and Reversals likewise; net is computed from the figures shown.
  case computedNet
  /// Each amount of a row by itself; totals are those of the exact amounts.
  case alone

  /// What rounding did to the figures, in a line.
  package var note: String {
    switch self {
    case .apportioned:
      "Rounded to minor units: totals half to even, rows by largest remainder, so that they add up."
    case .computedNet:
      "Rounded so that rows add up; net is that of the rounded figures, and may differ from the exact one "
        + "(--amounts exact)"
    case .alone:
      "Each line is rounded by itself, and totals are those of the exact amounts (--amounts exact)"
    }
  }
}

extension ReportRequest {
  /// How the amounts are rounded; nil if they are exact.
  var rounding: ReportRounding? {
    if amounts == .exact { return nil }
    switch kind {
    case .revenue: return version < Self.roundingVersion ? .apportioned : .computedNet
    case .journal: return version < Self.roundingVersion ? .apportioned : .alone
    case .sales, .subscriptions: return .alone
    default: return .apportioned
    }
  }

  /// Revenue and journals of earlier versions apportion every column, net and the lines' amounts too.
  private static let roundingVersion = 8
}

extension ReportAmounts {
  /// A single amount as it is shown, in micros.
  package func shown(_ micros: Int128, _ currency: Currency?) -> Int128 {
    guard self == .minor, let currency else { return micros }
    return MinorRounding.halfToEven(micros, currency)
  }
}

/// Passes on the same rows with rounded amounts.
protocol RoundingWriter: ReportWriter {
  /// Whether a rounded amount differs from the exact one.
  var hasChanged: Bool { get }
}

/// Rounds each amount by itself, half to even.
final class RoundedLines: RoundingWriter {
  private let writer: any ReportWriter
  private(set) var hasChanged = false

  init(to writer: any ReportWriter) { self.writer = writer }

  func begin(_ columns: [ReportColumn]) throws { try writer.begin(columns) }

  func write(_ cell: ReportCell) throws {
    guard case .amount(let micros, let currency?) = cell else { return try writer.write(cell) }
    let rounded = MinorRounding.halfToEven(micros, currency)
    hasChanged = hasChanged || rounded != micros
    try writer.write(.amount(rounded, currency))
  }

  func endRow() throws { try writer.endRow() }

  func end(_ summary: ReportSummary) throws { try writer.end(summary) }
}

// MARK: - Columns whose rows add up to the rounded total

/// The amounts of one column in one currency, which are rounded together.
private struct AmountGroup: Hashable {
  let column: Int
  let currency: Currency
}

extension ReportColumn {
  /// Whether its amounts are not added up, so that each is rounded by itself.
  fileprivate var isUnitPrice: Bool { name == "unit_price" }
}

/// Takes a report's rows before they are written: how an amount is rounded follows from the remainders of all. Kept
/// are only amounts that are not whole minor units, 16 bytes for each.
final class RowRemainders: ReportWriter {
  fileprivate var groups: [AmountGroup: MinorRounding] = [:]
  private var columns: [ReportColumn] = []
  private var column = 0

  func begin(_ columns: [ReportColumn]) { self.columns = columns }

  func write(_ cell: ReportCell) {
    switch cell {
    case .amount(let micros, let currency?) where !columns[column].isUnitPrice:
      add(micros, currency)
    case .amounts(let sums):
      for (currency, micros) in sums { add(micros, currency) }
    default: break
    }
    column += 1
  }

  private func add(_ micros: Int128, _ currency: Currency) {
    groups[AmountGroup(column: column, currency: currency), default: MinorRounding(currency)]
      .add(micros)
  }

  func endRow() { column = 0 }

  /// Decides how each amount is rounded.
  func end(_ summary: ReportSummary) {
    for group in groups.keys { groups[group]?.finish() }
  }
}

/// Passes on the same rows, in the same order, with rounded amounts.
final class RoundedRows: RoundingWriter {
  private(set) var hasChanged = false
  private let remainders: RowRemainders
  private let writer: any ReportWriter
  /// How many amounts of each group were passed on.
  private var counts: [AmountGroup: Int] = [:]
  private var columns: [ReportColumn] = []
  private var column = 0

  init(_ remainders: RowRemainders, to writer: any ReportWriter) {
    self.remainders = remainders
    self.writer = writer
  }

  func begin(_ columns: [ReportColumn]) throws {
    self.columns = columns
    try writer.begin(columns)
  }

  func write(_ cell: ReportCell) throws {
    defer { column += 1 }
    switch cell {
    case .amount(let micros, let currency?):
      let rounded =
        columns[column].isUnitPrice
        ? MinorRounding.halfToEven(micros, currency) : next(micros, currency)
      hasChanged = hasChanged || rounded != micros
      try writer.write(.amount(rounded, currency))
    case .amounts(var sums):
      for (currency, micros) in sums {
        let rounded = next(micros, currency)
        hasChanged = hasChanged || rounded != micros
        sums[currency] = rounded
      }
      try writer.write(.amounts(sums))
    default: try writer.write(cell)
    }
  }

  private func next(_ micros: Int128, _ currency: Currency) -> Int128 {
    let group = AmountGroup(column: column, currency: currency)
    let ordinal = counts[group, default: 0]
    counts[group] = ordinal + 1
    return remainders.groups[group]?.rounded(micros, ordinal: ordinal) ?? micros
  }

  func endRow() throws {
    column = 0
    try writer.endRow()
  }

  func end(_ summary: ReportSummary) throws { try writer.end(summary) }
}

extension ReportSummary {
  /// Rounds the totals, half to even.
  mutating func roundTotals() {
    totals = totals.map { total in
      guard let currency = total.currency else { return total }
      return ReportTotal(
        currency: currency,
        sums: total.sums.map { column, value in
          (column, column.content == .amount ? MinorRounding.halfToEven(value, currency) : value)
        })
    }
  }
}
