// Reports as a single JSON text, or as one line per row. Amounts are strings, so that no reader rounds them.
package import Base
import JSON
package import Ledger
import Revenue

/// The header of a JSON report, before its rows.
package struct ReportHeading: Sendable {
  package var request: ReportRequest
  package var ledger: LedgerIdentity
  /// The number of events the report is based on, and the root of their tree.
  package var size: Int
  package var root: SHA256Digest

  package init(request: ReportRequest, ledger: LedgerIdentity, size: Int, root: SHA256Digest) {
    self.request = request
    self.ledger = ledger
    self.size = size
    self.root = root
  }
}

/// Writes a report as JSON.
package final class JSONReportWriter: ReportWriter {
  private var buffer: ReportBuffer
  private let heading: ReportHeading?
  private var columns: [ReportColumn] = []
  private var writer = JSONWriter()
  private var column = 0
  private var rowCount = 0

  /// - Parameter heading: the beginning of the single JSON text; nil writes one line per row instead.
  package init(
    heading: ReportHeading?, _ sink: @escaping (UnsafeRawBufferPointer) throws -> Void
  ) {
    self.heading = heading
    buffer = ReportBuffer(sink)
  }

  package func begin(_ columns: [ReportColumn]) throws {
    self.columns = columns
    guard let heading else { return }
    buffer.bytes.append("{\n\"report\":")
    take { $0.string(heading.request.kind.rawValue) }
    buffer.bytes.append(",\n\"ledger\":")
    take { writer in
      writer.beginObject()
      writer.key("origin")
      writer.string(heading.ledger.origin)
      writer.key("id")
      writer.string("\(heading.ledger.id)")
      writer.endObject()
    }
    buffer.bytes.append(",\n\"head\":")
    take { writer in
      writer.beginObject()
      writer.key("size")
      writer.integer(heading.size)
      writer.key("root")
      Base64.encode(heading.root.bytes).withUnsafeBytes { writer.string($0) }
      writer.endObject()
    }
    buffer.bytes.append(",\n\"filters\":")
    take { heading.request.write(to: &$0) }
    buffer.bytes.append(",\n\"rows\":[")
  }

  private func take(_ body: (inout JSONWriter) -> Void) {
    writer.removeAll()
    body(&writer)
    buffer.bytes.append(contentsOf: writer.bytes)
  }

  package func write(_ cell: ReportCell) throws {
    if column == 0 {
      writer.removeAll()
      writer.beginObject()
    }
    writer.key(columns[column].name)
    column += 1
    switch cell {
    case .empty: writer.null()
    case .text(let text): writer.string(text)
    case .word(let word): writer.string(word.text)
    case .currency(let currency): writer.string(currency.description)
    case .integer(let value): writer.integer(value)
    case .real(let value):
      let text = ReportCell.text(value)
      // JSON has no number for infinity.
      if value.isFinite {
        Array(text.utf8).withUnsafeBytes { writer.raw($0) }
      } else {
        writer.string(text)
      }
    case .amount(let micros, let currency):
      writer.string(Amount.text(micros: micros, currency: currency))
    case .amounts(let sums):
      if sums.isEmpty { writer.null() } else { writer.string(Amount.text(sums)) }
    case .time(let epochMs): writer.string(Timestamp.text(ms: epochMs))
    case .flag(let value): writer.boolean(value)
    case .list(let texts):
      writer.beginArray()
      for text in texts { writer.string(text) }
      writer.endArray()
    case .integers(let values):
      writer.beginArray()
      for value in values { writer.integer(value) }
      writer.endArray()
    }
  }

  package func endRow() throws {
    writer.endObject()
    if heading != nil {
      if rowCount > 0 { buffer.bytes.append(UInt8(ascii: ",")) }
      buffer.bytes.append(0x0A)
    }
    buffer.bytes.append(contentsOf: writer.bytes)
    if heading == nil { buffer.bytes.append(0x0A) }
    column = 0
    rowCount += 1
    try buffer.flushIfFull()
  }

  package func end(_ summary: ReportSummary) throws {
    if heading != nil {
      if rowCount > 0 { buffer.bytes.append(0x0A) }
      buffer.bytes.append("],\n\"totals\":")
      take { Self.write(summary.totals, to: &$0) }
      if summary.notShownCount > 0 {
        buffer.bytes.append(",\n\"rows_not_shown\":")
        take { $0.integer(summary.notShownCount) }
      }
      buffer.bytes.append(",\n\"exceptions\":")
      take { writer in
        writer.beginObject()
        for exception in summary.exceptions {
          writer.key(exception.type)
          writer.integer(exception.count)
        }
        writer.endObject()
      }
      if !summary.rates.sources.isEmpty {
        buffer.bytes.append(",\n\"rate_sources\":")
        take { writer in
          writer.beginArray()
          for source in summary.rates.sources {
            writer.beginObject()
            writer.key("source")
            writer.string(source.name)
            writer.key("positions")
            writer.beginArray()
            for position in source.positions { writer.integer(Int(position)) }
            writer.endArray()
            writer.endObject()
          }
          writer.endArray()
        }
      }
      if let oldest = summary.rates.oldest {
        buffer.bytes.append(",\n\"oldest_rate\":")
        take { writer in
          writer.beginObject()
          writer.key("base")
          writer.string(oldest.base.description)
          writer.key("quote")
          writer.string(oldest.quote.description)
          writer.key("date")
          writer.string(CivilDate(dayNumber: oldest.day).description)
          writer.endObject()
        }
      }
      buffer.bytes.append(",\n\"note\":")
      take { $0.string(reportNote) }
      buffer.bytes.append("\n}\n")
    }
    try buffer.flush()
  }

  private static func write(_ totals: [ReportTotal], to writer: inout JSONWriter) {
    writer.beginArray()
    for total in totals {
      writer.beginObject()
      writer.key("currency")
      if let currency = total.currency {
        writer.string(currency.description)
      } else {
        writer.null()
      }
      for sum in total.sums {
        writer.key(sum.column.name)
        if sum.column.content == .amount {
          if total.currency == nil {
            writer.null()
          } else {
            writer.string(Amount.text(micros: sum.value, currency: total.currency))
          }
        } else {
          writer.integer(sum.value)
        }
      }
      writer.endObject()
    }
    writer.endArray()
  }
}
