// Some of a report's columns, in an order that the reader chose.

/// Passes the selected columns on, row by row. Their cells wait for the end of their row, because their order may differ.
final class ColumnSelection: ReportWriter {
  /// A cell that outlives the call that wrote it; texts are ranges of `bytes`.
  private enum Kept {
    case cell(ReportCell)
    case text(Range<Int>)
    case list([Range<Int>])
  }

  private let names: [String]
  private let writer: any ReportWriter
  /// The selected place of each column of the report; nil if it is not shown.
  private var places: [Int?] = []
  private var place = 0
  private var cells: [Kept] = []
  private var bytes: [UInt8] = []

  /// - Parameter names: the columns shown, in this order; the report has all of them.
  init(_ names: [String], to writer: any ReportWriter) {
    self.names = names
    self.writer = writer
  }

  func begin(_ columns: [ReportColumn]) throws {
    places = columns.map { column in names.firstIndex(of: column.name) }
    cells = Array(repeating: .cell(.empty), count: names.count)
    try writer.begin(
      names.map { name throws(ProjectionError) in
        guard let column = columns.first(where: { $0.name == name }) else {
          throw .usage("the report has no column '\(name)'")
        }
        return column
      })
  }

  func write(_ cell: ReportCell) {
    defer { place += 1 }
    guard let selected = places[place] else { return }
    cells[selected] =
      switch cell {
      case .text(let text): .text(keep(text))
      case .list(let texts): .list(texts.map { keep($0) })
      default: .cell(cell)
      }
  }

  private func keep(_ text: UnsafeRawBufferPointer) -> Range<Int> {
    let start = bytes.count
    bytes.append(contentsOf: text)
    return start..<bytes.count
  }

  func endRow() throws {
    try bytes.withUnsafeBytes { bytes in
      for cell in cells {
        switch cell {
        case .cell(let cell): try writer.write(cell)
        case .text(let range): try writer.write(.text(.init(rebasing: bytes[range])))
        case .list(let ranges):
          try writer.write(.list(ranges.map { .init(rebasing: bytes[$0]) }))
        }
      }
    }
    try writer.endRow()
    bytes.removeAll(keepingCapacity: true)
    place = 0
  }

  func end(_ summary: ReportSummary) throws { try writer.end(summary) }
}
