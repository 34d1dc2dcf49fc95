// Records of the payment overview: CSV as in RFC 4180, where text behind a closing quote belongs to its cell.
import Base

/// One record: a line, or more where a quoted cell holds line ends.
struct OverviewRecord {
  /// The line on which it begins, from 1.
  let line: Int
  /// Without the white space around them.
  let cells: [String]

  var isEmpty: Bool { cells.allSatisfy(\.isEmpty) }

  /// A cell; empty where the record ends before it.
  subscript(column: Int) -> String { column < cells.count ? cells[column] : "" }
}

/// Reads one record after another from text whose lines end with LF.
struct OverviewRecords {
  private let text: Text
  private var offset = 0
  private var line = 1
  // Limits against hostile files: overviews have twelve or thirteen short cells.
  private static let cellCountMax = 1000
  private static let cellByteCountMax = 1 << 16

  init(_ text: Text) { self.text = text }

  /// The number of lines that were read.
  var lineCount: Int { line - 1 }

  /// The next record; nil at the end.
  mutating func next() throws(AppleReportError) -> OverviewRecord? {
    guard offset < text.count else { return nil }
    let first = line
    var cells: [String] = []
    while true {
      guard cells.count < Self.cellCountMax else {
        throw AppleReportError(line: first, "the line has more than \(Self.cellCountMax) cells")
      }
      cells.append(try readCell(first))
      let isLast = offset >= text.count || text[offset] == 0x0A
      offset += 1
      if isLast { break }
    }
    line += 1
    return OverviewRecord(line: first, cells: cells)
  }

  /// Reads up to the comma or the line's end behind the cell.
  private mutating func readCell(_ first: Int) throws(AppleReportError) -> String {
    var content: [UInt8] = []
    if offset < text.count, text[offset] == UInt8(ascii: "\"") {
      offset += 1
      content = try readQuoted(first)
    }
    while offset < text.count, text[offset] != UInt8(ascii: ","), text[offset] != 0x0A {
      try append(text[offset], to: &content)
      offset += 1
    }
    return withText(content) { String(decoding: ReportValue.trimmed($0), as: UTF8.self) }
  }

  /// Reads up to the closing quote.
  private mutating func readQuoted(_ first: Int) throws(AppleReportError) -> [UInt8] {
    var content: [UInt8] = []
    while offset < text.count {
      let byte = text[offset]
      offset += 1
      if byte == UInt8(ascii: "\"") {
        guard offset < text.count, text[offset] == byte else { return content }
        offset += 1
      }
      if byte == 0x0A { line += 1 }
      try append(byte, to: &content)
    }
    throw AppleReportError(line: first, "a quoted cell is not closed")
  }

  private func append(_ byte: UInt8, to content: inout [UInt8]) throws(AppleReportError) {
    guard content.count < Self.cellByteCountMax else {
      throw AppleReportError(
        line: line, "a cell is longer than \(Self.cellByteCountMax >> 10) KiB")
    }
    content.append(byte)
  }
}
