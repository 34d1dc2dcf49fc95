// The sources of an input's bytes: files and standard input, read in pieces.
import Glibc

/// A stream of bytes.
package protocol ByteSource: AnyObject {
  /// Reads at least one byte, or 0 bytes at the end. It returns all intact data before it throws an error.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(IntakeError) -> Int
}

/// A file, pipe or terminal that stays open as long as this object exists.
package final class FileSource: ByteSource {
  /// The name shown to people.
  package let name: String
  /// Size of a regular file; nil for a stream, whose length is not known.
  package let sizeBytes: Int?
  /// Bytes read since the beginning or the last `rewind()`.
  package private(set) var readBytes = 0
  private let descriptor: Int32
  private let ownsDescriptor: Bool
  private let stop: StopFlag

  /// Opens a path; `-` is standard input.
  package init(path: String, stop: StopFlag) throws(IntakeError) {
    self.stop = stop
    if path == "-" {
      name = "standard input"
      descriptor = STDIN_FILENO
      ownsDescriptor = false
    } else {
      name = path
      // The system would cut a path at a NUL and open another file.
      guard !path.utf8.contains(0) else {
        throw IntakeError(
          .unreadable, operation: "open", object: "input", cause: "the path contains a NUL")
      }
      descriptor = try Self.opened(path, stop)
      ownsDescriptor = true
    }
    guard descriptor >= 0 else { throw Self.fault("open", name, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Self.fault("open", name, errno) }
    switch status.st_mode & S_IFMT {
    case S_IFDIR:
      throw IntakeError(.unreadable, operation: "read", object: name, cause: "is a directory")
    case S_IFREG: sizeBytes = Int(status.st_size)
    default: sizeBytes = nil
    }
  }

  /// Opening a pipe waits for its writer. A signal ends the wait.
  private static func opened(_ path: String, _ stop: StopFlag) throws(IntakeError) -> Int32 {
    while true {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      if descriptor >= 0 || errno != EINTR { return descriptor }
      if stop.isSet { throw interrupted("open", path) }
    }
  }

  private static func interrupted(_ operation: String, _ name: String) -> IntakeError {
    IntakeError(.interrupted, operation: operation, object: name, cause: "interrupted")
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

  static func fault(_ operation: String, _ name: String, _ code: Int32) -> IntakeError {
    IntakeError(
      .unreadable, operation: operation, object: name, cause: String(cString: strerror(code)))
  }

  /// Returns to the beginning of a regular file.
  package func rewind() throws(IntakeError) {
    guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw Self.fault("read", name, errno) }
    readBytes = 0
  }

  package func read(
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(IntakeError) -> Int {
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

/// Bytes that were read ahead, then the rest of their source.
final class PrefixedSource: ByteSource {
  private var prefix: [UInt8]
  private let rest: any ByteSource

  init(_ prefix: [UInt8], _ rest: any ByteSource) {
    self.prefix = prefix
    self.rest = rest
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(IntakeError) -> Int {
    if prefix.isEmpty { return try rest.read(into: buffer) }
    let count = min(prefix.count, buffer.count)
    buffer.copyBytes(from: prefix[0..<count])
    prefix.removeFirst(count)
    return count
  }
}
