// An open directory of the ledger: its files by name, and what it rejects.
import Base
import Glibc

/// A directory that is opened once. Names are looked up relative to its descriptor, and symbolic links are not
/// followed, so a user who can change the directories above it cannot redirect a command.
package final class Folder: Sendable {
  /// The storage that all file calls go through.
  package let storage: any Storage
  /// The storage's descriptor; a system descriptor if the storage is the operating system's.
  package let descriptor: Int32
  /// The path without links, for code that accepts only paths.
  package let path: String
  /// The prefix for file names in errors.
  private let prefix: String
  /// The ledger's directory, as the user wrote its path.
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

  /// Opens a directory by its path, which may contain links.
  package convenience init(
    path: String, storage: any Storage = PosixStorage()
  ) throws(LedgerError) {
    let descriptor = try retrying("open", path) { () throws(SystemError) in
      try storage.openDirectory(path)
    }
    self.init(
      storage, descriptor, path: storage.path(of: descriptor) ?? path, label: "", ledgerPath: path)
  }

  /// The name of a file in the folder, for errors.
  package func label(_ name: String) -> String { prefix + name }

  /// The name of the folder itself, for errors.
  private var ownLabel: String { prefix.isEmpty ? ledgerPath : String(prefix.dropLast()) }

  // MARK: Rejected files

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

  /// Rejects a file that is not regular or that other users may write to.
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

  /// Rejects the folder if other users may write to it.
  package func refuseIfWritableByOthers(_ operation: String = "open") throws(LedgerError) {
    if try ownStatus().isWritableByOthers { throw writableRefusal(operation, ownLabel) }
  }

  /// Rejects a name that must not be used: a link, a pipe, or a file or directory that other users may write to. A free
  /// name is accepted.
  /// - Parameter kind: the expected kind.
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

  /// Explains why a file could not be opened. The system uses one code for a link and others for other kinds of
  /// files.
  private func explained(
    _ error: LedgerError, _ name: String, _ operation: String, _ object: String
  ) throws(LedgerError) -> LedgerError {
    guard [ELOOP, ENOTDIR, EISDIR, ENXIO].contains(error.code) else { return error }
    if let status = try status(name) { try check(status, operation, object) }
    return error
  }

  // MARK: Files

  /// Opens a file.
  /// - Parameter isSecret: whether the caller checks the permissions itself, more strictly.
  package func openFile(
    _ name: String, _ access: FileAccess, operation: String = "open", object: String? = nil,
    isSecret: Bool = false
  ) throws(LedgerError) -> StorageFile {
    let descriptor = try openDescriptor(
      name, access, operation: operation, object: object, isSecret: isSecret)
    return StorageFile(storage: storage, descriptor: descriptor, name: object ?? label(name))
  }

  /// As `openFile`, for reading; nil if the file does not exist.
  package func openFileIfPresent(
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
  ///   - isSecret: whether the caller checks the permissions itself, more strictly.
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

  /// Creates a new file, replacing one that an earlier attempt left under its name.
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

  /// Opens a lock file; creates it if there is none.
  /// - Returns: also whether this call created it.
  package func openLock(_ name: String) throws(LedgerError) -> (file: StorageFile, isNew: Bool) {
    do throws(LedgerError) { return (try openFile(name, .readWrite), false) } catch {
      guard error.code == ENOENT else { throw error }
    }
    do throws(LedgerError) { return (try openFile(name, .create), true) } catch {
      // Another process has created it meanwhile.
      guard error.code == EEXIST else { throw error }
    }
    return (try openFile(name, .readWrite), false)
  }

  /// Gives a file that root created to the folder's owner; otherwise the owner's server could not read it.
  /// - Parameter file: one that the caller has just created; an existing file is never given away.
  package func giveNewFileToOwner(_ file: StorageFile) throws(LedgerError) {
    guard geteuid() == 0 else { return }
    let folder = try ownStatus()
    try retrying("change the owner of", ownLabel) { () throws(SystemError) in
      try storage.changeOwner(file.descriptor, folder.owner, folder.group)
    }
  }

  /// Gives a folder in this one that root created to this one's owner, for the same reason.
  package func giveNewFolderToOwner(_ folder: Folder) throws(LedgerError) {
    guard geteuid() == 0 else { return }
    let own = try ownStatus()
    try retrying("change the owner of", folder.ownLabel) { () throws(SystemError) in
      try storage.changeOwner(folder.descriptor, own.owner, own.group)
    }
  }

  /// Renames a file, replacing any file with the new name.
  ///
  /// Throws if the old name no longer refers to this file.
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

  /// Gives a completely written file its name, durably: syncs the file, renames it, syncs the folder.
  package func putInPlace(
    _ file: StorageFile, _ temporary: String, as name: String
  ) throws(LedgerError) {
    try file.syncData()
    try rename(temporary, to: name, of: file)
    try sync()
  }

  /// Writes a file atomically and durably, gives it to the folder's owner, and returns it open for writing.
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

  /// Removes a file's name, if it exists.
  package func unlink(_ name: String) throws(LedgerError) {
    try retrying("remove", label(name)) { () throws(SystemError) in
      do throws(SystemError) { try storage.unlink(name, in: descriptor) } catch {
        if error.code != ENOENT { throw error }
      }
    }
  }

  /// The status of a name, without following a link; nil if it does not exist.
  package func status(_ name: String) throws(LedgerError) -> FileStatus? {
    try retrying("examine", label(name)) { () throws(SystemError) -> FileStatus? in
      do throws(SystemError) { return try storage.status(name, in: descriptor) } catch {
        if error.code == ENOENT { return nil }
        throw error
      }
    }
  }

  // MARK: Links

  /// The target of the link with this name; nil if there is none.
  package func link(_ name: String) -> String? {
    try? storage.readLink(name, in: descriptor)
  }

  /// Creates a link, replacing whatever has its name.
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

  // MARK: Folder

  /// The status of the folder.
  package func ownStatus() throws(LedgerError) -> FileStatus {
    try retrying("examine", ownLabel) { () throws(SystemError) in try storage.status(descriptor) }
  }

  /// The names in the folder, without `.` and `..`.
  package func names() throws(LedgerError) -> [String] {
    try retrying("list", ownLabel) { () throws(SystemError) in try storage.list(descriptor) }
  }

  /// Syncs the folder's entries without opening anything. A failure is final.
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

  /// Creates a folder that only its owner may enter; false if the name is taken.
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

  /// Opens a subfolder; nil if there is none.
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

  /// Opens a subfolder.
  package func folder(_ name: String) throws(LedgerError) -> Folder {
    if let folder = try folderIfPresent(name) { return folder }
    throw .system(ENOENT, "open", label(name))
  }

  /// Opens a subfolder; creates it if there is none.
  package func madeFolder(_ name: String) throws(LedgerError) -> Folder {
    if let folder = try folderIfPresent(name) { return folder }
    _ = try makeFolder(name)
    return try folder(name)
  }

  /// Gives a file of another folder a second name here.
  package func makeHardLink(
    _ name: String, in folder: Folder, as newName: String
  ) throws(LedgerError) {
    try retrying("link", label(newName)) { () throws(SystemError) in
      try storage.makeHardLink(name, in: folder.descriptor, as: newName, in: descriptor)
    }
  }

  /// Renames a subfolder, durably. Throws if the new name is taken.
  package func renameFolder(_ name: String, to newName: String) throws(LedgerError) {
    try retrying("rename", label(name)) { () throws(SystemError) in
      do throws(SystemError) {
        _ = try storage.status(newName, in: descriptor)
      } catch {
        if error.code != ENOENT { throw error }
        return try storage.rename(name, to: newName, in: descriptor)
      }
      throw SystemError(code: EEXIST)
    }
    try sync()
  }

  /// Removes a subfolder and everything in it, if it exists; follows no link.
  package func removeFolder(_ name: String) throws(LedgerError) {
    guard let folder = try folderIfPresent(name) else { return }
    for entry in try folder.names() {
      if try folder.status(entry)?.kind == .directory {
        try folder.removeFolder(entry)
      } else {
        try folder.unlink(entry)
      }
    }
    try retrying("remove", label(name)) { () throws(SystemError) in
      try storage.removeDirectory(name, in: descriptor)
    }
  }

  /// Opens the parent folder.
  func parent() throws(LedgerError) -> Folder {
    let name = "\(ownLabel)/.."
    let descriptor = try retrying("open", name) { () throws(SystemError) in
      try storage.openDirectory("..", in: self.descriptor)
    }
    return Folder(
      storage, descriptor, path: "\(path)/..", label: "\(name)/", ledgerPath: ledgerPath)
  }
}

// MARK: - Temporary folders

/// A folder for a command's temporary files that only its owner may enter; removed with the value.
package final class TemporaryFolder {
  package let folder: Folder

  /// Creates it in `TMPDIR`, or in `/tmp` if that is not set.
  package init() throws(LedgerError) {
    var parent = "/tmp"
    if let given = getenv("TMPDIR"), given.pointee != 0 { parent = String(cString: given) }
    var template = Array("\(parent)/ledgerctl-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw .system(errno, "create temporary folder", parent)
    }
    folder = try Folder(
      path: String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self))
  }

  /// The path of a file in it, without links, because databases are opened without following links.
  package func path(_ name: String) -> String { "\(folder.path)/\(name)" }

  deinit {
    for name in (try? folder.names()) ?? [] { try? folder.unlink(name) }
    rmdir(folder.path)
  }
}
