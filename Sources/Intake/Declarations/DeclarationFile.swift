// A declaration file as a whole: read, checked to its last line, then either turned into events or rejected.
package import Base
package import Ledger

/// An error or a warning for one line.
package struct DeclarationProblem: Equatable, Sendable, CustomStringConvertible {
  /// From 1; 0 means the whole file.
  package let line: Int
  package let message: String

  package init(line: Int, _ message: String) {
    self.line = line
    self.message = message
  }

  package var description: String { line > 0 ? "line \(line): \(message)" : message }
}

/// Why a declaration was rejected. Nothing from the file was appended.
package enum DeclarationError: ReportableError, Equatable, Sendable, CustomStringConvertible {
  /// The file cannot be read.
  case input(Failure)
  /// Some lines are wrong: the first hundred of them, and the total number.
  case lines(source: String, [DeclarationProblem], count: Int)

  package var description: String {
    switch self {
    case .input(let error): return error.description
    case .lines(let source, let problems, let count):
      var lines = problems.map { "\(source): \($0)" }
      if count > problems.count {
        lines.append("\(source): \(count - problems.count) more bad lines")
      }
      return lines.joined(separator: "\n")
    }
  }

  package func lines(for command: String) -> [String] {
    switch self {
    case .input(let error): error.lines(for: command)
    case .lines: description.split(separator: "\n").map { "\(command): \($0)" }
    }
  }
}

/// A declaration that is ready to append.
package struct Declaration: Sendable {
  /// Its events, in order. The same file always gives the same events.
  package var drafts: [EventDraft]
  /// SHA-256 of the file, in hex.
  package var sourceSHA256Hex: String
  /// The number of prices or rates it declares.
  package var entryCount: Int
  /// The base currency of a layout that has no column for it; otherwise nil.
  package var base: String?
  package var warnings: [DeclarationProblem]
  /// The number of prices that are 0, and the line of the first. A price list may contain 0 but rarely
  /// intends it.
  package var zeroPrices: ZeroPrices?

  package struct ZeroPrices: Equatable, Sendable {
    package var count: Int
    package var firstLine: Int
  }

  /// The drafts from an index on, split into appends. There is only one unless the file is very large.
  package func appends(from index: Int) -> [[EventDraft]] {
    var appends: [[EventDraft]] = []
    var bytes = 0
    for draft in drafts[index...] {
      if appends.isEmpty || bytes + draft.data.count > DeclarationLimits.appendBytes {
        appends.append([])
        bytes = 0
      }
      appends[appends.count - 1].append(draft)
      bytes += draft.data.count
    }
    return appends
  }
}

/// Limits on declarations.
enum DeclarationLimits {
  /// The size of a file, which is read as a whole.
  static let fileBytes = 64 << 20
  /// The target for the size of an event's data.
  static let eventDataBytes = 1 << 20
  /// The target for the size of one append.
  static let appendBytes = 8 << 20
  /// The number of wrong lines listed.
  static let problemCount = 100
  /// The length of any cell whose text is stored unchanged.
  static let textCharacters = 255
}

/// The file's bytes, with the name and digest that the events cite.
struct DeclarationFile {
  var source: String
  var sha256Hex: String
  var bytes: [UInt8]

  init(source: String, bytes: [UInt8]) {
    self.source = source
    self.bytes = bytes
    sha256Hex = bytes.withUnsafeBytes { SHA256.hash($0) }.hex
  }

  /// Reads a file; `-` is standard input.
  init(path: String, stop: StopFlag) throws(DeclarationError) {
    do throws(Failure) { self = try Self.whole(path: path, stop: stop) } catch {
      throw .input(error)
    }
  }

