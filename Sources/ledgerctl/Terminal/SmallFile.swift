// Reads small files named on the command line: checkpoints, proofs, manifests.
import Base
import Glibc

/// The whole content of a file of at most `byteCountMax` bytes; `-` is standard input.
func readSmallFile(_ path: String, byteCountMax: Int = 1 << 20) throws(Failure) -> [UInt8] {
  let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { throw Failure(operation: "read", object: path, systemError: errno) }
  defer { if descriptor != STDIN_FILENO { close(descriptor) } }
  do throws(SmallFileError) {
    return try SmallFile.read(descriptor, byteCountMax: byteCountMax)
  } catch {
    if case .system(let error) = error {
      throw Failure(operation: "read", object: path, systemError: error.code)
    }
    throw Failure(operation: "read", object: path, cause: error.cause)
  }
}
