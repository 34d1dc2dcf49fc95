// Reads standard input or a file line by line, in large pieces.
private import Glibc

/// The lines of an input. A line may be 16 MiB long at most.
package struct LineInput: ~Copyable {
  private let descriptor: Int32
  private let name: String
  private var buffer: [UInt8] = []
  /// Where the next line begins.
  private var start = 0
  private var isAtEnd = false
  private static let lineBytesMax = 16 << 20
  private static let pieceBytes = 1 << 18

  /// Standard input.
  package init() { (descriptor, name) = (0, "standard input") }

  /// A file.
  package init(path: String) throws(ProgramError) {
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ProgramError("open", path, code: errno) }
    name = path
  }

  deinit {
    if descriptor > 2 { close(descriptor) }
  }

  /// The next line without its end; nil after the last. `beforeWaiting` runs before each read: a program that
  /// answers line by line writes out there.
  package mutating func next(
    beforeWaiting: () throws -> Void = {}
  ) throws -> [UInt8]? {
    var searched = start
    while true {
      if let end = lineFeed(from: searched) {
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
        throw ProgramError("read", name, "a line is longer than 16 MiB")
      }
      try beforeWaiting()
      try readPiece()
    }
  }

  private func lineFeed(from first: Int) -> Int? {
    buffer.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress,
        let found = memchr(base + first, 0x0A, bytes.count - first)
      else { return nil }
      return UnsafeRawPointer(found) - base
    }
  }

  private mutating func readPiece() throws(ProgramError) {
    let old = buffer.count
    buffer += [UInt8](repeating: 0, count: Self.pieceBytes)
    var count = 0
    repeat {
      count = buffer.withUnsafeMutableBytes {
        Glibc.read(descriptor, $0.baseAddress.map { $0 + old }, Self.pieceBytes)
      }
    } while count < 0 && errno == EINTR
    guard count >= 0 else { throw ProgramError("read", name, code: errno) }
    buffer.removeLast(Self.pieceBytes - count)
    isAtEnd = count == 0
  }
}
