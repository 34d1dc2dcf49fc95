// Reads standard input line by line, in large pieces.
private import Glibc

/// Why standard input could not be used.
package struct InputError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }

  /// What is wrong with a line of standard input.
  package init(line number: Int, _ cause: String) {
    self.init("standard input, line \(number): \(cause)")
  }
}

/// The lines of standard input. A line may be 16 MiB long at most.
package struct LineInput: ~Copyable {
  private var buffer: [UInt8] = []
  /// Where the next line begins.
  private var start = 0
  private var isAtEnd = false
  private static let lineBytesMax = 16 << 20
  private static let pieceBytes = 1 << 18

  package init() {}

  /// The next line without its end; nil after the last. `beforeWaiting` runs before each read: whoever answers
  /// line by line writes out there.
  package mutating func next(
    beforeWaiting: () throws -> Void = {}
  ) throws -> [UInt8]? {
    var searched = start
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0A) {
        defer { start = end + 1 }
        return Array(buffer[start..<end])
      }
      if isAtEnd {
        defer { start = buffer.count }
        return start < buffer.count ? Array(buffer[start...]) : nil
      }
      buffer.removeFirst(start)
      start = 0
      searched = buffer.count
      guard buffer.count <= Self.lineBytesMax else {
        throw InputError("read standard input: a line is longer than 16 MiB")
      }
      try beforeWaiting()
      try readPiece()
    }
  }

  private mutating func readPiece() throws(InputError) {
    let old = buffer.count
    buffer += [UInt8](repeating: 0, count: Self.pieceBytes)
    var count = 0
    repeat {
      count = buffer.withUnsafeMutableBytes {
        Glibc.read(0, $0.baseAddress.map { $0 + old }, Self.pieceBytes)
      }
    } while count < 0 && errno == EINTR
    guard count >= 0 else {
      throw InputError("read standard input: \(String(cString: strerror(errno)))")
    }
    buffer.removeLast(Self.pieceBytes - count)
    isAtEnd = count == 0
  }
}
