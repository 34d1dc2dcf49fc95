// Reports as a single JSON text, or as one line per row. Amounts are strings, so that no reader rounds them.
package import Base
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

/// What a single JSON text says before its rows.
package enum JSONHeading: Sendable {
  case report(ReportHeading)
  /// The rows of a query; without a ledger and a head if they rest on none.
  case query(LedgerIdentity?, head: (size: Int, root: SHA256Digest)?)
}

/// Writes a report as JSON.
package final class JSONReportWriter: ReportWriter {
  private var buffer: ReportBuffer
  private let heading: JSONHeading?
  private var columns: [ReportColumn] = []
  private var writer = JSONWriter()
  private var column = 0
  private var rowCount = 0
  private var hasMembers = false

  /// - Parameter heading: the beginning of the single JSON text; nil writes one line per row instead.
  package init(
    heading: JSONHeading?, _ sink: @escaping (UnsafeRawBufferPointer) throws -> Void
  ) {
    self.heading = heading
    buffer = ReportBuffer(sink)
  }

  package func begin(_ columns: [ReportColumn]) throws {
    self.columns = columns
    switch heading {
    case nil: return
    case .report(let report):
      member("report") { $0.string(report.request.kind.rawValue) }
      write(report.ledger, (report.size, report.root))
      member("filters") { report.request.write(to: &$0) }
    case .query(let ledger, let head):
      if let ledger, let head { write(ledger, head) }
      member("columns") { writer in
        writer.beginArray()
        for column in columns { writer.string(column.name) }
        writer.endArray()
      }
    }
    buffer.bytes.append(",\n\"rows\":[")
  }

  private func write(_ ledger: LedgerIdentity, _ head: (size: Int, root: SHA256Digest)) {
    member("ledger") { writer in
      writer.beginObject()
      writer.member("origin", ledger.origin)
      writer.member("id", "\(ledger.id)")
      writer.endObject()
    }
    member("head") { writer in
      writer.beginObject()
      writer.member("size", head.size)
      writer.member("root", Base64.text(head.root.bytes))
      writer.endObject()
    }
  }

  /// Writes a member of the single JSON text on a line of its own.
  private func member(_ name: StaticString, _ body: (inout JSONWriter) -> Void) {
    buffer.bytes.append(hasMembers ? ",\n\"" : "{\n\"")
    hasMembers = true
    buffer.bytes.append(name)
    buffer.bytes.append("\":")
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
    case .decimal(let digits): writer.string(digits)
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
      buffer.bytes.append("]")
      if case .report(let report) = heading {
        writeMembers(of: summary, report.request.note)
      } else {
        member("row_count") { $0.integer(rowCount) }
      }
      buffer.bytes.append("\n}\n")
    }
    try buffer.flush()
  }

  private func writeMembers(of summary: ReportSummary, _ note: String) {
    member("totals") { Self.write(summary.totals, to: &$0) }
    if summary.notShownCount > 0 {
      member("rows_not_shown") { $0.integer(summary.notShownCount) }
    }
    member("exceptions") { writer in
      writer.beginObject()
      for exception in summary.exceptions {
        writer.key(exception.type)
        writer.integer(exception.count)
      }
      writer.endObject()
    }
    if !summary.rates.sources.isEmpty {
      member("rate_sources") { writer in
        writer.beginArray()
        for source in summary.rates.sources {
          writer.beginObject()
          writer.member("source", source.name)
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
      member("oldest_rate") { writer in
        writer.beginObject()
        writer.member("base", oldest.base.description)
        writer.member("quote", oldest.quote.description)
        writer.member("date", CivilDate(dayNumber: oldest.day).description)
        writer.endObject()
      }
    }
    member("note") { $0.string(note) }
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
