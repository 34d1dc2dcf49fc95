// Buffered reads from and writes to a file descriptor.
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

  /// Fills a buffer. Throws `cutShort` if the input ends before.
  package func read(into target: UnsafeMutableRawBufferPointer) throws(ExchangeError) {
    var rest = target
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
    let result: Result<Void, ExchangeError> = withUnsafeMutableBytes(of: &value) { target in
      do throws(ExchangeError) { return .success(try read(into: target)) } catch {
        return .failure(error)
      }
    }
    try result.get()
    return Integer(littleEndian: value)
  }

  /// Whether the input has ended. Waits for the writer of a pipe.
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
    into target: UnsafeMutableRawBufferPointer
  ) throws(ExchangeError) -> Int {
    while true {
      let count = Glibc.read(descriptor, target.baseAddress, target.count)
      if count >= 0 { return count }
      if errno != EINTR { throw .system(errno) }
    }
  }
}

// MARK: - Writes

/// Writes to an open file or pipe, which it does not close.
package final class DescriptorOutput {
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private static let capacityBytes = 256 << 10

  package init(_ descriptor: Int32) {
    self.descriptor = descriptor
    buffer.reserveCapacity(Self.capacityBytes)
  }

  package func write(_ bytes: UnsafeRawBufferPointer) throws(ExchangeError) {
    if buffer.count + bytes.count > Self.capacityBytes { try flush() }
    if bytes.count >= Self.capacityBytes { return try writeAll(bytes) }
    buffer.append(contentsOf: bytes)
  }

  package func write(_ bytes: [UInt8]) throws(ExchangeError) {
    let result: Result<Void, ExchangeError> = bytes.withUnsafeBytes { bytes in
      do throws(ExchangeError) { return .success(try write(bytes)) } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  package func write<Integer: FixedWidthInteger>(
    littleEndian value: Integer
  ) throws(ExchangeError) {
    if buffer.count + MemoryLayout<Integer>.size > Self.capacityBytes { try flush() }
    withUnsafeBytes(of: value.littleEndian) { buffer.append(contentsOf: $0) }
  }

  package func flush() throws(ExchangeError) {
    if buffer.isEmpty { return }
    let result: Result<Void, ExchangeError> = buffer.withUnsafeBytes { bytes in
      do throws(ExchangeError) { return .success(try writeAll(bytes)) } catch {
        return .failure(error)
      }
    }
    buffer.removeAll(keepingCapacity: true)
    try result.get()
  }

  private func writeAll(_ bytes: UnsafeRawBufferPointer) throws(ExchangeError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw .system(errno)
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }
}
