// A database file for the length of one command, which no crash leaves behind for long.
import Glibc
import Ledger

/// An empty file in `projections/past`, locked while it is in use and then removed. What a
/// process that was killed has left there is removed by the next one that needs such a file.
final class ScratchFile {
  let path: String
  let file: StorageFile
  private let folder: Folder
  private let name: String
  /// A folder made for this file alone, where the ledger's own may not be written to.
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
    // Made under the lock, and held before that is given back.
    file = try Self.create(name, in: folder)
  }

  /// Takes the lock for creating such a file; nil where nothing may be
  /// written.
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
    // A folder that is there already may still refuse new files.
    if faccessat(folder.descriptor, ".", W_OK, 0) == 0 { return (folder, file) }
    return nil
  }

  deinit {
    try? folder.unlink(name)
    try? folder.unlink(name + "-journal")
  }

  private static func failure(_ operation: String, _ name: String) -> ProjectionError {
    .file(operation: operation, name: name, cause: String(cString: strerror(errno)))
  }

  private static func create(
    _ name: String, in folder: Folder
  ) throws(ProjectionError) -> StorageFile {
    let file = try inLedger { () throws(LedgerError) in try folder.openFile(name, .create) }
    // Nobody else has seen the file yet, so that the lock is free.
    guard (try? file.lock()) == true else {
      let failure = failure("locking", "a temporary generation")
      try? folder.unlink(name)
      throw failure
    }
    return file
  }

  /// Removes the files that no process locks any more.
  private static func removeLeftovers(_ folder: Folder) {
    for name in (try? folder.names()) ?? [] where name.contains(".sqlite") {
      guard let file = try? folder.openFile(name, .readWrite) else { continue }
      if (try? file.lock()) == true { try? folder.unlink(name) }
    }
  }
}
