// Reads untrusted lines from a file descriptor.
import Glibc

/// Reads the lines of an open file or pipe, which it does not close. The last line is `end`: without it, whoever wrote
/// them failed.
package final class LineInput {
  private static let lineFeed: Int32 = 0x0A
  private static let lineByteCountMax = 64 << 20

  private let descriptor: Int32
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
  /// What was read and not passed on.
  private var pending = 0..<0
  private var isAtEnd = false

  package init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { buffer.deallocate() }

  /// The next line without its line feed, valid until the next call; nil after the last. Throws `cutShort` if the input
  /// ends without `end`.
  package func next() throws(StreamError) -> UnsafeRawBufferPointer? {
    if isAtEnd { return nil }
    var searched = 0
    while true {
      if let line = takeLine(from: searched) {
        isAtEnd = line.elementsEqual("end".utf8)
        return isAtEnd ? nil : line
      }
      searched = pending.count
      try fill()
    }
  }

  private func takeLine(from searched: Int) -> UnsafeRawBufferPointer? {
    guard searched < pending.count, let base = buffer.baseAddress,
      let found = memchr(
        base + pending.lowerBound + searched, Self.lineFeed, pending.count - searched)
    else { return nil }
    let end = UnsafeRawPointer(found) - UnsafeRawPointer(base)
    let line = UnsafeRawBufferPointer(rebasing: buffer[pending.lowerBound..<end])
    pending = end + 1..<pending.upperBound
    return line
  }

  private func fill() throws(StreamError) {
    if pending.count >= Self.lineByteCountMax {
      throw .invalid("a line has more than \(Self.lineByteCountMax) bytes")
    }
    let target = pending.count * 2 > buffer.count ? grown() : buffer
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[pending]))
    if target.baseAddress != buffer.baseAddress {
      buffer.deallocate()
      buffer = target
    }
    pending = 0..<pending.count
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[pending.upperBound...])
    var count = read(descriptor, rest.baseAddress, rest.count)
    while count < 0 && errno == EINTR { count = read(descriptor, rest.baseAddress, rest.count) }
    if count < 0 { throw .system(errno) }
    if count == 0 { throw .cutShort }
    pending = 0..<pending.count + count
  }

  private func grown() -> UnsafeMutableRawBufferPointer {
    .allocate(byteCount: 2 * buffer.count, alignment: 16)
  }
}

/// Why a stream could not be written or read.
package enum StreamError: Error, Equatable, Sendable {
  case system(Int32)
  /// The stream has no end.
  case cutShort
  /// The stream breaks a rule of the format.
  case invalid(String)
}
