// The interface for writing reports cell by cell, in any format.
package import Revenue

/// A column of a report.
package struct ReportColumn: Sendable {
  /// The type of the column's cells, which decides how they are written.
  package enum Content: Sendable { case text, integer, amount, time, flag, list }

  package let name: String
  package let content: Content
  /// Whether the column helps to tell rows apart. A table never cuts or leaves out such a column.
  package let isKey: Bool

  package init(_ name: String, _ content: Content = .text, isKey: Bool = false) {
    self.name = name
    self.content = content
    self.isKey = isKey
  }
}

/// One cell. Its bytes are UTF-8 and stay valid until the writer returns.
package enum ReportCell {
  case empty
  case text(UnsafeRawBufferPointer)
  case word(StaticString)
  case currency(Currency)
  case integer(Int64)
  /// A binary number that a query computed; never an amount.
  case real(Double)
  /// The digits of a number that is not an amount, perhaps with a sign and a point.
  case decimal(String)
  /// Micros and their currency, which decides the number of digits.
  case amount(Int128, Currency?)
  /// Micros by currency, written as `9.99 EUR 4.00 USD`; no currency at all is an empty cell.
  case amounts([Currency: Int128])
  /// Epoch milliseconds.
  case time(Int64)
  case flag(Bool)
  case list([UnsafeRawBufferPointer])
  case integers([Int64])
}

extension ReportCell {
  /// The shortest decimal number that reads back as the same binary number; `Infinity` has no other form.
  package static func text(_ value: Double) -> String {
    if value.isInfinite { return value < 0 ? "-Infinity" : "Infinity" }
    return "\(value)"
  }
}

/// Sums in one currency, in the order of the report's columns.
package struct ReportTotal: Sendable {
  /// Nil for sales without a currency: unpriced, trial and family-shared ones.
  package let currency: Currency?
  /// The summed columns and their sums; amounts are in micros.
  package let sums: [(column: ReportColumn, value: Int128)]
}

/// The rates that converted a report's lines.
package struct UsedRates: Equatable, Sendable {
  /// Sorted by name.
  package var sources: [RateSource] = []
  /// The oldest rate used; nil if no rate was used, or if the report sets no limit on the age of rates.
  package var oldest: RateDay?
}

/// A name in a filter that the ledger does not know.
package enum UnknownName: Equatable, Sendable {
  case app(String)
  /// As given: an id, or a prefix with `*`; and the id that is most like it.
  case product(String, similar: String?)
  case country(String)
  /// A fiscal month of which the ledger has no payment.
  case payment(String)
  /// The identifier stands in no message.
  case user
}

/// A report's totals and remarks.
package struct ReportSummary: Sendable {
  /// How many rows are shown.
  package var rowCount = 0
  /// How many rows are left out because only the first were asked for. Totals are those of all rows.
  package var notShownCount = 0
  package var totals: [ReportTotal] = []
  /// The number of exceptions of each type, by name.
  package var exceptions: [(type: String, count: Int)] = []
  /// How many of the sales shown come from replies of each source, by name. Sources without sales are omitted.
  package var trust: [(word: String, count: Int)] = []
  /// Whether all sales of the ledger come from replies of one source.
  package var isOfOneSource = false
  /// The rates used (rule R10).
  package var rates = UsedRates()
  /// Requested environments that no receipt or reply has named; most likely typing errors.
  package var unknownEnvironments: [String] = []
  /// What filters name and the ledger does not know; most likely typing errors.
  package var unknownNames: [UnknownName] = []
  /// R13: the moment at which subscriptions were judged, in epoch milliseconds; nil for other reports.
  package var momentMs: Int64?
  /// How amounts are rounded to minor units; nil if they are exact.
  package var rounding: ReportRounding?
  /// What else the reader should know: S13, whose payment is not split; S15, the receivable's balance.
  package var remarks: [String] = []
  /// Of the newest fiscal month that the reconcile report shows.
  package var settlement: SettlementFigures?
  /// Whether rounding changed an amount.
  package var isRounded = false

  package init() {}
}

/// Receives a report's rows, cell by cell.
package protocol ReportWriter: AnyObject {
  func begin(_ columns: [ReportColumn]) throws
  func write(_ cell: ReportCell) throws
  func endRow() throws
  func end(_ summary: ReportSummary) throws
}

/// Buffers bytes and passes them on in large pieces.
struct ReportBuffer {
  private static let limitBytes = 1 << 16
  var bytes: [UInt8] = []
  private let sink: (UnsafeRawBufferPointer) throws -> Void

  init(_ sink: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.sink = sink
    bytes.reserveCapacity(Self.limitBytes + 4096)
  }

  /// Passes on the buffered bytes if the buffer is full.
  mutating func flushIfFull() throws {
    if bytes.count >= Self.limitBytes { try flush() }
  }

  mutating func flush() throws {
    try bytes.withUnsafeBytes(sink)
    bytes.removeAll(keepingCapacity: true)
  }
}

extension [UInt8] {
  mutating func append(_ word: StaticString) {
    append(contentsOf: UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
  }

  mutating func append(decimal value: Int64) { append(contentsOf: String(value).utf8) }
}

// MARK: - The layout of a report, put between its rows and the writer of a format

extension ReportLayout {
  /// A writer that passes on to `writer` what this layout shows: the selected columns, and rows of totals.
  package func applied(to writer: any ReportWriter) -> any ReportWriter {
    let below: any ReportWriter = hasTotal ? TotalRows(to: writer) : writer
    return columns.isEmpty ? below : ColumnSelection(columns, to: below)
  }
}
