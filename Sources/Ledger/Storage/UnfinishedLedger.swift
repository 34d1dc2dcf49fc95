// The directory of a ledger that is being restored: everything comes into place before `ledger.json`.
import Base
import Glibc

/// A directory that becomes a ledger when `finish` is called. Until then no command takes it for one. A note
/// (`Standby`) marks it from the start, so that what an interrupted restore left is told from anything else.
package struct UnfinishedLedger {
  package static let operation = "restore"

  package let path: String
  /// The content of the coming `ledger.json`.
  package let identityBytes: [UInt8]
  /// The ledger as it will be.
  package let directory: LedgerDirectory
  package let log: Folder

  /// Makes or opens the directory, which must be new, empty, or left by an interrupted restore.
  ///
  /// Throws `invalidInput` for any other directory, `corruption` if the identity is not one, and `newerFormat`.
  package init(
    path: String, identity bytes: [UInt8], note: Standby,
    storage: any Storage = PosixStorage()
  ) throws(LedgerError) {
    let identity = try LedgerIdentity(copied: bytes, path: path)
    let root = try Self.makeRoot(path, storage)
    try Self.refuseUnlessOurs(root, path)
    let directory = LedgerDirectory(unfinished: path, identity, root)
    if try Standby(of: directory) == nil {
      try note.write(to: directory)
      try root.parent().sync()
    }
    (self.path, identityBytes, self.directory) = (path, bytes, directory)
    log = try Self.folder(Format.logDirectoryName, in: root)
  }

  /// A folder of the ledger; made if there is none.
  package func folder(_ name: String) throws(LedgerError) -> Folder {
    name == Format.logDirectoryName ? log : try Self.folder(name, in: directory.root)
  }

  private static func folder(_ name: String, in root: Folder) throws(LedgerError) -> Folder {
    let isNew = try root.makeFolder(name)
    let folder = try root.folder(name)
    if isNew {
      try root.giveNewFolderToOwner(folder)
      try root.sync()
    }
    return folder
  }

  /// Makes the directory a ledger, durably.
  package func finish(note: Standby) throws(LedgerError) -> LedgerDirectory {
    try log.sync()
    try note.write(to: directory)
    if try directory.root.status(Format.lockName) == nil {
      try directory.root.replaceFile(Format.lockName, with: [])
    }
    try directory.root.replaceFile(Format.identityName, with: identityBytes)
    try directory.root.parent().sync()
    return try directory.reread()
  }

  // MARK: The directory

  private static func makeRoot(
    _ path: String, _ storage: any Storage
  ) throws(LedgerError) -> Folder {
    _ = try retrying("create directory", path) { () throws(SystemError) in
      do throws(SystemError) {
        try storage.makeDirectory(path, permissions: Format.directoryPermissions)
      } catch { if error.code != EEXIST { throw error } }
    }
    let root = try Folder(path: path, storage: storage)
    try root.refuseIfWritableByOthers(operation)
    return root
  }

  private static func refuseUnlessOurs(_ root: Folder, _ path: String) throws(LedgerError) {
    func refusal(_ cause: String) -> LedgerError {
      LedgerError(.invalidInput, operation: operation, object: path, cause: cause)
    }
    let names = try root.names()
    if names.contains(Format.identityName) { throw refusal("it is a ledger already") }
    let isMarked = names.contains(Standby.fileName)
    let known: Set<String> =
      isMarked
      ? [
        Format.logDirectoryName, CheckpointStore.directoryName, Format.lockName,
        SignedHeads.fileName, Standby.fileName, Format.identityName, "webhooks",
        RedactionFile.directoryName,
      ] : [Standby.fileName]
    let isKnown = names.allSatisfy { name in
      known.contains(name)
        || name.hasSuffix(Format.temporarySuffix)
          && known.contains(String(name.dropLast(Format.temporarySuffix.count)))
    }
    guard isKnown else { throw refusal("the directory is not empty") }
    try root.changePermissions(Format.directoryPermissions)
  }
}

extension LedgerIdentity {
  /// Reads a copy of a `ledger.json`.
  /// - Parameter path: for errors.
  package init(copied bytes: [UInt8], path: String) throws(LedgerError) {
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(Fault) in try LedgerIdentity(bytes) }
    }
    do throws(Fault) { self = try result.get() } catch {
      switch error {
      case .newer(let version):
        throw LedgerError(
          .newerFormat, operation: UnfinishedLedger.operation, object: path,
          cause: "the copy has format version \(version); this program knows up to "
            + "\(Format.versionWithRedactions)")
      case .invalid(let cause):
        throw LedgerError(
          .init(verdict: .corrupt, file: Format.identityName, position: nil),
          operation: UnfinishedLedger.operation, cause: cause)
      }
    }
  }
}
