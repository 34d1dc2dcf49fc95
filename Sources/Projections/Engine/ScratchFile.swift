// A temporary database file for one command, which does not remain for long after a crash.
import Base
import Glibc
import Ledger

/// An empty file in `projections/past`, locked while in use and then removed. If a process was killed, the next
/// process that needs such a file removes what it left.
final class ScratchFile {
  let path: String
  let file: StorageFile
  private let folder: Folder
  private let name: String
  /// A folder made for this file alone, if the ledger's own is not writable.
  private let ownFolder: TemporaryFolder?

  /// - Parameter isCancelled: ends the wait for other processes that create such a file.
  init(_ generations: Generations, isCancelled: () -> Bool) throws(ProjectionError) {
    if let (folder, lock) = try Self.lock(generations.ledger, isCancelled) {
      defer { lock.unlock() }
      Self.removeLeftovers(folder)
      let found = try inLedger { () throws(LedgerError) in Set(try folder.names()) }
      var number = 0
      while found.contains("\(number).sqlite") { number += 1 }
      (self.folder, name, ownFolder) = (folder, "\(number).sqlite", nil)
    } else {
      let temporary: TemporaryFolder
      do throws(LedgerError) { temporary = try TemporaryFolder() } catch {
        throw .file(
          operation: "making a temporary folder in", name: error.object, cause: error.cause)
      }
      (folder, name, ownFolder) = (temporary.folder, "0.sqlite", temporary)
    }
    path = "\(folder.path)/\(name)"
    // Created under the folder's lock, and locked before that is released.
    file = try Self.create(name, in: folder)
  }

  /// Acquires the lock for creating such a file; nil if nothing may be written.
  private static func lock(
    _ ledger: LedgerDirectory, _ isCancelled: () -> Bool
  ) throws(ProjectionError) -> (folder: Folder, file: StorageFile)? {
    let (folder, file): (Folder, StorageFile)
    do throws(LedgerError) {
      folder = try ledger.root.madeFolder(Generations.folderName).madeFolder("past")
      file = try folder.openLock("lock").file
    } catch {
      if error.code == EACCES || error.code == EROFS { return nil }
      throw .ledger(error)
    }
    try waitForLock(file, isCancelled: isCancelled)
    // An existing folder may still reject new files.
    if faccessat(folder.descriptor, ".", W_OK, 0) == 0 { return (folder, file) }
    return nil
  }

  deinit {
    try? folder.unlink(name)
    try? folder.unlink(name + "-journal")
  }

  private static func failure(_ operation: String, _ name: String) -> ProjectionError {
    .file(operation: operation, name: name, cause: systemErrorText(errno))
  }

  private static func create(
    _ name: String, in folder: Folder
  ) throws(ProjectionError) -> StorageFile {
    let file = try inLedger { () throws(LedgerError) in try folder.openFile(name, .create) }
    // No other process has seen the file yet, so the lock is free.
    guard (try? file.lock()) == true else {
      let failure = failure("locking", "a temporary generation")
      try? folder.unlink(name)
      throw failure
    }
    return file
  }

  /// Removes the files that no process has locked.
  private static func removeLeftovers(_ folder: Folder) {
    for name in (try? folder.names()) ?? [] where name.contains(".sqlite") {
      guard let file = try? folder.openFile(name, .readWrite) else { continue }
      if (try? file.lock()) == true { try? folder.unlink(name) }
    }
  }
}
