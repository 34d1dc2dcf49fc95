// A report of Apple's that is ready to declare: checked, with its identity, and cut into events (settlement rule S5).
import Base
package import Ledger
package import Revenue

/// A file that was read and checked as a whole.
package struct CheckedSettlementFile {
  /// What `settlement import` was told besides the file.
  package struct Options {
    /// Two capital letters, `Z1` or `ZZ`: the region of a financial report.
    package var region: String?
    /// The month of an overview that does not name it in English.
    package var month: FiscalMonth?

    package init() {}
  }

  /// As given on the command line.
  package let path: String
  package let source: String
  package let sha256Hex: String
  package let kind: SettlementDeclared.Kind
  package let identity: SettlementIdentity
  /// Of an overview the rows of its lists.
  package let rowCount: Int
  package let findingCount: Int
  package let partCount: Int
  /// Where the lines of each part begin and end in the text, by section.
  private let parts: [[Section: Range<Int>]]
  private let text: [UInt8]

  private enum Section { case head, rows, totals }

  /// The data of an event stays below this.
  package static let partByteCountMax = 8 << 20
  /// What an event's data has besides lines, at most.
  private static let frameByteCount = 4096
  /// The longest name that is kept.
  private static let sourceCharacterCountMax = 255

  /// Reads and checks a file; `-` is standard input.
  package init(path: String, _ options: Options, stop: StopFlag) throws(DeclarationError) {
    try self.init(SettlementText.read(path: path, stop: stop), path: path, options)
  }

  /// - Parameter partByteCountMax: the size of an event's data.
  package init(
    _ read: SettlementText, path: String, _ options: Options,
    partByteCountMax: Int = Self.partByteCountMax
  ) throws(DeclarationError) {
    self.path = path
    source = String(read.name.prefix(Self.sourceCharacterCountMax))
    (sha256Hex, text) = (read.sha256Hex, read.text)
    let report = try read.report(symbols: StringInterner(TextArena()))
    kind = Self.kind(report)
    rowCount =
      report.kind == .overview ? report.lists.map(\.rows.count).reduce(0, +) : report.rows.count
    findingCount = report.exceptions.count
    guard let month = report.month ?? options.month else {
      throw DeclarationError(
        AppleReportError("the overview does not name its month in English; give --month"),
        source: path)
    }
    do throws(Failure) {
      identity = SettlementIdentity(
        month: month.name,
        region: try ReportRegion.region(
          option: options.region, fileName: read.name, report: report))
    } catch { throw .input(error) }
    do throws(AppleReportError) {
      parts = try Self.parts(text, report, partByteCountMax - Self.frameByteCount)
    } catch { throw DeclarationError(error, source: path) }
    partCount = parts.count
  }

  private static func kind(_ report: AppleReport) -> SettlementDeclared.Kind {
    switch report.kind {
    case .detailed: .detailed
    case .financial: .financial
    case .overview: .overview
    }
  }

  /// The draft of a part.
  /// - Parameter number: from 1 to `partCount`.
  package func draft(part number: Int) -> EventDraft {
    var content = SettlementDeclared.Lines()
    content.head = lines(parts[number - 1][.head])
    content.rows = lines(parts[number - 1][.rows])
    content.totals = lines(parts[number - 1][.totals])
    let event = SettlementDeclared(
      source: source, sourceSHA256Hex: sha256Hex, kind: kind, month: identity.month,
      region: identity.region, part: number, partCount: partCount, lines: content)
    return EventDraft(.settlementDeclared, event.data)
  }

  /// Lines of the text, each with its end. In an overview a blank line ends a list; elsewhere it is skipped.
  private func lines(_ range: Range<Int>?) -> [UInt8] {
    guard let range else { return [] }
    return text.withUnsafeBytes { text in
      var kept: [UInt8] = []
      kept.reserveCapacity(range.count + 1)
      var start = range.lowerBound
      while start < range.upperBound {
        let end = text[start..<range.upperBound].firstIndex(of: 0x0A) ?? range.upperBound
        let line = UnsafeRawBufferPointer(rebasing: text[start..<end])
        if kind == .overview || !line.allSatisfy(Self.isBlank) {
          kept.append(contentsOf: line)
          kept.append(0x0A)
        }
        start = end + 1
      }
      return kept
    }
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  // MARK: Parts

  /// Assigns each line to a part, so that no event is too large.
  private static func parts(
    _ text: [UInt8], _ report: AppleReport, _ byteCountMax: Int
  ) throws(AppleReportError) -> [[Section: Range<Int>]] {
    var parts: [[Section: Range<Int>]] = [[:]]
    var (start, number, byteCount) = (0, 0, 0)
    while start < text.count {
      let (end, size) = Self.line(text, from: start)
      guard size <= byteCountMax else {
        throw AppleReportError(line: number + 1, "is too long to be kept: \(size) bytes")
      }
      if byteCount + size > byteCountMax {
        parts.append([:])
        byteCount = 0
      }
      byteCount += size
      let section: Section =
        number < report.rowLines.lowerBound
        ? .head : number < report.rowLines.upperBound ? .rows : .totals
      let known = parts[parts.count - 1][section]
      parts[parts.count - 1][section] = (known?.lowerBound ?? start)..<end
      (start, number) = (end, number + 1)
    }
    return parts
  }

  /// Where a line ends, with its LF, and how long it can become in JSON, with quotes and a comma.
  private static func line(_ text: [UInt8], from start: Int) -> (end: Int, byteCount: Int) {
    text.withUnsafeBytes { text in
      var (end, byteCount) = (start, 3)
      while end < text.count {
        let byte = text[end]
        end += 1
        if byte == 0x0A { break }
        byteCount += escapedByteCount(byte)
      }
      return (end, byteCount)
    }
  }

  /// How long a byte can become in JSON.
  private static func escapedByteCount(_ byte: UInt8) -> Int {
    switch byte {
    case 0x09, 0x22, 0x5C: 2
    case ..<0x20, 0x7F: 6
    default: 1
    }
  }
}
