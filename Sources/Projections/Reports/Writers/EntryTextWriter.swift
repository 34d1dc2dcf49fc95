// Entries as text for programs of double-entry accounting: hledger and Ledger, or Beancount (settlement rule S15).
import Base
package import Revenue

/// Writes the entries report: first what declares accounts and currencies, then the entries.
package final class EntryTextWriter: ReportWriter {
  private let format: EntryFormat
  private let sink: (UnsafeRawBufferPointer) throws -> Void
  /// The cells of the current row, in the order of the report's columns.
  private var cells: [String] = []
  private var firstDate: String?
  private var lastEntry: String?
  private var accounts: Set<[UInt8]> = []
  private var currencies: Set<[UInt8]> = []
  /// The declarations in front of the entries need all of them.
  private var entries: [UInt8] = []

  package init(
    _ format: EntryFormat, _ sink: @escaping (UnsafeRawBufferPointer) throws -> Void
  ) {
    self.format = format
    self.sink = sink
  }

  package func begin(_ columns: [ReportColumn]) throws {
    guard columns.map(\.name) == EntriesReport.columns.map(\.name) else {
      throw ProjectionError.usage("the format '\(format.rawValue)' is for entries alone")
    }
  }

  package func write(_ cell: ReportCell) {
    switch cell {
    case .text(let text): cells.append(String(decoding: text, as: UTF8.self))
    case .word(let word): cells.append("\(word)")
    case .amount(let micros, let currency):
      cells.append(Amount.text(micros: micros, currency: currency))
    default: cells.append("")
    }
  }

  package func endRow() {
    defer { cells.removeAll(keepingCapacity: true) }
    let (date, entry) = (cells[0], cells[1])
    let (account, amount, currency) = (cells[5], cells[6], cells[7])
    if entry != lastEntry {
      if lastEntry != nil { append("") }
      append(
        format == .hledger
          ? "\(date) * App Store | \(entry)" : "\(date) * \"App Store\" \"\(entry)\"")
    }
    append("  \(account)  \(amount) \(currency)")
    firstDate = firstDate ?? date
    lastEntry = entry
    accounts.insert(Array(account.utf8))
    currencies.insert(Array(currency.utf8))
  }

  private func append(_ line: String) {
    entries.append(contentsOf: line.utf8)
    entries.append(0x0A)
  }

  package func end(_ summary: ReportSummary) throws {
    guard let firstDate else { return }
    append("")
    var head = ""
    for account in Self.texts(accounts) {
      head += format == .hledger ? "account \(account)\n" : "\(firstDate) open \(account)\n"
    }
    if format == .hledger {
      for currency in Self.texts(currencies) {
        head += "commodity \(currency)\n  format 1000.000000 \(currency)\n"
      }
    }
    try withText(head + "\n") { try sink($0) }
    try withText(entries) { try sink($0) }
  }

  /// Sorted as bytes.
  private static func texts(_ texts: Set<[UInt8]>) -> [String] {
    texts.sorted { $0.lexicographicallyPrecedes($1) }.map { String(decoding: $0, as: UTF8.self) }
  }
}
