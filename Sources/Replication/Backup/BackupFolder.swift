// A folder of backups: what lies in it, and the files of one backup.
import Base
import Glibc
package import Ledger

/// A folder that holds backups, opened once.
package struct BackupFolder {
  static let operation = "backup"

  package let path: String
  let folder: Folder

  /// Throws `invalidInput` if there is no such directory, or if others may write to it.
  package init(
    path: String, storage: any Storage = PosixStorage()
  ) throws(LedgerError) {
    self.path = path
    folder = try Self.opened(path, storage, Self.operation)
    try folder.refuseIfWritableByOthers(Self.operation)
  }

  /// Opens a directory. Throws `invalidInput` if there is none.
  static func opened(
    _ path: String, _ storage: any Storage, _ operation: String
  ) throws(LedgerError) -> Folder {
    do throws(LedgerError) { return try Folder(path: path, storage: storage) } catch {
      guard error.code == ENOENT || error.code == ENOTDIR else { throw error }
      throw LedgerError(
        .invalidInput, operation: operation, object: path,
        cause: error.code == ENOENT ? "there is no such directory" : "it is not a directory")
    }
  }

  package func status() throws(LedgerError) -> FileStatus { try folder.ownStatus() }

  /// The names of the backups, oldest first.
  package func names() throws(LedgerError) -> [String] {
    try folder.names().filter(BackupName.isOne).sorted()
  }

  /// The names of backups that were begun and not finished.
  package func unfinishedNames() throws(LedgerError) -> [String] {
    try folder.names().compactMap(BackupName.ofUnfinished).sorted()
  }

  /// Opens a backup.
  ///
  /// Throws `CopyError.faults` if its folder can't be opened, or its manifest is missing or damaged.
  package func backup(_ name: String) throws(CopyError) -> Backup {
    let found: Folder?
    do throws(LedgerError) { found = try folder.folderIfPresent(name) } catch {
      throw .fault(CopyFault(object: name, cause: error.cause))
    }
    guard let found else {
      throw .refused(object: "\(path)/\(name)", cause: "there is no such backup")
    }
    return try Backup(name: name, found)
  }
}

/// One backup, opened: its manifest, and its files by path.
package struct Backup {
  package let name: String
  package let manifest: BackupManifest
  let folder: Folder

  /// - Parameter name: for faults.
  init(name: String, _ folder: Folder) throws(CopyError) {
    (self.name, self.folder) = (name, folder)
    let object = "\(name)/\(BackupManifest.fileName)"
    func fault(_ cause: String) -> CopyError { .fault(CopyFault(object: object, cause: cause)) }
    let bytes: [UInt8]?
    do throws(LedgerError) {
      bytes = try folder.openFileIfPresent(BackupManifest.fileName)?
        .readSmall(byteCountMax: BackupManifest.byteCountMax)
    } catch { throw fault(error.cause) }
    guard let bytes else { throw fault("it is missing") }
    guard let manifest = BackupManifest(bytes) else { throw fault("it is damaged") }
    self.manifest = manifest
  }

  package func status() throws(LedgerError) -> FileStatus { try folder.ownStatus() }

  /// A file of the backup.
  private func opened(_ path: String) throws(LedgerError) -> StorageFile? {
    guard let slash = path.firstIndex(of: "/") else { return try folder.openFileIfPresent(path) }
    return try folder.folderIfPresent(String(path[..<slash]))?
      .openFileIfPresent(String(path[path.index(after: slash)...]))
  }

  /// The status of a file; nil if it is missing.
  func status(_ path: String) throws(LedgerError) -> FileStatus? {
    guard let slash = path.firstIndex(of: "/") else { return try folder.status(path) }
    return try folder.folderIfPresent(String(path[..<slash]))?
      .status(String(path[path.index(after: slash)...]))
  }

  /// Opens a file if it has the size that the manifest names; otherwise returns what is wrong with it.
  private func sized(_ file: BackupManifest.File) -> Result<StorageFile, CopyFault> {
    func fault(_ cause: String) -> Result<StorageFile, CopyFault> {
      .failure(CopyFault(object: "\(name)/\(file.path)", cause: cause))
    }
    do throws(LedgerError) {
      guard let opened = try opened(file.path) else { return fault("it is missing") }
      let byteCount = try opened.sizeBytes()
      guard byteCount == file.byteCount else {
        return fault("it has \(byteCount) bytes instead of \(file.byteCount)")
      }
      return .success(opened)
    } catch { return fault(error.cause) }
  }

  /// What is wrong with a file, without reading it; nil if it is there with the right size.
  func faultOfSize(_ file: BackupManifest.File) -> CopyFault? {
    if case .failure(let fault) = sized(file) { return fault }
    return nil
  }

  /// Reads a file whole; returns what is wrong with it.
  /// - Parameters:
  ///   - checkCancelled: called at intervals; throws to cancel.
  ///   - sink: receives the bytes and their offset, before they are known to be right.
  func read(
    _ file: BackupManifest.File, checkCancelled: () throws -> Void = {},
    _ sink: (UnsafeRawBufferPointer, Int) throws -> Void = { _, _ in }
  ) throws -> CopyFault? {
    func fault(_ cause: String) -> CopyFault {
      CopyFault(object: "\(name)/\(file.path)", cause: cause)
    }
    let opened: StorageFile
    switch sized(file) {
    case .success(let file): opened = file
    case .failure(let fault): return fault
    }
    let hasher = SHA256()
    let window = FileWindow()
    var offset = 0
    while offset < file.byteCount {
      try checkCancelled()
      let bytes: UnsafeRawBufferPointer
      do throws(LedgerError) {
        bytes = try window.read(opened, offset, limit: file.byteCount)
      } catch { return fault(error.cause) }
      if bytes.isEmpty { return fault("it was truncated") }
      hasher.update(bytes)
      try sink(bytes, offset)
      offset += bytes.count
    }
    return hasher.finish() == file.sha256
      ? nil : fault("its SHA-256 is not the one in \(BackupManifest.fileName)")
  }

  /// Files that the manifest does not name: nobody may add any to a backup.
  func faultsOfNames() throws(LedgerError) -> [CopyFault] {
    let known = Set(manifest.files.map(\.path) + [BackupManifest.fileName])
    var faults: [CopyFault] = []
    func check(_ path: String) {
      if known.contains(path) { return }
      faults.append(
        CopyFault(
          object: "\(name)/\(path)", cause: "\(BackupManifest.fileName) does not name it"))
    }
    for entry in try folder.names().sorted() {
      guard BackupManifest.folderNames.contains(entry),
        try folder.status(entry)?.kind == .directory, let part = try folder.folderIfPresent(entry)
      else {
        check(entry)
        continue
      }
      for leaf in try part.names().sorted() { check("\(entry)/\(leaf)") }
    }
    return faults
  }
}

/// Memory for reading a file piece by piece.
final class FileWindow {
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)

  deinit { buffer.deallocate() }

  /// The bytes from an offset on, as many as there is room for; valid until the next call.
  func read(
    _ file: StorageFile, _ offset: Int, limit: Int
  ) throws(LedgerError) -> UnsafeRawBufferPointer {
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, limit - offset)])
    let count = try file.read(into: part, offsetBytes: offset)
    return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(part)[..<count])
  }
}
