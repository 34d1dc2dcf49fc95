// Reports as CSV: RFC 4180, LF, and no cell that a spreadsheet would run (rule R9).
import Time

/// Writes rows alone, under one header line.
package final class CSVReportWriter: ReportWriter {
  private var buffer: ReportBuffer
  private var isFirstCell = true

  package init(_ sink: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    buffer = ReportBuffer(sink)
  }

  package func begin(_ columns: [ReportColumn]) throws {
    for column in columns {
      separate()
      buffer.bytes.append(column.name)
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
    case .amount(let micros, let currency):
      Amount.append(micros: micros, currency: currency, to: &buffer.bytes)
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
    guard let first = text.first else { return }
    let isDangerous = "=+-@\t\r".utf8.contains(first)
    let needsQuotes = text.contains { $0 == 0x22 || $0 == 0x2C || $0 == 0x0A || $0 == 0x0D }
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

  package func endRow() throws {
    buffer.bytes.append(0x0A)
    isFirstCell = true
    try buffer.flushIfFull()
  }

  package func end(_ summary: ReportSummary) throws { try buffer.flush() }
}
