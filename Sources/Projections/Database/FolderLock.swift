// Locks of files, by which those who change a folder take turns.
import Glibc

/// Waits until a lock is nobody else's; it ends with the descriptor.
/// - Parameters:
///   - name: what people call the file.
///   - waiting: told that someone else has it.
///   - isCancelled: asked before the waiting, and when a signal ends it.
func waitForLock(
  _ descriptor: Int32, name: String, waiting: () -> Void = {}, isCancelled: () -> Bool
) throws(ProjectionError) {
  var mode = LOCK_EX | LOCK_NB
  while true {
    if isCancelled() { throw .interrupted }
    if flock(descriptor, mode) == 0 { return }
    if errno == EWOULDBLOCK {
      waiting()
      mode = LOCK_EX
    } else if errno != EINTR {
      throw .file(operation: "locking", name: name, cause: String(cString: strerror(errno)))
    }
  }
}

/// Holds the lock of those who change a folder for as long as `body` runs; waits for another who does. A folder
/// that is missing is made.
/// - Parameter name: what people call the folder.
func withFolderLock<Result>(
  _ folder: String, name: String, waiting: () -> Void = {}, isCancelled: () -> Bool,
  _ body: () throws(ProjectionError) -> Result
) throws(ProjectionError) -> Result {
  if mkdir(folder, 0o700) != 0, errno != EEXIST {
    throw .file(
      operation: "making the folder", name: name, cause: String(cString: strerror(errno)))
  }
  let descriptor = open("\(folder)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
  guard descriptor >= 0 else {
    throw .file(
      operation: "opening", name: "\(name)/lock", cause: String(cString: strerror(errno)))
  }
  defer { close(descriptor) }
  try waitForLock(
    descriptor, name: "\(name)/lock", waiting: waiting, isCancelled: isCancelled)
  return try body()
}
