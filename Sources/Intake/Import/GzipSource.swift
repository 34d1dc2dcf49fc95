// Reads gzip files as a stream of their content, one member after another.
import CZlib

/// Decompresses a source. Zeros after the last member are padding; any other byte there is an error.
package final class GzipSource: ByteSource {
  private static let inputBytes = 256 << 10

  private let source: any ByteSource
  private let name: String
  private let stream: UnsafeMutablePointer<z_stream>
  private let input: UnsafeMutableRawBufferPointer
  private var isBetweenMembers = true
  private var isInPadding = false
  private var isAtEnd = false
  private var fault: IntakeError?

  package init(_ source: any ByteSource, name: String) throws(IntakeError) {
    self.source = source
    self.name = name
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    input = .allocate(byteCount: Self.inputBytes, alignment: 16)
    guard czlib_inflate_init_gzip(stream) == Z_OK else {
      throw IntakeError(.unreadable, operation: "inflate", object: name, cause: "out of memory")
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    input.deallocate()
  }

  package func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(IntakeError) -> Int {
    if let fault { throw fault }
    let capacity = min(buffer.count, Int(UInt32.max))
    guard let target = buffer.baseAddress, capacity > 0 else { return 0 }
    stream.pointee.next_out = target.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(capacity)
    do throws(IntakeError) {
      while !isAtEnd, Int(stream.pointee.avail_out) == capacity { try step() }
    } catch {
      fault = error
    }
    let count = capacity - Int(stream.pointee.avail_out)
    if count == 0, let fault { throw fault }
    return count
  }

  /// Does one step towards the next byte of content.
  private func step() throws(IntakeError) {
    if stream.pointee.avail_in == 0, try refill() == 0 {
      guard isBetweenMembers else { throw damage("the gzip data is truncated") }
      isAtEnd = true
      return
    }
    if isBetweenMembers { return try beginMember() }
    switch inflate(stream, Z_NO_FLUSH) {
    case Z_OK, Z_BUF_ERROR: break
    case Z_STREAM_END: isBetweenMembers = true
    case Z_MEM_ERROR:
      throw IntakeError(.unreadable, operation: "inflate", object: name, cause: "out of memory")
    default: throw damage("the gzip data is damaged")
    }
  }

  private func refill() throws(IntakeError) -> Int {
    let count = try source.read(into: input)
    stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_in = UInt32(count)
    return count
  }

  private func beginMember() throws(IntakeError) {
    guard let next = stream.pointee.next_in else { return }
    if next.pointee == 0 {
      isInPadding = true
      stream.pointee.next_in = next + 1
      stream.pointee.avail_in -= 1
      return
    }
    guard !isInPadding, next.pointee == 0x1F, inflateReset(stream) == Z_OK else {
      throw damage("bytes after the gzip data are not gzip data")
    }
    isBetweenMembers = false
  }

  private func damage(_ cause: String) -> IntakeError {
    IntakeError(.damaged, operation: "inflate", object: name, cause: cause)
  }
}
