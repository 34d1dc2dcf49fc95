// Writes what is signed: to a file, or to standard output.
import Glibc

struct OutputError: Error {
  /// What could not be done, to what, and why.
  let message: String
  /// Whether the reader of a pipe went away, which is no failure.
  let isClosedPipe: Bool

  init(_ operation: String, _ object: String, _ code: Int32) {
    message = "\(operation) \(object): \(String(cString: strerror(code)))"
    isClosedPipe = code == EPIPE
  }
}

enum StandardOutput {
  static func write(_ bytes: [UInt8]) throws(OutputError) {
    try writeAll(bytes, to: 1, named: "standard output")
  }
}

/// A buffered output; a file is named `FILE.partial` until it is whole.
struct ReceiptOutput: ~Copyable {
  private let descriptor: Int32
  private let path: String?
  private var buffer: [UInt8] = []
  private static let bufferBytes = 1 << 20

  init(path: String?) throws(OutputError) {
    self.path = path
    guard let path else {
      descriptor = 1
      return
    }
    // Receipts are secrets, even invented ones.
    descriptor = open(path + ".partial", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw OutputError("create", path + ".partial", errno) }
  }

  deinit { if descriptor > 2 { close(descriptor) } }

  mutating func write(line: [UInt8]) throws(OutputError) {
    buffer.append(contentsOf: line)
    buffer.append(0x0A)
    if buffer.count >= Self.bufferBytes { try flush() }
  }

  mutating func finish() throws(OutputError) {
    try flush()
    if let path, rename(path + ".partial", path) != 0 {
      throw OutputError("put in place", path, errno)
    }
  }

  private mutating func flush() throws(OutputError) {
    try writeAll(buffer, to: descriptor, named: path ?? "standard output")
    buffer.removeAll(keepingCapacity: true)
  }
}

private func writeAll(
  _ bytes: [UInt8], to descriptor: Int32, named name: String
) throws(OutputError) {
  var place = 0
  while place < bytes.count {
    let count = bytes.withUnsafeBytes {
      Glibc.write(descriptor, $0.baseAddress.map { $0 + place }, $0.count - place)
    }
    if count < 0, errno == EINTR { continue }
    guard count > 0 else { throw OutputError("write to", name, errno) }
    place += count
  }
}
