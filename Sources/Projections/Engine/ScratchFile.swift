// A database file for the length of one command, which no crash leaves behind for long.
import Base
import Glibc
import Ledger

/// An empty file in `projections/past`, locked while it is in use and then removed. What a
/// process that was killed has left there is removed by the next one that needs such a file.
final class ScratchFile {
  let path: String
  let descriptor: Int32
  private let folder: Folder
  private let name: String
  /// A folder made for this file alone, where the ledger's own may not be written to.
  private let ownFolder: String?

  /// - Parameter isCancelled: ends the wait for other processes that create such a file.
  init(_ generations: Generations, isCancelled: () -> Bool) throws(ProjectionError) {
    if let (folder, lock) = try Self.lock(generations.ledger, isCancelled) {
      defer { close(lock) }
      Self.removeLeftovers(folder)
      let found = try inLedger { () throws(LedgerError) in Set(try folder.names()) }
      var number = 0
      while found.contains("\(number).sqlite") { number += 1 }
      (self.folder, name, ownFolder) = (folder, "\(number).sqlite", nil)
    } else {
      let temporary = try Self.temporaryFolder()
      let folder = try inLedger { () throws(LedgerError) in try Folder(path: temporary) }
      (self.folder, name, ownFolder) = (folder, "0.sqlite", temporary)
    }
    path = "\(folder.path)/\(name)"
    // Made under the lock, and held before that is given back.
    descriptor = try Self.create(name, in: folder)
  }

  /// Holds the lock for creating such a file until the descriptor is closed; nil where nothing may be
  /// written.
  private static func lock(
    _ ledger: LedgerDirectory, _ isCancelled: () -> Bool
  ) throws(ProjectionError) -> (folder: Folder, descriptor: Int32)? {
    let (folder, descriptor): (Folder, Int32)
    do throws(LedgerError) {
      folder = try ledger.root.madeFolder(Generations.folderName).madeFolder("past")
      descriptor = try folder.openLock("lock").descriptor
    } catch {
      if error.code == EACCES || error.code == EROFS { return nil }
      throw .ledger(error)
    }
    do throws(ProjectionError) {
      try waitForLock(descriptor, name: folder.label("lock"), isCancelled: isCancelled)
    } catch {
      close(descriptor)
      throw error
    }
    // A folder that is there already may still refuse new files.
    if faccessat(folder.descriptor, ".", W_OK, 0) == 0 { return (folder, descriptor) }
    close(descriptor)
    return nil
  }

  deinit {
    try? folder.unlink(name)
    try? folder.unlink(name + "-journal")
    close(descriptor)
    if let ownFolder { rmdir(ownFolder) }
  }

  private static func failure(_ operation: String, _ name: String) -> ProjectionError {
    .file(operation: operation, name: name, cause: String(cString: strerror(errno)))
  }

  private static func create(_ name: String, in folder: Folder) throws(ProjectionError) -> Int32 {
    let descriptor = try inLedger { () throws(LedgerError) in
      try folder.openDescriptor(name, .create)
    }
    // Nobody else has seen the file yet, so that the lock is free.
    guard (try? FileLock.take(descriptor)) == true else {
      let failure = failure("locking", "a temporary generation")
      close(descriptor)
      try? folder.unlink(name)
      throw failure
    }
    return descriptor
  }

  private static func temporaryFolder() throws(ProjectionError) -> String {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/ledgerctl-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw failure("making a temporary folder in", parent) }
    return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// Removes the files that no process locks any more.
  private static func removeLeftovers(_ folder: Folder) {
    for name in (try? folder.names()) ?? [] where name.contains(".sqlite") {
      guard let descriptor = try? folder.openDescriptor(name, .readWrite) else { continue }
      if (try? FileLock.take(descriptor)) == true { try? folder.unlink(name) }
      close(descriptor)
    }
  }
}
