// How reports are written: cell by cell, into any of the formats.
package import Revenue

/// A column of a report.
package struct ReportColumn: Sendable {
  /// What its cells hold, which decides how they are written.
  package enum Content: Sendable { case text, integer, amount, time, flag, list }

  package let name: StaticString
  package let content: Content

  init(_ name: StaticString, _ content: Content = .text) {
    self.name = name
    self.content = content
  }
}

/// One cell. Bytes are UTF-8 and valid until the writer returns.
package enum ReportCell {
  case empty
  case text(UnsafeRawBufferPointer)
  case word(StaticString)
  case currency(Currency)
  case integer(Int64)
  /// Micros with their currency, which decides the digits.
  case amount(Int128, Currency?)
  /// Epoch milliseconds.
  case time(Int64)
  case flag(Bool)
  case list([UnsafeRawBufferPointer])
  case integers([Int64])
}

/// Sums in one currency, in the order of a report's columns.
package struct ReportTotal: Sendable {
  /// Nil for what has no currency: unpriced, trial and family-shared sales.
  package let currency: Currency?
  /// The columns that are summed, and their sums: amounts in micros.
  package let sums: [(column: ReportColumn, value: Int128)]
}

/// The rates that converted a report's lines.
package struct UsedRates: Equatable, Sendable {
  /// Sorted by name.
  package var sources: [RateSource] = []
  /// The oldest of them; nil where none was used, or where the report sets no limit to their age.
  package var oldest: RateDay?
}

/// A report's totals and remarks.
package struct ReportSummary: Sendable {
  package var rowCount = 0
  package var totals: [ReportTotal] = []
  /// How many exceptions there are of each type, by name.
  package var exceptions: [(type: String, count: Int)] = []
  /// How many of the sales shown rest on replies of each source, by name; without those of none.
  package var trust: [(word: String, count: Int)] = []
  /// The rates that were used (rule R10).
  package var rates = UsedRates()
  /// Environments that were asked for and that no receipt or reply has named: a slip of the pen, most likely.
  package var unknownEnvironments: [String] = []

  package init() {}
}

/// Takes a report's rows, cell by cell.
package protocol ReportWriter: AnyObject {
  func begin(_ columns: [ReportColumn]) throws
  func write(_ cell: ReportCell) throws
  func endRow() throws
  func end(_ summary: ReportSummary) throws
}

/// Collects bytes and hands them on in large pieces.
struct ReportBuffer {
  private static let limitBytes = 1 << 16
  var bytes: [UInt8] = []
  private let sink: (UnsafeRawBufferPointer) throws -> Void

  init(_ sink: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.sink = sink
    bytes.reserveCapacity(Self.limitBytes + 4096)
  }

  /// Hands on what has been collected, once it is much.
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
