// The streams between ledger-rules and Spark: what is written is read; truncated or wrong input is refused.
import Foundation
import LedgerRules
import TestSupport
import Testing

/// What a stream of tables holds, read as Spark does.
struct ReadTables {
  private(set) var rows: [Int: [[String]]] = [:]
  private(set) var end = ""

  init(_ file: UnnamedFile) throws { try self.init(file, Self.rows) }

  /// For tables without quotes.
  init(plain file: UnnamedFile) throws {
    try self.init(file) { bytes in
      bytes.split(separator: 0x0A).map { row in
        row.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
          .map { String(decoding: $0, as: UTF8.self) }
      }
    }
  }

  private init(_ file: UnnamedFile, _ parse: ([UInt8]) -> [[String]]) throws {
    var rest = file.bytes()[...]
    while end.isEmpty {
      let head = rest.prefix { $0 != 0x0A }
      let words = String(decoding: head, as: UTF8.self).split(separator: " ")
      try #require(words.count == 2)
      rest = rest.dropFirst(head.count + 1)
      let content = rest.prefix(try #require(Int(words[1])))
      rest = rest.dropFirst(content.count)
      if words[0] == "end" {
        end = String(decoding: content, as: UTF8.self)
      } else {
        rows[try #require(Int(words[0])), default: []] += parse(Array(content))
      }
    }
    try #require(rest.isEmpty)
  }

  private static func rows(_ bytes: [UInt8]) -> [[String]] {
    var rows: [[String]] = []
    var row: [String] = []
    var cell: [UInt8] = []
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\"") where cell.isEmpty:
        index += 1
        while bytes[index] != UInt8(ascii: "\"") || bytes[index + 1] == UInt8(ascii: "\"") {
          if bytes[index] == UInt8(ascii: "\"") { index += 1 }
          cell.append(bytes[index])
          index += 1
        }
      case UInt8(ascii: "\t"), 0x0A:
        row.append(String(decoding: cell, as: UTF8.self))
        cell = []
        if bytes[index] == 0x0A {
          rows.append(row)
          row = []
        }
      case let byte: cell.append(byte)
      }
      index += 1
    }
    return rows
  }
}

/// Lines in a file without a name.
func lines(_ bytes: [UInt8]) throws -> UnnamedFile {
  let file = try UnnamedFile()
  let output = DescriptorOutput(file.descriptor)
  try output.write(bytes)
  try output.flush()
  file.rewind()
  return file
}

@Suite struct StreamTests {
  @Test func aSmallStreamHasExactlyThisText() throws {
    let file = try UnnamedFile()
    let writer = RowOutput(DescriptorOutput(file.descriptor))
    let table = writer.table(7)
    table.append(-2)
    table.append("ab".utf8)
    Array("c\"\t".utf8).withUnsafeBytes { table.append(quoted: $0) }
    try table.endRow()
    table.append(3)
    table.append("".utf8)
    Array("".utf8).withUnsafeBytes { table.append(quoted: $0) }
    try table.endRow()
    try writer.finish(Array("{}".utf8))
    expectEqual(file.text(), "7 19\n-2\tab\t\"c\"\"\t\"\n3\t\t\"\"\nend 2\n{}")
    let read = try ReadTables(file)
    expectEqual(read.rows[7], [["-2", "ab", "c\"\t"], ["3", "", ""]])
  }

  @Test func largeTablesAreWrittenInPieces() throws {
    let file = try UnnamedFile()
    let writer = RowOutput(DescriptorOutput(file.descriptor))
    let (one, other) = (writer.table(0), writer.table(1))
    let text = [UInt8](repeating: 0x78, count: 1_000)
    for number in 0..<10_000 {
      one.append(Int64(number))
      one.append(text)
      try one.endRow()
      other.append(Int64(number))
      try other.endRow()
    }
    try writer.finish(Array("{}".utf8))
    let read = try ReadTables(file)
    #expect(read.rows[0]?.map { $0[0] } == (0..<10_000).map(String.init))
    #expect(read.rows[1]?.count == 10_000)
  }

  @Test func linesOfAnyLengthAreRead() throws {
    let long = [UInt8](repeating: 0x78, count: 3 << 20)
    let texts = [[], Array("a\tb".utf8), long, Array("\"".utf8), long + [0x79], Array("end ".utf8)]
    let file = try lines(texts.flatMap { $0 + [0x0A] } + Array("end\n".utf8))
    let input = LineInput(file.descriptor)
    for text in texts { #expect(try input.next()?.elementsEqual(text) == true) }
    for _ in 0..<2 { #expect(try input.next() == nil) }
  }

  @Test(arguments: ["", "a", "a\n", "a\nen", "a\nend"])
  func everyCutIsNoticed(_ text: String) throws {
    let file = try lines(Array(text.utf8))
    let input = LineInput(file.descriptor)
    #expect(throws: StreamError.cutShort) { while try input.next() != nil {} }
  }

  @Test func aLineWithoutAnEndIsRefused() throws {
    let file = try lines([UInt8](repeating: 0x78, count: 65 << 20))
    let input = LineInput(file.descriptor)
    #expect(throws: StreamError.invalid("a line has more than 67108864 bytes")) {
      try input.next()
    }
  }

  @Test func aReaderThatDisappearedIsAnError() throws {
    signal(SIGPIPE, SIG_IGN)
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    close(ends[0])
    defer { close(ends[1]) }
    let output = DescriptorOutput(ends[1])
    try output.write([1])
    #expect(throws: StreamError.system(EPIPE)) { try output.flush() }
  }
}
