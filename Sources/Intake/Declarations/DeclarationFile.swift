// A declaration file as a whole: read, checked to its last line, and made into events or refused.
import Base
package import Ledger

/// One line that is wrong, or worth a word.
package struct DeclarationProblem: Equatable, Sendable, CustomStringConvertible {
  /// From 1; 0 where the file as a whole is meant.
  package let line: Int
  package let message: String

  package init(line: Int, _ message: String) {
    self.line = line
    self.message = message
  }

  package var description: String { line > 0 ? "line \(line): \(message)" : message }
}

/// Why a declaration was refused. Nothing of the file was appended.
package enum DeclarationError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file cannot be read.
  case input(IntakeError)
  /// Lines are wrong: the first hundred, and how many there are in all.
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
}

/// A declaration that is ready to be appended.
package struct Declaration: Sendable {
  /// Its events, in order: the same for the same file.
  package var drafts: [EventDraft]
  /// SHA-256 of the file, in hex.
  package var sourceSHA256Hex: String
  /// How many prices or rates it declares.
  package var entryCount: Int
  /// The one currency that a layout without a column for it means by 1; nil elsewhere.
  package var base: String?
  package var warnings: [DeclarationProblem]
  /// How many of the prices are 0, and the line of the first: a price list may say so, but seldom means it.
  package var zeroPrices: ZeroPrices?

  package struct ZeroPrices: Equatable, Sendable {
    package var count: Int
    package var firstLine: Int
  }

  /// The drafts from an index on, divided among appends: one, unless the file is very large.
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

/// Bounds of declarations.
enum DeclarationLimits {
  /// Of a file, which is read as a whole.
  static let fileBytes = 64 << 20
  /// What an event's data should stay under.
  static let eventDataBytes = 1 << 20
  /// What is appended together should stay under.
  static let appendBytes = 8 << 20
  /// How many wrong lines are listed.
  static let problemCount = 100
  /// Of any text in a cell that is stored unchanged.
  static let textCharacters = 255
}

/// The file's bytes, and its name and digest as the events cite them.
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
    do throws(IntakeError) { self = try Self.whole(path: path, stop: stop) } catch {
      throw .input(error)
    }
  }

  private static func whole(
    path: String, stop: StopFlag
  ) throws(IntakeError) -> DeclarationFile {
    let file = try FileSource(path: path, stop: stop)
    var bytes: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try file.read(into: buffer)
      if count == 0 { break }
      bytes.append(contentsOf: buffer[0..<count])
      if bytes.count > DeclarationLimits.fileBytes {
        throw IntakeError(
          .invalid, operation: "read", object: file.name, cause: "is larger than 64 MiB")
      }
    }
    if bytes.isEmpty {
      throw IntakeError(.unreadable, operation: "read", object: file.name, cause: "is empty")
    }
    let baseName = path.split(separator: "/").last.map(String.init) ?? path
    return DeclarationFile(source: path == "-" ? file.name : baseName, bytes: bytes)
  }
}

/// Collects wrong lines: the first of them as they are, then their number.
struct ProblemList {
  private(set) var problems: [DeclarationProblem] = []
  private(set) var count = 0

  mutating func add(line: Int, _ message: String) {
    count += 1
    if problems.count < DeclarationLimits.problemCount {
      problems.append(DeclarationProblem(line: line, message))
    }
  }

  /// The first of them, and in place of the others how many they are.
  var listed: [DeclarationProblem] {
    count > problems.count
      ? problems + [DeclarationProblem(line: 0, "\(count - problems.count) more like this")]
      : problems
  }

  /// Throws where something was added.
  func check(source: String) throws(DeclarationError) {
    if count > 0 { throw .lines(source: source, problems, count: count) }
  }
}

/// The columns of a file with a header, found by name in any order.
struct ColumnMap {
  private let places: [Int]
  private let cellCount: Int

  /// - Parameter names: the columns that there must be, and no others.
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
    places = names.compactMap { found.firstIndex(of: $0) }
    cellCount = found.count
  }

  /// The cells in the order of the names, without white space around them; nil, with a problem, where
  /// the number of cells differs from the header's.
  func cells(of record: CSVRecord, problems: inout ProblemList) -> [String]? {
    guard record.cells.count == cellCount else {
      problems.add(
        line: record.line, "\(record.cells.count) cells, but the header has \(cellCount)")
      return nil
    }
    return places.map { trimmed(record.cells[$0]) }
  }
}

/// The text without spaces and tabs around it.
func trimmed(_ text: String) -> String {
  var utf8 = text.utf8[...]
  while let first = utf8.first, first == 0x20 || first == 0x09 { utf8.removeFirst() }
  while let last = utf8.last, last == 0x20 || last == 0x09 { utf8.removeLast() }
  return String(utf8) ?? text
}

/// Divides entries into runs whose estimated sizes stay under that of an event.
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