  private static func whole(
    path: String, stop: StopFlag
  ) throws(Failure) -> DeclarationFile {
    let file = try FileSource(path: path, stop: stop)
    let bytes = try file.readAll(
      limit: DeclarationLimits.fileBytes, expecting: file.sizeBytes ?? 0, name: file.name)
    if bytes.isEmpty {
      throw Failure(operation: "read", object: file.name, cause: "is empty")
    }
    if let cause = InputKind.csv.objection(toFile: bytes) {
      throw Failure(operation: "read", object: file.name, cause: cause)
    }
    return DeclarationFile(source: Self.source(path, file), bytes: bytes)
  }

  /// The name that events cite: that of the file without its folders.
  static func source(_ path: String, _ file: FileSource) -> String {
    path == "-" ? file.name : path.split(separator: "/").last.map(String.init) ?? path
  }
}

/// Collects wrong lines: keeps the first ones, then only counts.
struct ProblemList {
  private(set) var problems: [DeclarationProblem] = []
  private(set) var count = 0

  mutating func add(line: Int, _ message: String) {
    count += 1
    if problems.count < DeclarationLimits.problemCount {
      problems.append(DeclarationProblem(line: line, message))
    }
  }

  /// The first problems and, if there are more, their number.
  var listed: [DeclarationProblem] {
    count > problems.count
      ? problems + [DeclarationProblem(line: 0, "\(count - problems.count) more like this")]
      : problems
  }

  /// Throws if any problem was added.
  func check(source: String) throws(DeclarationError) {
    if count > 0 { throw .lines(source: source, problems, count: count) }
  }
}

/// The columns of a file with a header, found by name in any order.
struct ColumnMap {
  private let columnIndexes: [Int]
  private let cellCount: Int

  /// - Parameter names: the required columns; no others are allowed.
  init?(_ header: CSVRecord, names: [String], problems: inout ProblemList) {
    let found = header.cells.map { trimmed($0).lowercased() }
    var isGood = true
    for (index, name) in found.enumerated() {
      let shown = PrintableText.shortened(name)
      if !names.contains(name) {
        problems.add(line: header.line, "column \"\(shown)\" is unknown")
        isGood = false
      } else if found[..<index].contains(name) {
        problems.add(line: header.line, "column \"\(shown)\" appears twice")
        isGood = false
      }
    }
    let missing = names.filter { !found.contains($0) }
    if !missing.isEmpty {
      problems.add(
        line: header.line, "the header has no \(missing.joined(separator: ", "))")
      isGood = false
    }
    guard isGood else { return nil }
    columnIndexes = names.compactMap { found.firstIndex(of: $0) }
    cellCount = found.count
  }

  /// The cells in the order of the names, without surrounding white space. Nil, with a problem, if the number
  /// of cells differs from the header's.
  func cells(of record: CSVRecord, problems: inout ProblemList) -> [String]? {
    guard record.cells.count == cellCount else {
      problems.add(
        line: record.line, "\(record.cells.count) cells, but the header has \(cellCount)")
      return nil
    }
    return columnIndexes.map { trimmed(record.cells[$0]) }
  }
}

/// The text without leading and trailing spaces and tabs.
func trimmed(_ text: String) -> String {
  var utf8 = text.utf8[...]
  while let first = utf8.first, first == 0x20 || first == 0x09 { utf8.removeFirst() }
  while let last = utf8.last, last == 0x20 || last == 0x09 { utf8.removeLast() }
  return String(utf8) ?? text
}

/// Splits entries into runs whose estimated size stays below the target size of an event.
func runs<Entry>(of entries: [Entry], sizeBytes: (Entry) -> Int) -> [ArraySlice<Entry>] {
  var runs: [ArraySlice<Entry>] = []
  var first = 0
  var bytes = 0
  for index in entries.indices {
    let size = sizeBytes(entries[index])
    if index > first, bytes + size > DeclarationLimits.eventDataBytes - 4096 {
      runs.append(entries[first..<index])
      first = index
      bytes = 0
    }
    bytes += size
  }
  if first < entries.count { runs.append(entries[first...]) }
  return runs
}
