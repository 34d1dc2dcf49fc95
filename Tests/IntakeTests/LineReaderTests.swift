// Lines from streams: wherever the pieces end, however long the lines are.
import Base
import Intake
import TestSupport
import Testing

@Suite struct LineReaderTests {
  enum Seen: Equatable {
    case line(Int, String)
    case tooLong(Int)
  }

  private func read(
    _ source: any ByteSource, lineBytesMax: Int = 1 << 20, chunkBytes: Int = 16
  ) throws -> [Seen] {
    let reader = LineReader(source, lineBytesMax: lineBytesMax, chunkBytes: chunkBytes)
    var seen: [Seen] = []
    while let line = try reader.next() {
      switch line {
      case .whole(let number, let bytes):
        seen.append(.line(number, String(decoding: bytes, as: UTF8.self)))
      case .tooLong(let number), .unreadable(let number, _): seen.append(.tooLong(number))
      }
    }
    return seen
  }

  @Test(
    arguments: [
      ("", []),
      ("a", [.line(1, "a")]),
      ("a\n", [.line(1, "a")]),
      ("a\r\nb\r\n", [.line(1, "a"), .line(2, "b")]),
      ("a\n\n\r\nb", [.line(1, "a"), .line(4, "b")]),
      ("a\rb\n", [.line(1, "a\rb")]),
      ("a\r\r\n", [.line(1, "a\r")]),
      ("\u{FEFF}a\n\u{FEFF}b", [.line(1, "a"), .line(2, "\u{FEFF}b")]),
      ("\u{FEFF}", []),
      (" \n", [.line(1, " ")]),
      ("a\0b\nc", [.line(1, "a\0b"), .line(2, "c")]),
      ("a\r", [.line(1, "a")]),
    ] as [(String, [Seen])])
  func lineEndsAreTaken(_ text: String, _ expected: [Seen]) throws {
    for piece in 1...5 {
      let seen = try read(MemorySource(Array(text.utf8), pieceBytes: { piece }))
      expectEqual(seen, expected, "pieces of \(piece)")
    }
  }

  @Test(
    arguments: [
      (["12345678", "a"], [.line(1, "12345678"), .line(2, "a")]),
      (["123456789", "a"], [.tooLong(1), .line(2, "a")]),
      (["1234567890123456789012345678901234567890", "a"], [.tooLong(1), .line(2, "a")]),
      (["a", "123456789"], [.line(1, "a"), .tooLong(2)]),
    ] as [([String], [Seen])])
  func longLinesArePassedOver(_ lines: [String], _ expected: [Seen]) throws {
    for end in ["\n", "\r\n"] {
      for piece in 1...20 {
        for hasLastEnd in [true, false] {
          let text = lines.joined(separator: end) + (hasLastEnd ? end : "")
          let source = MemorySource(Array(text.utf8), pieceBytes: { piece })
          let seen = try read(source, lineBytesMax: 8, chunkBytes: 4)
          expectEqual(seen, expected, "\(piece) bytes at once, \(end.debugDescription)")
        }
      }
    }
  }

  @Test(arguments: [3, 17, 92] as [UInt64])
  func anyPiecesGiveTheSameLines(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    for round in 0..<200 {
      let lines = (0..<Int.random(in: 1...20, using: &random)).map { _ in
        String(repeating: "x", count: Int.random(in: 1...90, using: &random))
      }
      let text = lines.joined(separator: "\n")
      var pieces = SeededRandom(seed: seed ^ UInt64(round))
      let source = MemorySource(
        Array(text.utf8), pieceBytes: { Int.random(in: 1...70, using: &pieces) })
      let expected = lines.enumerated().map { Seen.line($0 + 1, $1) }
      try expectEqual(read(source, chunkBytes: 16), expected, "seed \(seed), round \(round)")
    }
  }

  /// A stream of one letter, ended by a short line.
  private final class LongLine: ByteSource {
    private var restBytes: Int
    private var isEnded = false

    init(bytes: Int) { restBytes = bytes }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
      if restBytes > 0 {
        let count = min(restBytes, buffer.count)
        UnsafeMutableRawBufferPointer(rebasing: buffer[0..<count])
          .initializeMemory(as: UInt8.self, repeating: UInt8(ascii: "x"))
        restBytes -= count
        return count
      }
      if isEnded { return 0 }
      isEnded = true
      buffer.copyBytes(from: Array("\nend".utf8))
      return 4
    }
  }

  @Test func aLineOf100MBIsNotKept() throws {
    let reader = LineReader(LongLine(bytes: 100_000_000))
    guard case .tooLong(number: 1) = try reader.next() else {
      Issue.record("the long line was taken")
      return
    }
    guard case .whole(2, let bytes) = try reader.next() else {
      Issue.record("the line after it was lost")
      return
    }
    expectEqual(String(decoding: bytes, as: UTF8.self), "end")
    #expect(try reader.next() == nil)
    #expect(reader.bufferBytes <= LineReader.lineBytesMax + (1 << 10))
  }

  @Test func wholeLinesBeforeAFaultAreGiven() throws {
    let source = MemorySource(Array("a\nb\nhalf".utf8))
    source.fault = Failure(operation: "inflate", object: "x", cause: "cut")
    let reader = LineReader(source)
    for _ in 0..<2 { #expect(try reader.next() != nil) }
    #expect(throws: Failure.self) { try reader.next() }
  }
}
