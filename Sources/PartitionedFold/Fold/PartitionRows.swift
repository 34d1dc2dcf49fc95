// Writes a report's rows as a table of the exchange format, with positions of ledgers in place of the fold's own.
import JSON
import Ledger
import Projections
import Revenue

/// Encodes the cells of one report, each as its column's `PartitionContent` says.
final class PartitionRows: ReportWriter {
  private static let oncePerText = Set(
    ExceptionType.allCases.filter(\.isOncePerText).map { Array($0.word.utf8) })

  private let events: PartitionEvents
  private let table: ExchangeTableWriter
  private let columns: [PartitionColumn]
  private let isOfExceptions: Bool
  /// The cells of the current row, and where each ends.
  private var bytes: [UInt8] = []
  private var ends: [Int] = []
  /// That of the row's position cell.
  private var position: Position?
  private(set) var rowCount = 0

  init(_ request: ReportRequest, _ events: PartitionEvents, _ table: ExchangeTableWriter) {
    self.events = events
    self.table = table
    columns = request.reportColumns
    isOfExceptions = request.kind == .exceptions
  }

  func begin(_ columns: [ReportColumn]) throws {
    precondition(columns.map(\.name) == self.columns.map(\.name), "a report has other columns")
  }

  func write(_ cell: ReportCell) throws {
    let content = columns[ends.count].content
    switch cell {
    case .empty: break
    case .text(let text): bytes.append(contentsOf: text)
    case .word(let word):
      bytes.append(
        contentsOf: UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    case .currency(let currency): currency.append(to: &bytes)
    case .integer(let value) where content == .position:
      position = Int(value)
      appendPlace(Int(value))
    case .integer(let value), .time(let value): bytes.append(contentsOf: String(value).utf8)
    case .amount(let micros, _): bytes.append(contentsOf: String(micros).utf8)
    case .amounts(let sums): append(sums)
    case .flag(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
    case .list(let texts): append(texts)
    case .integers(let positions): append(positions)
    case .real: preconditionFailure("reports have no binary numbers")
    }
    ends.append(bytes.count)
  }

  private func appendPlace(_ position: Position) {
    bytes.append(contentsOf: String(events.ledger(of: position)).utf8)
    bytes.append(UInt8(ascii: ":"))
    bytes.append(contentsOf: String(events.ledgerPosition(of: position)).utf8)
  }

  private func append(_ sums: [Currency: Int128]) {
    if sums.isEmpty { return }
    var writer = JSONWriter()
    writer.beginObject()
    for (currency, micros) in sums.sorted(by: { $0.key < $1.key }) {
      writer.key(currency.description)
      writer.string(String(micros))
    }
    writer.endObject()
    bytes.append(contentsOf: writer.bytes)
  }

  private func append(_ texts: [UnsafeRawBufferPointer]) {
    if texts.isEmpty { return }
    var writer = JSONWriter()
    writer.beginArray()
    for text in texts { writer.string(text) }
    writer.endArray()
    bytes.append(contentsOf: writer.bytes)
  }

  private func append(_ positions: [Int64]) {
    if positions.isEmpty { return }
    for (ordinal, position) in positions.enumerated() {
      bytes.append(contentsOf: (ordinal == 0 ? "[\"" : ",\"").utf8)
      appendPlace(Int(position))
      bytes.append(UInt8(ascii: "\""))
    }
    bytes.append(UInt8(ascii: "]"))
  }

  func endRow() throws {
    precondition(ends.count == columns.count, "a row has another number of cells")
    if isOfExceptions { try writeScope() }
    try bytes.withUnsafeBytes { bytes in
      var start = 0
      for end in ends {
        try table.append(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        start = end
      }
    }
    bytes.removeAll(keepingCapacity: true)
    ends.removeAll(keepingCapacity: true)
    position = nil
    rowCount += 1
  }

  private func writeScope() throws {
    guard Self.oncePerText.contains(Array(bytes[..<ends[0]])), let position else {
      try table.append("")
      return try table.append("")
    }
    let recordedAtMs = try events.line(at: position).withUnsafeBytes { EventLine($0)?.recordedAtMs }
    guard let recordedAtMs else { preconditionFailure("a line that was folded is an event") }
    try table.append("distinct")
    try table.append("\(recordedAtMs)")
  }

  func end(_ summary: ReportSummary) throws {}
}
