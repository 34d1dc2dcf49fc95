// Buffered reads from a file descriptor.
import Glibc

/// Reads an open file or pipe, which it does not close.
package final class DescriptorInput {
  private let descriptor: Int32
  private let buffer: UnsafeMutableRawBufferPointer
  private var start = 0
  private var end = 0
  private static let capacityBytes = 256 << 10

  package init(_ descriptor: Int32) {
    self.descriptor = descriptor
    buffer = .allocate(byteCount: Self.capacityBytes, alignment: 16)
  }

  deinit { buffer.deallocate() }

  /// Fills a place. Throws `cutShort` if the input ends before.
  package func read(into place: UnsafeMutableRawBufferPointer) throws(ExchangeError) {
    var rest = place
    while !rest.isEmpty {
      if start == end, rest.count >= Self.capacityBytes {
        let count = try readOnce(into: rest)
        if count == 0 { throw .cutShort }
        rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...])
        continue
      }
      if start == end, try !fill() { throw .cutShort }
      let count = min(end - start, rest.count)
      rest.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<start + count]))
      start += count
      rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...])
    }
  }

  package func integer<Integer: FixedWidthInteger>(
    _ type: Integer.Type
  ) throws(ExchangeError) -> Integer {
    var value: Integer = 0
    let result: Result<Void, ExchangeError> = withUnsafeMutableBytes(of: &value) { place in
      do throws(ExchangeError) { return .success(try read(into: place)) } catch {
        return .failure(error)
      }
    }
    try result.get()
    return Integer(littleEndian: value)
  }

  /// Whether nothing is left. Waits for the writer of a pipe.
  package func isAtEnd() throws(ExchangeError) -> Bool {
    if start < end { return false }
    return try !fill()
  }

  private func fill() throws(ExchangeError) -> Bool {
    start = 0
    end = try readOnce(into: buffer)
    return end > 0
  }

  private func readOnce(
    into place: UnsafeMutableRawBufferPointer
  ) throws(ExchangeError) -> Int {
    while true {
      let count = Glibc.read(descriptor, place.baseAddress, place.count)
      if count >= 0 { return count }
      if errno != EINTR { throw .system(errno) }
    }
  }
}
