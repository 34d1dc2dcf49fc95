// Event lines of a log, as a file of them holds them.
import Glibc
import Ledger
import ProgramSupport

/// Lines as `ledgerctl replay` prints them, and the drafts that give such lines again.
struct EventFile {
  /// Each with its line feed.
  let lines: [[UInt8]]

  /// - Parameter byteCountMax: whole lines up to so many bytes are read.
  init(path: String, byteCountMax: Int) throws {
    var input = try LineInput(path: path)
    var lines: [[UInt8]] = []
    var byteCount = 0
    while byteCount < byteCountMax, let line = try input.next() {
      lines.append(line + [0x0A])
      byteCount += line.count + 1
    }
    if lines.isEmpty { throw ProgramError("\(path): no events") }
    self.lines = lines
  }

  /// A draft that gives a line of the same size. Positions that it names stay as they are.
  static func draft(_ line: [UInt8]) throws -> EventDraft {
    let parts = try EventParts(line)
    return EventDraft(type: parts.type, version: 1, data: parts.data)
  }
}

/// The parts of an event line that a draft needs.
struct EventParts {
  let type: String
  var data: [UInt8]

  init(_ line: [UInt8]) throws {
    guard let type = line.value(after: #","type":""#, upTo: UInt8(ascii: "\"")),
      let start = line.index(after: #","data":"#, within: 512), line.count > start + 2
    else { throw ProgramError("a line is not an event") }
    self.type = String(decoding: type, as: UTF8.self)
    // The line ends with the event's brace and a line feed.
    data = Array(line[start..<line.count - 2])
  }
}

extension [UInt8] {
  /// Where the text ends that first occurs among the first bytes; nil where it does not.
  func index(after text: StaticString, within limit: Int) -> Int? {
    let count = text.utf8CodeUnitCount
    let end = Swift.min(self.count, limit) - count
    guard end >= 0 else { return nil }
    return withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return nil }
      for offset in 0...end where memcmp(base + offset, text.utf8Start, count) == 0 {
        return offset + count
      }
      return nil
    }
  }

  /// The bytes between a text and the next byte of that value.
  func value(after text: StaticString, upTo end: UInt8) -> ArraySlice<UInt8>? {
    guard let start = index(after: text, within: 2048),
      let stop = self[start...].firstIndex(of: end)
    else { return nil }
    return self[start..<stop]
  }
}
