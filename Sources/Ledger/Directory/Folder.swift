// A directory of the ledger that is open: its files by their names, and what is refused there.
import Base
import Glibc

/// A directory that was opened once. Every name in it is looked up relative to its descriptor and no symbolic link is
/// followed, so that a user who may change the directory's surroundings can't redirect a command.
package final class Folder: Sendable {
  /// The door to the files.
  package let storage: any Storage
  /// Of the storage; that of the operating system where the storage is.
  package let descriptor: Int32
  /// The path, without links, for what takes nothing but paths.
  package let path: String
  /// How errors call a file in it: by this and the file's name.
  private let prefix: String
  /// The ledger's directory as its path was given.
  private let ledgerPath: String

  private init(
    _ storage: any Storage, _ descriptor: Int32, path: String, label: String, ledgerPath: String
  ) {
    self.storage = storage
    self.descriptor = descriptor
    self.path = path
    self.prefix = label
    self.ledgerPath = ledgerPath
  }

  deinit { storage.close(descriptor) }

  /// Opens a directory by its path, which links may lead to.
  package convenience init(
    path: String, storage: any Storage = PosixStorage()
  ) throws(LedgerError) {
    let descriptor = try retrying("open", path) { () throws(SystemError) in
      try storage.openDirectory(path)
    }
    self.init(
      storage, descriptor, path: storage.path(of: descriptor) ?? path, label: "", ledgerPath: path)
  }

  /// How errors call a file in the folder.
  package func label(_ name: String) -> String { prefix + name }

  /// How errors call the folder itself.
  private var ownLabel: String { prefix.isEmpty ? ledgerPath : String(prefix.dropLast()) }

  // MARK: What is refused

  private func refusal(_ operation: String, _ object: String, _ cause: String) -> LedgerError {
    LedgerError(.invalidInput, operation: operation, object: object, cause: cause)
  }

  private func linkRefusal(_ operation: String, _ object: String, of what: String) -> LedgerError {
    refusal(
      operation, object,
      "it is a symbolic link, which is not followed inside a ledger: replace it with the \(what) itself"
    )
  }

  private func writableRefusal(_ operation: String, _ object: String) -> LedgerError {
    refusal(
      operation, object,
      "other users can write to it; to fix this, run 'chmod -R go-w \(ledgerPath)'")
  }

  /// Refuses what is no regular file, and one that others may write to.
  private func check(
    _ status: FileStatus, _ operation: String, _ object: String, isSecret: Bool = false
  ) throws(LedgerError) {
    switch status.kind {
    // Reading or writing a directory fails on its own and is reported as an unreadable file.
    case .regular, .directory: break
    case .link: throw linkRefusal(operation, object, of: "file")
    case .other: throw refusal(operation, object, "it is not a regular file")
    }
    if !isSecret, status.isWritableByOthers { throw writableRefusal(operation, object) }
  }

  /// Refuses the folder where others may write to it.
  package func refuseIfWritableByOthers(_ operation: String = "open") throws(LedgerError) {
    if try ownStatus().isWritableByOthers { throw writableRefusal(operation, ownLabel) }
  }

  /// Refuses what bears a name in the folder where it may not be what it is: a link, a pipe, a file or directory that
  /// others may write to. A name that is free is good.
  /// - Parameter kind: what is expected there.
  package func inspect(
    _ name: String, _ kind: FileKind, _ operation: String
  ) throws(LedgerError) {
    guard let status = try status(name) else { return }
    if kind == .regular { return try check(status, operation, label(name)) }
    if status.kind == .link { throw linkRefusal(operation, label(name), of: "directory") }
    if status.kind == kind, status.isWritableByOthers {
      throw writableRefusal(operation, label(name))
    }
  }

  /// What a file could not be opened for. The system has one code for a link and others for what is no file.
  private func explained(
    _ error: LedgerError, _ name: String, _ operation: String, _ object: String
  ) throws(LedgerError) -> LedgerError {
    guard [ELOOP, ENOTDIR, EISDIR, ENXIO].contains(error.code) else { return error }
    if let status = try status(name) { try check(status, operation, object) }
    return error
  }

  // MARK: Files

  /// Opens a file.
  /// - Parameter isSecret: whether the caller judges its permissions, more strictly.
  package func openFile(
    _ name: String, _ access: FileAccess, operation: String = "open", object: String? = nil,
    isSecret: Bool = false
  ) throws(LedgerError) -> StorageFile {
    let descriptor = try openDescriptor(
      name, access, operation: operation, object: object, isSecret: isSecret)
    return StorageFile(storage: storage, descriptor: descriptor, name: object ?? label(name))
  }

  /// The same for reading; nil where there is no such file.
  func openFileIfPresent(
    _ name: String, isSecret: Bool = false
  ) throws(LedgerError) -> StorageFile? {
    do throws(LedgerError) {
      return try openFile(name, .readOnly, isSecret: isSecret)
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
  }

  /// Opens a file and returns its descriptor, which the caller closes.
  /// - Parameters:
  ///   - isSecret: whether the caller judges its permissions, more strictly.
  ///   - permissions: of a new file.
  package func openDescriptor(
    _ name: String, _ access: FileAccess, operation: String = "open", object: String? = nil,
    isSecret: Bool = false, permissions: UInt32 = Format.filePermissions
  ) throws(LedgerError) -> Int32 {
    let object = object ?? label(name)
    let descriptor: Int32
    do throws(LedgerError) {
      descriptor = try retrying(operation, object) { () throws(SystemError) in
        try storage.open(name, in: self.descriptor, access, permissions: permissions)
      }
    } catch { throw try explained(error, name, operation, object) }
    if access == .create { return descriptor }
    do throws(LedgerError) {
      let status = try retrying(operation, object) { () throws(SystemError) in
        try storage.status(descriptor)
      }
      try check(status, operation, object, isSecret: isSecret)
      return descriptor
    } catch {
      storage.close(descriptor)
      throw error
    }
  }

  /// Makes a new file, in the place of one that an earlier attempt has left under its name.
  package func makeFile(
    _ name: String, object: String? = nil, permissions: UInt32 = Format.filePermissions
  ) throws(LedgerError) -> StorageFile {
    func make() throws(LedgerError) -> StorageFile {
      let descriptor = try openDescriptor(name, .create, object: object, permissions: permissions)
      return StorageFile(storage: storage, descriptor: descriptor, name: object ?? label(name))
    }
    do throws(LedgerError) { return try make() } catch {
      guard error.code == EEXIST else { throw error }
    }
    try unlink(name)
    return try make()
  }

  /// Opens a file for a lock, and makes it if there is none.
  /// - Returns: also whether it was made by this call.
  package func openLock(_ name: String) throws(LedgerError) -> (file: StorageFile, isNew: Bool) {
    do throws(LedgerError) { return (try openFile(name, .readWrite), false) } catch {
      guard error.code == ENOENT else { throw error }
    }
    do throws(LedgerError) { return (try openFile(name, .create), true) } catch {
      // Another has made it meanwhile.
      guard error.code == EEXIST else { throw error }
    }
    return (try openFile(name, .readWrite), false)
  }

  /// What root makes belongs to the folder's owner, whose server could not read it otherwise.
  /// - Parameter file: one that the caller has just made; an existing one is never given away.
  package func giveNewFileToOwner(_ file: StorageFile) throws(LedgerError) {
    guard geteuid() == 0 else { return }
    let folder = try ownStatus()
    try retrying("change the owner of", ownLabel) { () throws(SystemError) in
      try storage.changeOwner(file.descriptor, folder.owner, folder.group)
    }
  }

  /// Gives a file its name, in the place of what bore it.
  ///
  /// Throws where the old name is not the file's any more.
  package func rename(
    _ name: String, to newName: String, of file: StorageFile
  ) throws(LedgerError) {
    let written = try file.status()
    guard let named = try status(name), named.isOfSameFile(as: written) else {
      throw LedgerError(
        .inputOutput, operation: "rename", object: label(name),
        cause: "it is not the file that was written: another process has replaced it")
    }
    try retrying("rename", label(name)) { () throws(SystemError) in
      try storage.rename(name, to: newName, in: self.descriptor)
    }
  }

  /// Gives a file that was written whole its name, durably: the file synced, renamed, the folder synced.
  package func putInPlace(
    _ file: StorageFile, _ temporary: String, as name: String
  ) throws(LedgerError) {
    try file.syncData()
    try rename(temporary, to: name, of: file)
    try sync()
  }

  /// Makes a file that belongs to the folder's owner appear whole or not at all; returns it, open for writing.
  @discardableResult
  package func replaceFile(
    _ name: String, with content: [UInt8]
  ) throws(LedgerError) -> StorageFile {
    let temporary = name + Format.temporarySuffix
    let file = try makeFile(temporary, object: label(name))
    do throws(LedgerError) {
      try giveNewFileToOwner(file)
      try file.write(content, offsetBytes: 0)
      try putInPlace(file, temporary, as: name)
      return file
    } catch {
      try? unlink(temporary)
      throw error
    }
  }

  /// Removes a file's name, if it is there.
  package func unlink(_ name: String) throws(LedgerError) {
    try retrying("remove", label(name)) { () throws(SystemError) in
      do throws(SystemError) { try storage.unlink(name, in: descriptor) } catch {
        if error.code != ENOENT { throw error }
      }
    }
  }

  /// What bears a name, be it a link; nil where nothing does.
  package func status(_ name: String) throws(LedgerError) -> FileStatus? {
    try retrying("examine", label(name)) { () throws(SystemError) -> FileStatus? in
      do throws(SystemError) { return try storage.status(name, in: descriptor) } catch {
        if error.code == ENOENT { return nil }
        throw error
      }
    }
  }

  // MARK: Links

  /// Where the link of this name leads; nil where there is none.
  package func link(_ name: String) -> String? {
    try? storage.readLink(name, in: descriptor)
  }

  /// Puts a link in place, whatever bore its name.
  package func putLink(_ name: String, to target: String) throws(LedgerError) {
    let temporary = name + Format.temporarySuffix
    try unlink(temporary)
    do throws(LedgerError) {
      try retrying("link", label(name)) { () throws(SystemError) in
        try storage.makeLink(to: target, temporary, in: descriptor)
      }
      try retrying("link", label(name)) { () throws(SystemError) in
        try storage.rename(temporary, to: name, in: descriptor)
      }
    } catch {
      try? unlink(temporary)
      throw error
    }
  }

  // MARK: The folder

  /// What the system knows about the folder.
  package func ownStatus() throws(LedgerError) -> FileStatus {
    try retrying("examine", ownLabel) { () throws(SystemError) in try storage.status(descriptor) }
  }

  /// The names in it, without `.` and `..`.
  package func names() throws(LedgerError) -> [String] {
    try retrying("list", ownLabel) { () throws(SystemError) in try storage.list(descriptor) }
  }

  /// Forces its entries to disk; opens nothing. A failure is final.
  package func sync() throws(LedgerError) {
    do throws(SystemError) { try storage.syncDirectory(descriptor) } catch {
      throw .system(error.code, "sync", ownLabel)
    }
  }

  func changePermissions(_ permissions: UInt32) throws(LedgerError) {
    try retrying("change permissions of", ownLabel) { () throws(SystemError) in
      try storage.changePermissions(descriptor, permissions)
    }
  }

  /// Makes a folder that its owner alone may enter; false where its name is taken.
  package func makeFolder(_ name: String) throws(LedgerError) -> Bool {
    try retrying("create directory", label(name)) { () throws(SystemError) in
      do throws(SystemError) {
        try storage.makeDirectory(name, in: descriptor, permissions: Format.directoryPermissions)
        return true
      } catch {
        if error.code == EEXIST { return false }
        throw error
      }
    }
  }

  /// Opens a folder in this one; nil where there is none.
  ///
  /// Throws if it is a symbolic link or if other users may write to it.
  package func folderIfPresent(_ name: String) throws(LedgerError) -> Folder? {
    let descriptor: Int32
    do throws(LedgerError) {
      descriptor = try retrying("open", label(name)) { () throws(SystemError) in
        try storage.openDirectory(name, in: self.descriptor)
      }
    } catch {
      if error.code == ENOENT { return nil }
      if [ELOOP, ENOTDIR].contains(error.code), try status(name)?.kind == .link {
        throw linkRefusal("open", label(name), of: "directory")
      }
      throw error
    }
    let folder = Folder(
      storage, descriptor, path: "\(path)/\(name)", label: "\(prefix)\(name)/",
      ledgerPath: ledgerPath)
    try folder.refuseIfWritableByOthers()
    return folder
  }

  /// Opens a folder in this one.
  package func folder(_ name: String) throws(LedgerError) -> Folder {
    if let folder = try folderIfPresent(name) { return folder }
    throw .system(ENOENT, "open", label(name))
  }

  /// Opens a folder in this one, and makes it where there is none.
  package func madeFolder(_ name: String) throws(LedgerError) -> Folder {
    if let folder = try folderIfPresent(name) { return folder }
    _ = try makeFolder(name)
    return try folder(name)
  }

  /// Opens the folder that holds this one.
  func parent() throws(LedgerError) -> Folder {
    let name = "\(ownLabel)/.."
    let descriptor = try retrying("open", name) { () throws(SystemError) in
      try storage.openDirectory("..", in: self.descriptor)
    }
    return Folder(
      storage, descriptor, path: "\(path)/..", label: "\(name)/", ledgerPath: ledgerPath)
  }
}
