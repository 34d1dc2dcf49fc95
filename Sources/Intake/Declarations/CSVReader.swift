// A reader of comma-separated values as in RFC 4180: quoted cells, LF or CR LF, optional byte order mark.

/// One record of a CSV file.
package struct CSVRecord: Equatable {
  /// The line on which it begins, from 1. A quoted cell may contain line ends.
  package var line: Int
  package var cells: [String]
}

/// Why a record cannot be read.
package struct CSVError: Error, Equatable, CustomStringConvertible {
  package enum Cause: String, Sendable {
    case unclosedQuote = "a quoted cell is not closed"
    case strayQuote = "a quote inside a cell that does not begin with one"
    case textAfterQuote = "text between a closing quote and the next comma"
    case strayCarriageReturn = "a CR without an LF"
    case notUTF8 = "invalid UTF-8"
    case controlCharacter = "a control character"
  }

  package var line: Int
  package var cause: Cause

  package var description: String { cause.rawValue }
}

/// Reads one record after another. After an error it continues with the next line.
package struct CSVReader {
  private let bytes: [UInt8]
  private var offset = 0
  private var line = 1

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { offset = 3 }
  }

  /// The next record that is not empty; nil at the end.
  package mutating func next() throws(CSVError) -> CSVRecord? {
    while offset < bytes.count {
      let first = line
      let cells: [String]
      do throws(CSVError) { cells = try readRecord() } catch {
        skipLine()
        throw error
      }
      if cells != [""] { return CSVRecord(line: first, cells: cells) }
    }
    return nil
  }

  private mutating func readRecord() throws(CSVError) -> [String] {
    let first = line
    var cells: [String] = []
    while true {
      let content =
        offset < bytes.count && bytes[offset] == UInt8(ascii: "\"")
        ? try readQuoted() : try readPlain()
      guard let cell = String(validating: content, as: UTF8.self) else {
        throw CSVError(line: first, cause: .notUTF8)
      }
      cells.append(cell)
      if offset < bytes.count, bytes[offset] == UInt8(ascii: ",") {
        offset += 1
        continue
      }
      try endLine()
      return cells
    }
  }

  /// Reads an unquoted cell, up to a comma or the end of the line.
  private mutating func readPlain() throws(CSVError) -> [UInt8] {
    let first = offset
    while offset < bytes.count {
      switch bytes[offset] {
      case UInt8(ascii: ","), 0x0A, 0x0D: return Array(bytes[first..<offset])
      case UInt8(ascii: "\""): throw CSVError(line: line, cause: .strayQuote)
      case 0x09, 0x20...: offset += 1
      default: throw CSVError(line: line, cause: .controlCharacter)
      }
    }
    return Array(bytes[first..<offset])
  }

  private mutating func readQuoted() throws(CSVError) -> [UInt8] {
    let first = line
    var content: [UInt8] = []
    offset += 1
    while offset < bytes.count {
      let byte = bytes[offset]
      offset += 1
      if byte == 0x0A { line += 1 }
      if byte != UInt8(ascii: "\"") {
        if byte == 0 { throw CSVError(line: line, cause: .controlCharacter) }
        content.append(byte)
      } else if offset < bytes.count, bytes[offset] == byte {
        content.append(byte)
        offset += 1
      } else {
        let isEnd = offset == bytes.count || [0x2C, 0x0A, 0x0D].contains(bytes[offset])
        if isEnd { return content }
        throw CSVError(line: line, cause: .textAfterQuote)
      }
    }
    throw CSVError(line: first, cause: .unclosedQuote)
  }

  private mutating func endLine() throws(CSVError) {
    guard offset < bytes.count else { return }
    if bytes[offset] == 0x0D {
      guard offset + 1 < bytes.count, bytes[offset + 1] == 0x0A else {
        // A lone CR at the very end is harmless.
        if offset + 1 == bytes.count {
          offset += 1
          return
        }
        throw CSVError(line: line, cause: .strayCarriageReturn)
      }
      offset += 1
    }
    offset += 1
    line += 1
  }

  private mutating func skipLine() {
    while offset < bytes.count, bytes[offset] != 0x0A { offset += 1 }
    if offset < bytes.count {
      offset += 1
      line += 1
    }
  }
}
