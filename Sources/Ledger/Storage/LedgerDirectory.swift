// A ledger's directory: creation, opening, and access to its files by name.
import Base
import CCrypto
import Glibc

/// An existing ledger: its directory, opened once and kept open, and the log's directory. Holds no lock.
///
/// The path may contain links; inside the directory, links are not followed.
package struct LedgerDirectory: Sendable {
  /// The path as the user wrote it.
  package let path: String
  /// The content of `ledger.json`.
  package let identity: LedgerIdentity
  /// The directory.
  package let root: Folder
  /// The log's directory, once opened, so that syncing an append needs no new descriptor.
  private let log: Monitor<Folder?>
  /// The lines that an erasure has redacted and that are not all in their segments yet.
  let redactions: RedactionWatch

  private init(_ path: String, _ identity: LedgerIdentity, _ root: Folder) {
    self.path = path
    self.identity = identity
    self.root = root
    log = Monitor(nil)
    redactions = RedactionWatch()
  }

  /// The same open ledger with another identity.
  private init(_ other: LedgerDirectory, _ identity: LedgerIdentity) {
    path = other.path
    self.identity = identity
    root = other.root
    log = other.log
    redactions = other.redactions
  }

  /// The folders of a ledger.
  package static let folderNames = [
    Format.logDirectoryName, "keys", "checkpoints", "projections", "snapshots", "webhooks",
    "erasures", "replication",
  ]
  /// The files in its directory that every command checks first.
  private static let fileNames = [
    Format.identityName, Format.lockName, "config.json", "config.lock", Standby.fileName,
    MergedLedger.markerName,
  ]

  /// Creates a ledger in a new or empty directory, durably. The directory gets mode 0700.
  ///
  /// Throws `invalidInput` if the origin is not a valid name, or if the directory contains anything but the remains
  /// of an earlier attempt.
  package static func create(
    path: String, origin: String, storage: any Storage = PosixStorage(), id: LedgerID? = nil,
    createdAtMs: Int64 = Timestamp.now()
  ) throws(LedgerError) -> LedgerDirectory {
    guard LedgerIdentity.isNewOrigin(origin) else {
      throw LedgerError(
        .invalidInput, operation: "create ledger", object: "origin",
        cause:
          "the name must have 1 to 255 bytes, without spaces, +, \", \\, a scheme, and / at its ends"
      )
    }
    let random = try randomBytes(LedgerID.byteCount)
    guard let newID = id ?? LedgerID(random: random) else {
      throw LedgerError(
        .inputOutput, operation: "create ledger", object: path,
        cause: "cannot generate random numbers")
    }
    let identity = LedgerIdentity(
      origin: origin, id: newID,
      createdAtMs: min(max(createdAtMs, 0), Timestamp.fixedRangeMs.upperBound))
    let directory = LedgerDirectory(path, identity, try makeRoot(path, storage))
    try directory.replaceFile(Format.lockName, with: [])
    let opening = ByteBuffer()
    MemberWriter(opening).opening(
      ledgerID: newID, frontierBefore: Frontier(), lastEventAtMs: 0)
    try directory.replaceFile(
      directory.logPath(Format.segmentName(0)), with: Array(opening.bytes))
    try directory.replaceFile(Format.identityName, with: Array(identity.text.utf8))
    try directory.root.parent().sync()
    return directory
  }

  /// Opens a ledger; reads only `ledger.json`.
  ///
  /// Throws `noLedger`, `newerFormat`, or `corruption` if `ledger.json` is damaged; `invalidInput` if a folder or
  /// file of the ledger is a link or is writable by other users; `standby` if a merge into it is not finished.
  /// - Parameter isForMerge: whether the caller finishes such a merge.
  package static func open(
    path: String, storage: any Storage = PosixStorage(), isForMerge: Bool = false
  ) throws(LedgerError) -> LedgerDirectory {
    let root = try openRoot(path, storage)
    // If the directory is not a ledger, report that first.
    guard try root.status(Format.identityName) != nil else {
      throw LedgerError(
        .noLedger, operation: openOperation, object: path,
        cause: "it contains no \(Format.identityName)")
    }
    try root.refuseIfWritableByOthers(openOperation)
    for name in fileNames { try root.inspect(name, .regular, openOperation) }
    for name in folderNames { try root.inspect(name, .directory, openOperation) }
    if !isForMerge { try MergedLedger.refuseUnfinished(root, path: path) }
    let identity = try readIdentity(root, path)
    let directory = LedgerDirectory(path, identity, root)
    do throws(LedgerError) { _ = try directory.logFolder() } catch {
      // Reading the log reports what is wrong with the directory.
      guard error.code == ENOTDIR else { throw error }
    }
    return directory
  }

  /// A ledger that is being restored, or a backup: it has an identity, but no `ledger.json`.
  package init(unfinished path: String, _ identity: LedgerIdentity, _ root: Folder) {
    self.init(path, identity, root)
  }

  /// The ledger with the current content of `ledger.json`.
  package func reread() throws(LedgerError) -> LedgerDirectory {
    LedgerDirectory(self, try Self.readIdentity(root, path))
  }

  private static let openOperation = "open ledger"

  private static func openRoot(
    _ path: String, _ storage: any Storage
  ) throws(LedgerError) -> Folder {
    do throws(LedgerError) { return try Folder(path: path, storage: storage) } catch {
      let cause =
        switch error.code {
        case ENOENT: "there is no such directory"
        case ENOTDIR: "it is not a directory"
        default: error.cause
        }
      let isMissing = error.code == ENOENT || error.code == ENOTDIR
      throw LedgerError(
        isMissing ? .noLedger : error.kind, operation: openOperation, object: path, cause: cause,
        code: error.code)
    }
  }

  private static func readIdentity(
    _ root: Folder, _ path: String
  ) throws(LedgerError) -> LedgerIdentity {
    let name = Format.identityName
    let file = try root.openFile(name, .readOnly, operation: openOperation)
    // Larger than any real file: a huge one is rejected without reading it.
    let content = ByteBuffer(capacity: 1 << 20)
    content.count = try file.read(into: content.storage, offsetBytes: 0)
    do {
      return try LedgerIdentity(content.bytes)
    } catch {
      switch error {
      case .newer(let version):
        throw LedgerError(
          .newerFormat, operation: openOperation, object: path,
          cause:
            "it has format version \(version); this program knows up to \(Format.versionWithRedactions)"
        )
      case .invalid(let cause):
        throw LedgerError(
          .init(verdict: .corrupt, file: name, position: nil), operation: openOperation,
          cause: cause)
      }
    }
  }

  /// Replaces `ledger.json` durably, with new public keys and the same origin and id.
  package func withPublicKeys(_ publicKeys: [String]) throws(LedgerError) -> LedgerDirectory {
    var identity = identity
    identity.publicKeys = publicKeys
    try replaceFile(Format.identityName, with: Array(identity.text.utf8))
    return LedgerDirectory(self, identity)
  }

  /// Raises the format version in `ledger.json` durably, so that programs that do not know redacted lines reject the
  /// ledger from now on. Later calls do nothing.
  package func allowingRedactions() throws(LedgerError) -> LedgerDirectory {
    let current = try reread()
    if current.identity.formatVersion >= Format.versionWithRedactions { return current }
    try makePrivateDirectory(KeyStore.directoryName)
    // A new key also rewrites the file, under the same lock.
    return try KeyStore(self).withLock(waits: true) { () throws(LedgerError) in
      var identity = try reread().identity
      if identity.formatVersion < Format.versionWithRedactions {
        identity.formatVersion = Format.versionWithRedactions
        try replaceFile(Format.identityName, with: Array(identity.text.utf8))
      }
      return LedgerDirectory(self, identity)
    }
  }

  /// The full path of a file, given its path inside the ledger.
  package func fullPath(_ name: String) -> String { "\(path)/\(name)" }

  /// The path of a log file, relative to the ledger.
  func logPath(_ name: String) -> String { "\(Format.logDirectoryName)/\(name)" }

  /// The folder and the name of a path inside the ledger; the folder is nil if it does not exist.
  private func locationIfPresent(
    _ name: String
  ) throws(LedgerError) -> (folder: Folder?, name: String) {
    guard let slash = name.lastIndex(of: "/") else { return (root, name) }
    return (try folderIfPresent(String(name[..<slash])), String(name[name.index(after: slash)...]))
  }

  private func location(_ name: String) throws(LedgerError) -> (folder: Folder, name: String) {
    let location = try locationIfPresent(name)
    guard let folder = location.folder else { throw .system(ENOENT, "open", name) }
    return (folder, location.name)
  }

  /// - Parameter isLookedUp: whether to check if the name now refers to another directory, for example because a
  ///   backup was restored while a reader was open.
  private func logFolder(isLookedUp: Bool = false) throws(LedgerError) -> Folder? {
    try log.withLock { log throws(LedgerError) in
      if isLookedUp, let known = log {
        let named = try root.status(Format.logDirectoryName)
        if try named?.isOfSameFile(as: known.ownStatus()) != true { log = nil }
      }
      if log == nil { log = try root.folderIfPresent(Format.logDirectoryName) }
      return log
    }
  }

  /// A folder of the ledger; nil if there is none.
  ///
  /// Throws if it is a symbolic link or if other users may write to it.
  package func folderIfPresent(_ name: String) throws(LedgerError) -> Folder? {
    switch name {
    case "": root
    case Format.logDirectoryName: try logFolder()
    default: try root.folderIfPresent(name)
    }
  }

  private func folder(_ name: String) throws(LedgerError) -> Folder {
    guard let folder = try folderIfPresent(name) else { throw .system(ENOENT, "open", name) }
    return folder
  }

  func openFile(
    _ name: String, _ access: FileAccess, errorName: String? = nil
  ) throws(LedgerError) -> StorageFile {
    let (folder, leaf) = try location(name)
    return try folder.openFile(leaf, access, object: errorName ?? name)
  }

  /// Creates a new file; removes one that an earlier attempt left under its name.
  func makeFile(_ name: String, errorName: String? = nil) throws(LedgerError) -> StorageFile {
    let (folder, leaf) = try location(name)
    return try folder.makeFile(leaf, object: errorName ?? name)
  }

  /// Opens a file for reading; nil if there is none.
  func openFileIfPresent(
    _ name: String, isSecret: Bool = false
  ) throws(LedgerError) -> StorageFile? {
    let (folder, leaf) = try locationIfPresent(name)
    return try folder?.openFileIfPresent(leaf, isSecret: isSecret)
  }

  /// The status of a name; nil if it does not exist.
  func statusIfPresent(_ name: String) throws(LedgerError) -> FileStatus? {
    let (folder, leaf) = try locationIfPresent(name)
    return try folder?.status(leaf)
  }

  /// As above, for a file that is opened later. Throws if it must not be used.
  func inspectedStatus(_ name: String) throws(LedgerError) -> FileStatus? {
    let (folder, leaf) = try locationIfPresent(name)
    try folder?.inspect(leaf, .regular, "open")
    return try folder?.status(leaf)
  }

  func list(_ name: String) throws(LedgerError) -> [String] {
    if let names = try listIfPresent(name) { return names }
    throw .system(ENOENT, "list", name)
  }

  /// The names in a directory; nil if there is none.
  func listIfPresent(_ name: String) throws(LedgerError) -> [String]? {
    let folder: Folder?
    do throws(LedgerError) {
      folder =
        name == Format.logDirectoryName
        ? try logFolder(isLookedUp: true) : try folderIfPresent(name)
    } catch {
      if error.code == ENOTDIR { return nil }
      throw error
    }
    return try folder?.names()
  }

  /// Removes a file, if it exists.
  func unlink(_ name: String) throws(LedgerError) {
    let (folder, leaf) = try locationIfPresent(name)
    try folder?.unlink(leaf)
  }

  func syncLogDirectory() throws(LedgerError) { try folder(Format.logDirectoryName).sync() }

  /// Writes a file atomically: writes and syncs a temporary file, renames it, and syncs the directory.
  /// - Returns: the file, open for writing.
  @discardableResult
  func replaceFile(_ name: String, with content: [UInt8]) throws(LedgerError) -> StorageFile {
    let (folder, leaf) = try location(name)
    return try folder.replaceFile(leaf, with: content)
  }

  /// Gives a completely written file its name, durably.
  func putInPlace(
    _ file: StorageFile, _ temporary: String, as name: String
  ) throws(LedgerError) {
    let (folder, leaf) = try location(name)
    let temporaryLeaf = temporary.dropFirst(name.count - leaf.count)
    try folder.putInPlace(file, String(temporaryLeaf), as: leaf)
  }

  /// Random bytes for ids and salts.
  static func randomBytes(_ count: Int) throws(LedgerError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    if RAND_bytes(&bytes, Int32(count)) != 1 {
      throw LedgerError(
        .inputOutput, operation: "draw random bytes", object: "libcrypto", cause: "it failed")
    }
    return bytes
  }

  /// Creates and opens the directory of a new ledger, and the log's directory in it.
  private static func makeRoot(
    _ path: String, _ storage: any Storage
  ) throws(LedgerError) -> Folder {
    let isNew = try retrying("create directory", path) { () throws(SystemError) in
      do throws(SystemError) {
        try storage.makeDirectory(path, permissions: Format.directoryPermissions)
        return true
      } catch {
        if error.code == EEXIST { return false }
        throw error
      }
    }
    let root = try Folder(path: path, storage: storage)
    if !isNew {
      // Other users may have put files there or hold files open.
      try root.refuseIfWritableByOthers(createOperation)
      try refuseUnlessEmpty(root, path)
    }
    _ = try root.makeFolder(Format.logDirectoryName)
    try root.changePermissions(Format.directoryPermissions)
    return root
  }

  private static let createOperation = "create ledger"

  private static func refuseUnlessEmpty(_ root: Folder, _ path: String) throws(LedgerError) {
    func refusal(_ cause: String) -> LedgerError {
      LedgerError(.invalidInput, operation: createOperation, object: path, cause: cause)
    }
    let names = Set(try root.names())
    if names.contains(Format.identityName) { throw refusal("it is a ledger already") }
    // The only accepted content: what an interrupted attempt can have left.
    let remains = [Format.lockName, Format.identityName].flatMap {
      [$0, $0 + Format.temporarySuffix]
    }
    let log = try root.folderIfPresent(Format.logDirectoryName)
    let logNames = try log?.names() ?? []
    let first = Format.segmentName(0)
    guard names.subtracting(remains).subtracting([Format.logDirectoryName]).isEmpty,
      Set(logNames).subtracting([first, first + Format.temporarySuffix]).isEmpty
    else { throw refusal("the directory is not empty") }
    guard let log, let segment = try log.status(first) else { return }
    let openingByteCount =
      Format.memberPrefixByteCount + Format.openingFixedByteCount + Format.emptyDeflate.count
      + Format.memberFooterByteCount
    if segment.sizeBytes > openingByteCount {
      throw refusal("it has a log with events, but no ledger.json")
    }
  }
}
