// A file that a task names.
import Glibc

/// A regular file, open for reading, closed with the value.
final class InputFile {
  let descriptor: Int32

  init(_ path: String) throws(RulesFailure) {
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw RulesFailure(operation: "open", object: path, systemError: errno)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw RulesFailure(operation: "open", object: path, cause: "it is not a regular file")
    }
  }

  deinit { close(descriptor) }
}
