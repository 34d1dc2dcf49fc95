// Lines and cells of reports whose columns tabs separate, and the header that tells their kind (settlement rule S2).
import Base
import Glibc

/// The lines of a text, one after another.
struct ReportLines {
  private let text: Text
  private var offset = 0
  /// The number of the line that was read last, from 1.
  private(set) var number = 0

  init(_ text: Text) { self.text = text }

  /// The next line without its end; nil after the last one.
  @inline(__always)
  mutating func next() -> Text? {
    guard offset < text.count, let start = text.baseAddress.map({ $0 + offset }) else { return nil }
    let rest = text.count &- offset
    let count = memchr(start, 0x0A, rest).map { UnsafeRawPointer($0) - start } ?? rest
    offset = offset &+ count &+ 1
    number &+= 1
    return Text(start: start, count: count)
  }

  /// The next line that has a cell; the others are skipped.
  @inline(__always)
  mutating func nextFilled() -> Text? {
    while let line = next() {
      if line.contains(where: { !ReportValue.isSpace($0) }) { return line }
    }
    return nil
  }
}

/// The cells of a line between tabs, one after another: a line may have millions.
struct CellSequence: Sequence, IteratorProtocol {
  private let line: Text
  private var offset = 0

  init(_ line: Text) { self.line = line }

  /// The next cell without the white space around it.
  mutating func next() -> Text? {
    guard offset <= line.count else { return nil }
    let end = line[offset...].firstIndex(of: 0x09) ?? line.count
    defer { offset = end + 1 }
    return ReportValue.trimmed(Text(rebasing: line[offset..<end]))
  }
}

/// The cells of a line between tabs, as many as its table has columns.
struct TabCells {
  private var line = Text(start: nil, count: 0)
  /// Where the cells end, as far as the line has them.
  private var ends: [Int32]
  private var count = 0

  init(columnCount: Int) { ends = Array(repeating: 0, count: max(columnCount, 1)) }

  /// Splits a line.
  /// - Returns: whether nothing but white space stands beyond the last column.
  @inline(__always)
  mutating func split(_ line: Text) -> Bool {
    self.line = line
    count = 0
    var isWithin = true
    ends.withUnsafeMutableBufferPointer { ends in
      var index = 0
      while index < line.count {
        if line[index] == 0x09 {
          ends[count] = Int32(truncatingIfNeeded: index)
          count &+= 1
          if count == ends.count { break }
        }
        index &+= 1
      }
      if count < ends.count {
        ends[count] = Int32(truncatingIfNeeded: line.count)
        count &+= 1
      } else {
        while index < line.count, ReportValue.isSpace(line[index]) { index &+= 1 }
        isWithin = index >= line.count
      }
    }
    return isWithin
  }

  /// A cell without the white space around it; empty where the line ends before it.
  @inline(__always)
  subscript(column: Int) -> Text {
    guard column < count else { return Text(start: nil, count: 0) }
    let start = column == 0 ? 0 : Int(ends[column &- 1]) &+ 1
    return ReportValue.trimmed(Text(rebasing: line[start..<Int(ends[column])]))
  }
}

// MARK: - Headers

/// The names of a header's columns, compared without regard to case.
struct ColumnNames {
  private(set) var names: [String]
  /// A limit against hostile files: Apple's reports have about twenty.
  private static let countMax = 1000

  /// Reads the cells of a header; empty ones at its end are none.
  init(_ cells: some Sequence<Text>, line: Int) throws(AppleReportError) {
    names = []
    for cell in cells {
      guard names.count < Self.countMax else {
        throw AppleReportError(line: line, "the header has more than \(Self.countMax) columns")
      }
      names.append(Self.lowered(cell))
    }
    while names.last?.isEmpty == true { names.removeLast() }
    var met: Set<String> = []
    for name in names where !name.isEmpty && !met.insert(name).inserted {
      throw AppleReportError(
        line: line, "the column \"\(PrintableText.shortened(name))\" stands twice")
    }
  }

  /// The index of a column by one of its names.
  func index(_ anyOf: String...) -> Int? {
    for name in anyOf {
      if let index = names.firstIndex(of: name.lowercased()) { return index }
    }
    return nil
  }

  /// ASCII letters as small ones; other bytes as they are.
  static func lowered(_ text: Text) -> String {
    String(decoding: text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}

/// Where the rows of a detailed or financial report begin, and what stands before them.
struct TabHeader {
  let kind: AppleReport.Kind
  /// The header itself.
  let cells: Text
  /// Its number, from 1.
  let line: Int
  /// The lines before it.
  let before: [(cells: Text, line: Int)]

  /// How many lines, without empty ones, may hold the header.
  static let lineCountMax = 20

  /// The header of a report by tabs; nil if the text is none.
  static func find(in text: Text) -> TabHeader? {
    var lines = ReportLines(text)
    var before: [(cells: Text, line: Int)] = []
    while before.count < lineCountMax, let line = lines.nextFilled() {
      if has(line, ["transaction date", "settlement date"]) {
        return TabHeader(kind: .detailed, cells: line, line: lines.number, before: before)
      }
      before.append((line, lines.number))
    }
    guard let first = before.first,
      has(first.cells, ["start date", "end date", "extended partner share"])
    else { return nil }
    return TabHeader(kind: .financial, cells: first.cells, line: first.line, before: [])
  }

  /// Whether all names are among the cells.
  private static func has(_ line: Text, _ names: [String]) -> Bool {
    var missing = names
    for cell in CellSequence(line) where !missing.isEmpty {
      guard missing.contains(where: { $0.utf8.count == cell.count }) else { continue }
      let name = ColumnNames.lowered(cell)
      missing.removeAll { $0 == name }
    }
    return missing.isEmpty
  }

  func columns() throws(AppleReportError) -> ColumnNames {
    try ColumnNames(CellSequence(cells), line: line)
  }
}
