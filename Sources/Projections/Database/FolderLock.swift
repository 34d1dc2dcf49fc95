// Locks of files, by which those who change a folder take turns.
import Base
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
  var mustWait = false
  while true {
    if isCancelled() { throw .interrupted }
    do throws(SystemError) {
      if mustWait { return try FileLock.wait(descriptor) }
      if try FileLock.take(descriptor) { return }
      waiting()
      mustWait = true
    } catch {
      guard error.code == EINTR else {
        throw .file(operation: "locking", name: name, cause: String(cString: strerror(error.code)))
      }
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
