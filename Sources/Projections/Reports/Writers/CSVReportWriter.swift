// Reports as CSV: RFC 4180, LF, and no cell that a spreadsheet would execute (rule R9). Other locales have another
// delimiter and decimal sign, and times as their spreadsheets read them.
package import Base
import Revenue

/// Writes one header line and the rows, nothing else.
package final class CSVReportWriter: ReportWriter {
  private var buffer: ReportBuffer
  private let form: ReportLayout.CSV
  private let zone: TimeZoneTable
  private var isFirstCell = true

  /// - Parameters:
  ///   - form: delimiter, decimal sign and dates.
  ///   - zone: the zone of dates that are written for spreadsheets.
  package init(
    form: ReportLayout.CSV = ReportLayout.CSV(), zone: TimeZoneTable = .utc,
    _ sink: @escaping (UnsafeRawBufferPointer) throws -> Void
  ) {
    self.form = form
    self.zone = zone
    buffer = ReportBuffer(sink)
  }

  package func begin(_ columns: [ReportColumn]) throws {
    for column in columns {
      separate()
      Array(column.name.utf8).withUnsafeBytes { append($0) }
    }
    try endRow()
  }

  private func separate() {
    if !isFirstCell { buffer.bytes.append(form.delimiter) }
    isFirstCell = false
  }

  package func write(_ cell: ReportCell) throws {
    separate()
    switch cell {
    case .empty: break
    case .text(let text): append(text)
    case .word(let word): buffer.bytes.append(word)
    case .currency(let currency): currency.append(to: &buffer.bytes)
    case .integer(let value): buffer.bytes.append(decimal: value)
    case .real(let value):
      let start = buffer.bytes.count
      buffer.bytes.append(contentsOf: ReportCell.text(value).utf8)
      setDecimalSign(from: start)
    case .decimal(let digits):
      let start = buffer.bytes.count
      buffer.bytes.append(contentsOf: digits.utf8)
      setDecimalSign(from: start)
    case .amount(let micros, let currency):
      let start = buffer.bytes.count
      Amount.append(micros: micros, currency: currency, to: &buffer.bytes)
      setDecimalSign(from: start)
    case .amounts(let sums):
      var text = Array(Amount.text(sums).utf8)
      // Codes of currencies have no points.
      for place in text.indices where text[place] == UInt8(ascii: ".") {
        text[place] = form.decimal
      }
      text.withUnsafeBytes { append($0) }
    case .time(let epochMs): append(timeMs: epochMs)
    case .flag(let value): buffer.bytes.append(value ? "true" : "false")
    case .list(let texts):
      var joined: [UInt8] = []
      for text in texts {
        if !joined.isEmpty { joined.append(0x20) }
        joined.append(contentsOf: text)
      }
      joined.withUnsafeBytes { append($0) }
    case .integers(let values):
      buffer.bytes.append(contentsOf: values.map { String($0) }.joined(separator: " ").utf8)
    }
  }

  /// Writes the decimal sign of the form in the number that begins at `start`.
  private func setDecimalSign(from start: Int) {
    guard form.decimal != UInt8(ascii: "."),
      let point = buffer.bytes[start...].lastIndex(of: UInt8(ascii: "."))
    else { return }
    buffer.bytes[point] = form.decimal
  }

  private func append(timeMs epochMs: Int64) {
    switch form.dates {
    case .rfc3339: Timestamp.append(ms: epochMs, to: &buffer.bytes)
    case .spreadsheet:
      let start = buffer.bytes.count
      Timestamp.append(ms: zone.localMs(atMs: epochMs), to: &buffer.bytes)
      // `2026-06-01T05:04:05.678Z` becomes `2026-06-01 05:04:05.678`, without `.000`.
      buffer.bytes.removeLast()
      if buffer.bytes.suffix(3).allSatisfy({ $0 == UInt8(ascii: "0") }) {
        buffer.bytes.removeLast(4)
      } else {
        setDecimalSign(from: start)
      }
      if let letter = buffer.bytes[start...].firstIndex(of: UInt8(ascii: "T")) {
        buffer.bytes[letter] = 0x20
      }
    }
  }

  private func append(_ text: UnsafeRawBufferPointer) {
    if text.isEmpty { return }
    let isDangerous = Self.mayRun(text)
    // Some spreadsheets split cells at semicolons.
    let needsQuotes = text.contains {
      $0 == 0x22 || $0 == 0x2C || $0 == 0x3B || $0 == 0x0A || $0 == 0x0D || $0 == form.delimiter
    }
    if needsQuotes { buffer.bytes.append(0x22) }
    if isDangerous { buffer.bytes.append(UInt8(ascii: "'")) }
    if needsQuotes {
      for byte in text {
        if byte == 0x22 { buffer.bytes.append(0x22) }
        buffer.bytes.append(byte)
      }
      buffer.bytes.append(0x22)
    } else {
      buffer.bytes.append(contentsOf: text)
    }
  }

  /// Whether a spreadsheet might treat a text as a formula because of its first character.
  private static func mayRun(_ text: UnsafeRawBufferPointer) -> Bool {
    switch text.first {
    case 0x3D, 0x2B, 0x2D, 0x40: true  // = + - @
    case 0x00, 0x09, 0x0A, 0x0D: true
    // The full-width = + - @ are U+FF1D, U+FF0B, U+FF0D and U+FF20.
    case 0xEF where text.count >= 3:
      switch (text[1], text[2]) {
      case (0xBC, 0x9D), (0xBC, 0x8B), (0xBC, 0x8D), (0xBC, 0xA0): true
      default: false
      }
    default: false
    }
  }

  package func endRow() throws {
    buffer.bytes.append(0x0A)
    isFirstCell = true
    try buffer.flushIfFull()
  }

  package func end(_ summary: ReportSummary) throws { try buffer.flush() }
}

extension TimeZoneTable {
  /// What a clock of the zone shows at an instant, as if it were in UTC; both in epoch milliseconds.
  fileprivate func localMs(atMs epochMs: Int64) -> Int64 {
    let (localMs, overflow) = epochMs.addingReportingOverflow(
      Int64(offsetSeconds(atMs: epochMs)) * 1000)
    return overflow ? epochMs : localMs
  }
}
