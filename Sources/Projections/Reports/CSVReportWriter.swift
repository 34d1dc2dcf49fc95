// Reports as CSV: RFC 4180, LF, and no cell that a spreadsheet would execute (rule R9).
import Base
import Revenue

/// Writes one header line and the rows, nothing else.
package final class CSVReportWriter: ReportWriter {
  private var buffer: ReportBuffer
  private var isFirstCell = true

  package init(_ sink: @escaping (UnsafeRawBufferPointer) throws -> Void) {
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
    if !isFirstCell { buffer.bytes.append(UInt8(ascii: ",")) }
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
    case .real(let value): buffer.bytes.append(contentsOf: ReportCell.text(value).utf8)
    case .amount(let micros, let currency):
      Amount.append(micros: micros, currency: currency, to: &buffer.bytes)
    case .amounts(let sums):
      buffer.bytes.append(contentsOf: Amount.text(sums).utf8)
    case .time(let epochMs): Timestamp.append(ms: epochMs, to: &buffer.bytes)
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

  private func append(_ text: UnsafeRawBufferPointer) {
    if text.isEmpty { return }
    let isDangerous = Self.mayRun(text)
    // Some spreadsheets split cells at semicolons.
    let needsQuotes = text.contains {
      $0 == 0x22 || $0 == 0x2C || $0 == 0x3B || $0 == 0x0A || $0 == 0x0D
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
