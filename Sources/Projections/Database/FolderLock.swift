// Locks of files, by which those who change a folder take turns.
import Ledger

/// Waits for an exclusive lock; closing the file releases it.
/// - Parameters:
///   - waiting: told that someone else has it.
///   - isCancelled: asked before the waiting, and when a signal ends it.
func waitForLock(
  _ file: StorageFile, waiting: () -> Void = {}, isCancelled: () -> Bool
) throws(ProjectionError) {
  let isHeld: Bool
  do throws(LedgerError) {
    isHeld = try file.waitForLock(waiting: waiting, isCancelled: isCancelled)
  } catch { throw .file(operation: "locking", name: file.name, cause: error.cause) }
  if !isHeld { throw .interrupted }
}

/// Holds the lock for changing a folder of the ledger while `body` runs; waits for another holder.
/// A folder that is missing is made.
/// - Parameter name: the folder's name.
func withFolderLock<Result>(
  _ ledger: LedgerDirectory, _ name: String, waiting: () -> Void = {}, isCancelled: () -> Bool,
  _ body: (Folder) throws(ProjectionError) -> Result
) throws(ProjectionError) -> Result {
  let (folder, lock) = try inLedger { () throws(LedgerError) in
    let folder = try ledger.root.madeFolder(name)
    return (folder, try folder.openLock("lock").file)
  }
  try waitForLock(lock, waiting: waiting, isCancelled: isCancelled)
  defer { lock.unlock() }
  return try body(folder)
}

/// Work on files of the ledger, whose errors are passed on.
func inLedger<Result>(
  _ body: () throws(LedgerError) -> Result
) throws(ProjectionError) -> Result {
  do throws(LedgerError) { return try body() } catch { throw .ledger(error) }
}
