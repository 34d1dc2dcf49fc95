// File locks that serialise the changes to a folder.
import Glibc
import Ledger

/// Waits for an exclusive lock; closing the descriptor releases it.
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

/// Holds the lock for changing a folder of the ledger while `body` runs; waits for another holder.
/// A folder that is missing is made.
/// - Parameter name: the folder's name.
func withFolderLock<Result>(
  _ ledger: LedgerDirectory, _ name: String, waiting: () -> Void = {}, isCancelled: () -> Bool,
  _ body: (Folder) throws(ProjectionError) -> Result
) throws(ProjectionError) -> Result {
  let (folder, descriptor) = try inLedger { () throws(LedgerError) in
    let folder = try ledger.root.madeFolder(name)
    return (folder, try folder.openLock("lock").descriptor)
  }
  defer { close(descriptor) }
  try waitForLock(
    descriptor, name: "\(name)/lock", waiting: waiting, isCancelled: isCancelled)
  return try body(folder)
}

/// Work on files of the ledger, whose errors are passed on.
func inLedger<Result>(
  _ body: () throws(LedgerError) -> Result
) throws(ProjectionError) -> Result {
  do throws(LedgerError) { return try body() } catch { throw .ledger(error) }
}
