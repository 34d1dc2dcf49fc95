// Reads the rows of a report, as Spark has them, and passes them on to a report writer.
import Base
import Projections
import Revenue

/// Decodes the cells that `PartitionRows` encodes.
struct PartitionCells {
  private let request: ReportRequest
  private let columns: [PartitionColumn]
  private let ledgerNames: [String]
  /// For each column of amounts, the index of the column with their currency; nil for other columns.
  private let currencyColumns: [Int?]

  init(_ request: ReportRequest, _ task: FoldTask) {
    self.request = request
    let columns = request.reportColumns
    self.columns = columns
    ledgerNames = task.ledgers.map(\.name)
    currencyColumns = columns.map { column in
      guard column.content == .amount else { return nil }
      let name = column.name == "original_amount" ? "original_currency" : "currency"
      return columns.firstIndex { $0.name == name }
    }
  }

  /// Passes on the header and the rows of a stream: of each, a JSON array with its cells.
  func write(_ input: LineInput, to writer: any ReportWriter) throws {
    var rowCount = 0
    try writer.begin(request.columns)
    while let row = try next(input) {
      let cells = (try? JSONValue(row))?.arrayValue?.compactMap(\.stringValue) ?? []
      guard cells.count == columns.count else {
        throw Failure(
          operation: "read", object: "standard input, row \(rowCount)",
          cause: "it does not have \(columns.count) cells")
      }
      try write(cells, number: rowCount, to: writer)
      try writer.endRow()
      rowCount += 1
    }
    try writer.end(ReportSummary())
  }

  private func next(_ input: LineInput) throws(Failure) -> UnsafeRawBufferPointer? {
    do throws(StreamError) { return try input.next() } catch {
      throw Failure(error, operation: "read", object: "standard input")
    }
  }

  private func write(_ cells: [String], number: Int, to writer: any ReportWriter) throws {
    for (index, column) in columns.enumerated() {
      var currency: Currency?
      if let currencyColumn = currencyColumns[index] {
        let code = cells[currencyColumn]
        currency = Currency.parse(code)
        if currency == nil, !code.isEmpty { throw failure(number, columns[currencyColumn]) }
      }
      let isWritten = try Array(cells[index].utf8).withUnsafeBytes {
        try write($0, column.content, currency, to: writer)
      }
      guard isWritten else { throw failure(number, column) }
    }
  }

  /// A cell may contain a user's identifier, so the cause does not quote it.
  private func failure(_ number: Int, _ column: PartitionColumn) -> Failure {
    Failure(
      operation: "read", object: "standard input, row \(number), column '\(column.name)'",
      cause: "the cell does not have the form of its column")
  }

  /// Writes a cell; returns false if it does not have the form of its column.
  private func write(
    _ bytes: UnsafeRawBufferPointer, _ content: PartitionContent, _ currency: Currency?,
    to writer: any ReportWriter
  ) throws -> Bool {
    if bytes.isEmpty {
      try writer.write(.empty)
      return true
    }
    if content == .text {
      try writer.write(.text(bytes))
      return true
    }
    if content == .list || content == .positions { return try writeList(bytes, content, writer) }
    guard let cell = cell(bytes, content, currency) else {
      guard content == .position, ledgerNames.count > 1, let text = locationText(bytes) else {
        return false
      }
      try Array(text.utf8).withUnsafeBytes { try writer.write(.text($0)) }
      return true
    }
    try writer.write(cell)
    return true
  }

  /// A cell without its own bytes.
  private func cell(
    _ bytes: UnsafeRawBufferPointer, _ content: PartitionContent, _ currency: Currency?
  ) -> ReportCell? {
    let text = String(decoding: bytes, as: UTF8.self)
    switch content {
    case .integer: return Int64(text).map { .integer($0) }
    case .time: return Int64(text).map { .time($0) }
    case .amount: return Int128(text).map { .amount($0, currency) }
    case .flag: return text == "true" ? .flag(true) : text == "false" ? .flag(false) : nil
    case .amounts: return Self.amounts(bytes).map { .amounts($0) }
    case .position where ledgerNames.count == 1: return location(text).map { .integer($0.position) }
    case .text, .list, .position, .positions: return nil
    }
  }

  private static func amounts(_ bytes: UnsafeRawBufferPointer) -> [Currency: Int128]? {
    guard case .object(let members) = try? JSONValue(bytes) else { return nil }
    var sums: [Currency: Int128] = [:]
    for member in members {
      guard let currency = Currency.parse(member.key),
        let micros = member.value.stringValue.flatMap({ Int128($0) })
      else { return nil }
      sums[currency] = micros
    }
    return sums
  }

  // MARK: Lists

  private func writeList(
    _ bytes: UnsafeRawBufferPointer, _ content: PartitionContent, _ writer: any ReportWriter
  ) throws -> Bool {
    guard let values = (try? JSONValue(bytes))?.arrayValue else { return false }
    let texts = values.compactMap(\.stringValue)
    guard texts.count == values.count else { return false }
    if content == .positions, ledgerNames.count == 1 {
      let locations = texts.compactMap { location($0) }
      guard locations.count == texts.count else { return false }
      try writer.write(.integers(locations.map(\.position)))
      return true
    }
    let shown = content == .positions ? texts.compactMap { locationText($0) } : texts
    guard shown.count == texts.count else { return false }
    var joined: [UInt8] = []
    let ranges = shown.map { text in
      let start = joined.count
      joined.append(contentsOf: text.utf8)
      return start..<joined.count
    }
    try joined.withUnsafeBytes { joined in
      try writer.write(.list(ranges.map { UnsafeRawBufferPointer(rebasing: joined[$0]) }))
    }
    return true
  }

  // MARK: Positions

  /// Parses `L:P`.
  private func location(_ text: String) -> (ledger: Int, position: Int64)? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let ledger = Int(parts[0]), ledgerNames.indices.contains(ledger),
      let position = Int64(parts[1]), position >= 0
    else { return nil }
    return (ledger, position)
  }

  private func locationText(_ text: String) -> String? {
    location(text).map {
      PartitionEvents.text(ledger: $0.ledger, position: Int($0.position), ledgerNames)
    }
  }

  private func locationText(_ bytes: UnsafeRawBufferPointer) -> String? {
    locationText(String(decoding: bytes, as: UTF8.self))
  }
}
