// Reports asked for in a line of words, as a user would ask the program.
package import Projections

/// A report, and the columns that a test compares.
package struct ReportWords: Sendable {
  package let request: ReportRequest
  /// Nil compares all.
  package let columns: [String]?
  /// Rows that begin with this cell are skipped.
  private let passedOver: String?

  /// `sales sale_key,kind --environment all`: the report; its columns, unless options follow at once; options.
  /// `--without WORD` skips rows that begin with it.
  package init(_ line: String) throws {
    var words = line.split(separator: " ").map(String.init)[...]
    guard let name = words.popFirst(), let kind = ReportKind(rawValue: name) else {
      throw ReportWordsError(line: line)
    }
    if let first = words.first, !first.hasPrefix("--") {
      columns = first.split(separator: ",").map(String.init)
      words.removeFirst()
    } else {
      columns = nil
    }
    var request = ReportRequest(kind)
    var passedOver: String?
    while let option = words.popFirst() {
      if option == "--include-pending" {
        request.includesPending = true
        continue
      }
      if option == "--check" {
        request.isCheck = true
        continue
      }
      if option == "--without" {
        passedOver = words.popFirst()
        continue
      }
      guard let value = words.popFirst(), try Self.set(option, value, &request) else {
        throw ReportWordsError(line: line)
      }
    }
    self.request = request
    self.passedOver = passedOver
  }

  private static func set(
    _ option: String, _ value: String, _ request: inout ReportRequest
  ) throws -> Bool {
    switch option {
    case "--at": request.momentMs = ms(value)
    case "--version": request.version = Int(value) ?? 0
    default:
      guard let option = ReportOption.allCases.first(where: { "--\($0.name)" == option }),
        let value = option.value(of: value, for: request.kind)
      else { return false }
      try request.set(option, to: value)
    }
    return true
  }

  /// The lines of a CSV without its header, cut to the compared columns; cells stay as written.
  package func rows(of csv: String) -> [String] {
    var lines = CSVText.cells(csv)
    guard !lines.isEmpty else { return [] }
    let header = lines.removeFirst()
    let places = (columns ?? header).map { header.firstIndex(of: $0) }
    return lines.filter { $0.first != passedOver }.map { line in
      places.map { place in place.map { line[$0] } ?? "no such column" }.joined(separator: ",")
    }
  }
}

/// Words that do not name a report.
package struct ReportWordsError: Error { package let line: String }

/// Parses CSV of RFC 4180 with LF.
package enum CSVText {
  /// The cells of each line, with their quotes.
  package static func cells(_ csv: String) -> [[String]] {
    var lines: [[String]] = []
    var line: [String] = []
    var cell: [UInt8] = []
    var isQuoted = false
    for byte in csv.utf8 {
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      if isQuoted || (byte != UInt8(ascii: ",") && byte != UInt8(ascii: "\n")) {
        cell.append(byte)
        continue
      }
      line.append(String(decoding: cell, as: UTF8.self))
      cell.removeAll()
      if byte == UInt8(ascii: "\n") {
        lines.append(line)
        line.removeAll()
      }
    }
    return lines
  }
}
