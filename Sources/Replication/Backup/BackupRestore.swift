// Restores a ledger from a backup.
import Base
package import Ledger

/// Makes a ledger of a backup in a new directory. Running it again continues an interrupted restore.
package struct BackupRestore {
  package var storage: any Storage = PosixStorage()
  /// Called at intervals.
  package var progress: (LedgerBackup.Phase, _ doneBytes: Int, _ totalBytes: Int) -> Void = {
    _, _, _ in
  }
  /// Throws to cancel.
  package var checkCancelled: () throws -> Void = {}
  /// The heads to compare with, for the restored ledger.
  package var givenHeads: (LedgerDirectory) throws -> [GivenHead] = { _ in [] }

  package init() {}

  /// The result of a restore.
  package struct Report {
    package let backup: String
    package let manifest: BackupManifest
    package let audit: AuditReport
  }

  /// Finds the backup at a path: a backup, or the newest one in a folder of backups.
  package func backup(at path: String) throws -> Backup {
    let folder = try BackupFolder.opened(path, storage, UnfinishedLedger.operation)
    try folder.refuseIfWritableByOthers(UnfinishedLedger.operation)
    let names = try folder.names()
    if names.contains(BackupManifest.fileName) || names.contains(BackupManifest.identityName) {
      return try Backup(name: path, folder)
    }
    guard let newest = names.filter(BackupName.isOne).max() else {
      throw CopyError.refused(object: path, cause: "it is not a backup, and holds none")
    }
    return try BackupFolder(path: path, storage: storage).backup(newest)
  }

  /// Restores a backup.
  ///
  /// Throws `CopyError`, `LedgerError`, and what the closures throw; the directory is then not a ledger.
  package func run(_ backup: Backup, to path: String) throws -> Report {
    let manifest = backup.manifest
    guard let identityFile = manifest.files.first(where: { $0.path == BackupManifest.identityName })
    else { preconditionFailure("a manifest names an identity") }
    var faults = try backup.faultsOfNames()
    var identity: [UInt8] = []
    if let fault = try backup.read(identityFile, { bytes, _ in identity += bytes }) {
      // Nothing can be made without it; all other faults are named too.
      faults.append(fault)
      for file in manifest.files where file != identityFile {
        if let fault = try backup.read(file, checkCancelled: checkCancelled) {
          faults.append(fault)
        }
      }
      throw CopyError.faults(faults.sorted { $0.object < $1.object })
    }
    let target = try UnfinishedLedger(
      path: path, identity: identity, mark: BackupManifest.fileName, content: manifest.bytes,
      storage: storage)
    let heads = try givenHeads(target.directory)
    var done = 0
    for file in manifest.files where file != identityFile {
      let fault = try install(file, of: backup, in: target) {
        done += $0
        progress(.copying, done, manifest.byteCount)
      }
      if let fault { faults.append(fault) }
    }
    if !faults.isEmpty { throw CopyError.faults(faults.sorted { $0.object < $1.object }) }
    try removeOthers(manifest, target)
    let audit = try BackupAudit.run(
      target.directory, head: (manifest.size, manifest.root), given: heads
    ) {
      try checkCancelled()
      progress(.checking, $0, $1)
    }
    _ = try target.finish(removing: BackupManifest.fileName)
    return Report(backup: backup.name, manifest: manifest, audit: audit)
  }

  /// Where a file of a backup belongs in a ledger.
  private func location(
    _ path: String, _ target: UnfinishedLedger
  ) throws(LedgerError) -> (folder: Folder, leaf: String) {
    guard let slash = path.firstIndex(of: "/") else { return (target.directory.root, path) }
    let folder = try target.folder(String(path[..<slash]))
    return (folder, String(path[path.index(after: slash)...]))
  }

  /// Copies a file to its place, durably; returns what is wrong with it. One that is in place already stays.
  private func install(
    _ file: BackupManifest.File, of backup: Backup, in target: UnfinishedLedger,
    progress: (Int) -> Void
  ) throws -> CopyFault? {
    let (folder, leaf) = try location(file.path, target)
    let known = try folder.openFileIfPresent(leaf, isSecret: true)
    if let known, try known.sizeBytes() == file.byteCount,
      try FileHash.sha256(known, 0..<file.byteCount) == file.sha256
    {
      return try backup.read(file, checkCancelled: checkCancelled) { bytes, _ in
        progress(bytes.count)
      }
    }
    let temporary = leaf + Format.temporarySuffix
    let copy = try folder.makeFile(temporary)
    try folder.giveNewFileToOwner(copy)
    let fault = try backup.read(file, checkCancelled: checkCancelled) { bytes, offset in
      try copy.write(bytes, offsetBytes: offset)
      progress(bytes.count)
    }
    if let fault {
      try folder.unlink(temporary)
      return fault
    }
    // A closed segment is read-only; nothing else is.
    if try backup.status(file.path)?.permissions == Format.sealedPermissions {
      try copy.changePermissions(Format.sealedPermissions)
    }
    try folder.putInPlace(copy, temporary, as: leaf)
    return nil
  }

  /// Removes what an interrupted restore of another backup left.
  private func removeOthers(
    _ manifest: BackupManifest, _ target: UnfinishedLedger
  ) throws(LedgerError) {
    let known = Set(manifest.files.map(\.path))
    for name in BackupManifest.folderNames {
      guard let folder = try target.directory.root.folderIfPresent(name) else { continue }
      for leaf in try folder.names() where !known.contains("\(name)/\(leaf)") {
        try folder.unlink(leaf)
      }
    }
    for name in BackupManifest.rootNames where !known.contains(name) {
      try target.directory.root.unlink(name)
    }
  }
}
