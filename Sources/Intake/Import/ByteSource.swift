// The sources of an input's bytes: files, standard input and gzip streams, read in pieces.
package import Base
import CZlib
import Glibc

/// A stream of bytes.
package protocol ByteSource: AnyObject {
  /// Reads at least one byte, or 0 bytes at the end. It returns all intact data before it throws an error.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int
}

extension ByteSource {
  /// Reads to the end, into memory for at most `limit` bytes: a stream may be endless.
  /// - Parameters:
  ///   - expected: the number of bytes, if it is known.
  ///   - name: for the message about a longer source.
  package func readAll(
    limit: Int, expecting expected: Int = 0, name: String
  ) throws(Failure) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(min(expected, limit))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try read(into: buffer)
      if count == 0 { return bytes }
      guard bytes.count + count <= limit else {
        throw Failure(
          operation: "read", object: name, cause: "is larger than \(limit >> 20) MiB")
      }
      // An array would grow beyond the limit by itself.
      if bytes.count + count > bytes.capacity {
        bytes.reserveCapacity(min(limit, max(bytes.count + count, 2 * bytes.capacity)))
      }
      bytes.append(contentsOf: buffer[..<count])
    }
  }
}

/// A file, pipe or terminal that stays open as long as this object exists.
package final class FileSource: ByteSource {
  /// The name for display.
  package let name: String
  /// Size of a regular file; nil for a stream, whose length is not known.
  package let sizeBytes: Int?
  /// Bytes read since the beginning or the last `rewind()`.
  package private(set) var readBytes = 0
  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let stop: StopFlag

  /// Opens a path; `-` is standard input.
  package init(path: String, stop: StopFlag) throws(Failure) {
    self.stop = stop
    if path == "-" {
      name = "standard input"
      descriptor = STDIN_FILENO
      ownsDescriptor = false
    } else {
      name = path
      // The system would cut a path at a NUL and open another file.
      guard !path.utf8.contains(0) else {
        throw Failure(
          operation: "open", object: "input", cause: "the path contains a NUL")
      }
      descriptor = try Self.opened(path, stop)
      ownsDescriptor = true
    }
    guard descriptor >= 0 else { throw Self.fault("open", name, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Self.fault("open", name, errno) }
    switch status.st_mode & S_IFMT {
    case S_IFDIR:
      throw Failure(operation: "read", object: name, cause: "is a directory")
    case S_IFREG: sizeBytes = Int(status.st_size)
    default: sizeBytes = nil
    }
  }

  /// Opening a pipe waits for its writer. A signal ends the wait.
  private static func opened(_ path: String, _ stop: StopFlag) throws(Failure) -> Int32 {
    while true {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      if descriptor >= 0 || errno != EINTR { return descriptor }
      if stop.isSet { throw interrupted("open", path) }
    }
  }

  private static func interrupted(_ operation: String, _ name: String) -> Failure {
    Failure(.interrupted, operation: operation, object: name, cause: "interrupted")
  }

  /// Takes ownership of an open descriptor of a regular file.
  init(spool descriptor: Int32, name: String, sizeBytes: Int, stop: StopFlag) {
    self.descriptor = descriptor
    self.name = name
    self.sizeBytes = sizeBytes
    self.stop = stop
    ownsDescriptor = true
  }

  deinit {
    if ownsDescriptor, descriptor >= 0 { close(descriptor) }
  }

  static func fault(_ operation: String, _ name: String, _ code: Int32) -> Failure {
    Failure(
      operation: operation, object: name, cause: systemErrorText(code))
  }

  /// Returns to the beginning of a regular file.
  package func rewind() throws(Failure) {
    guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw Self.fault("read", name, errno) }
    readBytes = 0
  }

  package func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(Failure) -> Int {
    while true {
      if stop.isSet { throw Self.interrupted("read", name) }
      // A stream may stay silent forever, and a signal may arrive just before the wait.
      if sizeBytes == nil, !isReady() { continue }
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 {
        readBytes += count
        return count
      }
      if errno != EINTR { throw Self.fault("read", name, errno) }
    }
  }

  /// Whether a read would not block; waits at most 200 ms to find out.
  private func isReady() -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // If polling fails, read anyway: the read returns the error.
    let result = poll(&request, 1, 200)
    return result > 0 || result < 0 && errno != EINTR
  }
}

/// Bytes that were read ahead, then the rest of their source, if there is one.
final class PrefixedSource: ByteSource {
  private var prefix: [UInt8]
  private var offset = 0
  private let rest: (any ByteSource)?

  init(_ prefix: [UInt8], _ rest: (any ByteSource)? = nil) {
    self.prefix = prefix
    self.rest = rest
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
    if offset == prefix.count { return try rest?.read(into: buffer) ?? 0 }
    let count = min(prefix.count - offset, buffer.count)
    buffer.copyBytes(from: prefix[offset..<offset + count])
    offset += count
    if offset == prefix.count { (prefix, offset) = ([], 0) }
    return count
  }
}

// MARK: - Gzip

/// Decompresses a gzip source as a stream, one member after another. Zeros after the last member may be padding; any
/// other byte there is an error.
package final class GzipSource: ByteSource {
  private static let inputBytes = 256 << 10

  private let source: any ByteSource
  private let name: String
  private let allowsPadding: Bool
  private let stream: UnsafeMutablePointer<z_stream>
  private let input: UnsafeMutableRawBufferPointer
  private var isBetweenMembers = true
  private var isInPadding = false
  private var isAtEnd = false
  private var fault: Failure?

  package init(
    _ source: any ByteSource, name: String, allowsPadding: Bool = true
  ) throws(Failure) {
    self.source = source
    self.name = name
    self.allowsPadding = allowsPadding
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    input = .allocate(byteCount: Self.inputBytes, alignment: 16)
    guard czlib_inflate_init_gzip(stream) == Z_OK else {
      throw Failure(operation: "inflate", object: name, cause: "out of memory")
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    input.deallocate()
  }

  package func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(Failure) -> Int {
    if let fault { throw fault }
    let capacity = min(buffer.count, Int(UInt32.max))
    guard let target = buffer.baseAddress, capacity > 0 else { return 0 }
    stream.pointee.next_out = target.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(capacity)
    do throws(Failure) {
      while !isAtEnd, Int(stream.pointee.avail_out) == capacity { try step() }
    } catch {
      fault = error
    }
    let count = capacity - Int(stream.pointee.avail_out)
    if count == 0, let fault { throw fault }
    return count
  }

  /// Performs one step towards the next byte of content.
  private func step() throws(Failure) {
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
      throw Failure(operation: "inflate", object: name, cause: "out of memory")
    default: throw damage("the gzip data is damaged")
    }
  }

  private func refill() throws(Failure) -> Int {
    let count = try source.read(into: input)
    stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_in = UInt32(count)
    return count
  }

  private func beginMember() throws(Failure) {
    guard let next = stream.pointee.next_in else { return }
    if next.pointee == 0, allowsPadding {
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

  private func damage(_ cause: String) -> Failure {
    Failure(operation: "inflate", object: name, cause: cause)
  }
}

// MARK: - The zlib library

package enum GzipLibrary {
  /// For example `zlib 1.2.13`: the version on this system.
  package static var name: String {
    "zlib " + (zlibVersion().map { String(cString: $0) } ?? CryptoLibrary.unknownVersion)
  }
}
