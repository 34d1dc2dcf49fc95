// The folder of a fold's temporary files, which lose their names while they are in use.
package import Base
import Glibc

/// The folder named by `--scratch`, or `TMPDIR`, or `/tmp`.
package struct ScratchFolder {
  /// Without links: databases are opened without following links.
  let path: String

  package init(_ given: String?) throws(Failure) {
    let fromEnvironment = getenv("TMPDIR").map { String(cString: $0) } ?? ""
    let name = given ?? (fromEnvironment.isEmpty ? "/tmp" : fromEnvironment)
    guard let resolved = realpath(name, nil) else {
      throw Failure(operation: "open scratch folder", object: name, systemError: errno)
    }
    defer { free(resolved) }
    path = String(cString: resolved)
  }

  /// Calls `body` with the path of a new empty file, then removes its name.
  func withNewFile<Result>(
    _ body: (_ path: String, _ descriptor: Int32) throws -> Result
  ) throws -> Result {
    var template = Array("\(path)/ledger-rules-XXXXXX".utf8CString)
    // A new file that only its owner may read; links are not followed.
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else {
      throw Failure(operation: "create temporary file in", object: path, systemError: errno)
    }
    defer { unlink(template) }
    return try body(
      String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self), descriptor)
  }

  /// A file without a name.
  func unnamedFile() throws -> ScratchFile {
    try withNewFile { _, descriptor in ScratchFile(descriptor, in: path) }
  }

  /// Calls `body` with the path of a new empty file, which is removed when it returns.
  func withPath<Result>(_ body: (_ path: String) throws -> Result) throws -> Result {
    try withNewFile { path, descriptor in
      close(descriptor)
      return try body(path)
    }
  }
}

/// A temporary file without a name, closed with the value.
final class ScratchFile {
  private let descriptor: Int32
  private let folder: String

  init(_ descriptor: Int32, in folder: String) {
    self.descriptor = descriptor
    self.folder = folder
  }

  deinit { close(descriptor) }

  func append(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    var rest = bytes
    while !rest.isEmpty {
      let count = write(descriptor, rest.baseAddress, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw failure("write temporary file in", errno)
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  func read(_ range: Range<Int>) throws(Failure) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: range.count)
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer in
        pread(
          descriptor, buffer.baseAddress.map { $0 + offset }, buffer.count - offset,
          off_t(range.lowerBound + offset))
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw failure("read temporary file in", errno)
      }
      if count == 0 {
        throw Failure(
          operation: "read temporary file in", object: folder, cause: "it was cut short")
      }
      offset += count
    }
    return bytes
  }

  private func failure(_ operation: String, _ code: Int32) -> Failure {
    Failure(operation: operation, object: folder, systemError: code)
  }
}
