// Buffered writes to a file descriptor.
import Glibc

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
