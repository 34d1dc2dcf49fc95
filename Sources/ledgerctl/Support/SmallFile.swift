// Reads small files named on the command line: checkpoints, proofs, manifests.
import Glibc

/// The whole content of a file of at most `byteCountMax` bytes; `-` is standard input.
func readSmallFile(_ path: String, byteCountMax: Int = 1 << 20) throws(Failure) -> [UInt8] {
  let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw Failure(operation: "read", object: path, systemError: errno) }
  defer { if descriptor != STDIN_FILENO { close(descriptor) } }
  var bytes = [UInt8](repeating: 0, count: byteCountMax + 1)
  var count = 0
  while count < bytes.count {
    let added = bytes.withUnsafeMutableBytes {
      read(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
    }
    if added == 0 { break }
    if added > 0 {
      count += added
    } else if errno != EINTR {
      throw Failure(operation: "read", object: path, systemError: errno)
    }
  }
  guard count <= byteCountMax else {
    throw Failure(
      operation: "read", object: path, cause: "it is larger than \(byteCountMax) bytes")
  }
  return Array(bytes[..<count])
}
