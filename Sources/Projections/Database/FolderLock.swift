// File locks that coordinate the processes that change a folder.
import Ledger

/// Waits for an exclusive lock; closing the file releases it.
/// - Parameter isCancelled: asked before the wait, and when a signal interrupts it.
func waitForLock(
  _ file: StorageFile, isCancelled: () -> Bool
) throws(ProjectionError) {
  let isHeld: Bool
  do throws(LedgerError) {
    isHeld = try file.waitForLock(isCancelled: isCancelled)
  } catch { throw .file(operation: "locking", name: file.name, cause: error.cause) }
  if !isHeld { throw .interrupted }
}

/// Holds the lock for changing a folder of the ledger while `body` runs; waits if another process holds it. Creates
/// the folder if it is missing.
/// - Parameter name: the folder's name.
func withFolderLock<Result>(
  _ ledger: LedgerDirectory, _ name: String, isCancelled: () -> Bool,
  _ body: (Folder) throws(ProjectionError) -> Result
) throws(ProjectionError) -> Result {
  let (folder, lock) = try inLedger { () throws(LedgerError) in
    let folder = try ledger.root.madeFolder(name)
    return (folder, try folder.openLock("lock").file)
  }
  try waitForLock(lock, isCancelled: isCancelled)
  defer { lock.unlock() }
  return try body(folder)
}

/// Runs work on ledger files and passes its errors on.
func inLedger<Result>(
  _ body: () throws(LedgerError) -> Result
) throws(ProjectionError) -> Result {
  do throws(LedgerError) { return try body() } catch { throw .ledger(error) }
}
