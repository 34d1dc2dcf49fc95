// Writes files through a buffer; a file appears under its name once it is whole.
private import Glibc

package struct OutputError: Error {
  /// What could not be done, to what, and why.
  package let message: String
  /// Whether the reader of a pipe went away, which is no failure.
  package let isClosedPipe: Bool

  package init(_ operation: String, _ object: String, _ code: Int32) {
    message = "\(operation) \(object): \(String(cString: strerror(code)))"
    isClosedPipe = code == EPIPE
  }
}

package struct Output: ~Copyable {
  private let descriptor: Int32
  private let name: String
  /// The name under which the file is written; nil where it is written in place.
  private let partialName: String?
  private var buffer: [UInt8] = []
  private static let capacity = 1 << 20

  /// Standard output.
  package init() {
    descriptor = 1
    name = "standard output"
    partialName = nil
    buffer.reserveCapacity(Self.capacity)
  }

  /// A file, which replaces another of its name at `finish`. What is no regular file is written in place.
  package init(path: String) throws(OutputError) {
    var status = stat()
    let isSpecial = stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    let target = isSpecial ? path : path + ".partial"
    let flags = O_WRONLY | O_CLOEXEC | (isSpecial ? 0 : O_CREAT | O_TRUNC)
    // What is written holds receipts: nobody else may read them.
    descriptor = open(target, flags, 0o600)
    guard descriptor >= 0 else { throw OutputError("can't create", path, errno) }
    name = path
    partialName = isSpecial ? nil : target
    buffer.reserveCapacity(Self.capacity)
  }

  /// A file, or standard output where no path is given.
  package init(ifGiven path: String?) throws(OutputError) {
    if let path { try self.init(path: path) } else { self.init() }
  }

  deinit {
    if descriptor > 2 { close(descriptor) }
  }

  package mutating func write(_ text: String) throws(OutputError) {
    buffer.append(contentsOf: text.utf8)
    if buffer.count >= Self.capacity { try flush() }
  }

  package mutating func write(line: [UInt8]) throws(OutputError) {
    buffer.append(contentsOf: line)
    buffer.append(0x0A)
    if buffer.count >= Self.capacity { try flush() }
  }

  /// Writes what is left, and puts the file in its place.
  package mutating func finish() throws(OutputError) {
    try flush()
    if let partialName, rename(partialName, name) != 0 {
      throw OutputError("can't put in place", name, errno)
    }
  }

  /// Removes what was written of a file that will not be finished.
  package borrowing func discard() {
    if let partialName { unlink(partialName) }
  }

  /// Writes what is buffered.
  package mutating func flush() throws(OutputError) {
    var place = 0
    while place < buffer.count {
      let count = buffer.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress.map { $0 + place }, $0.count - place)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw OutputError("can't write to", name, errno) }
      place += count
    }
    buffer.removeAll(keepingCapacity: true)
  }
}

package enum StandardOutput {
  /// Writes at once.
  package static func write(_ text: String) throws(OutputError) {
    var output = Output()
    try output.write(text)
    try output.finish()
  }
}

/// Fills an output and finishes it; one that fails leaves no file behind.
package func fill(
  _ output: consuming Output, _ body: (inout Output) throws -> Void
) throws {
  do {
    try body(&output)
    try output.finish()
  } catch {
    output.discard()
    throw error
  }
}
