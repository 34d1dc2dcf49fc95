// The files of a backup while it is made: written once, synced, and hashed; closed segments shared with an earlier one.
import Base
import Glibc
import Ledger

/// The folder of an unfinished backup and what is in it so far. Not thread-safe.
final class BackupStaging {
  private struct Staged {
    let byteCount: Int
    let sha256: SHA256Digest
    /// Of the ledger's file; nil if its content was compared instead.
    var stamp: FileStamp?
    var isShared = false
  }

  let folder: Folder
  /// Where closed segments may be already.
  private let earlier: Backup?
  private let window = FileWindow()
  private let earlierWindow = FileWindow()
  private var folders: [String: Folder] = [:]
  private var staged: [String: Staged] = [:]
  /// The paths that the current attempt has put.
  private var current: Set<String> = []
  private let checkCancelled: () throws -> Void
  /// Called with the number of bytes read from the ledger's segments.
  private let progress: (Int) -> Void

  init(
    _ folder: Folder, earlier: Backup?, checkCancelled: @escaping () throws -> Void,
    progress: @escaping (Int) -> Void
  ) {
    (self.folder, self.earlier) = (folder, earlier)
    (self.checkCancelled, self.progress) = (checkCancelled, progress)
  }

  var files: [BackupManifest.File] {
    staged.map { .init(path: $0.key, byteCount: $0.value.byteCount, sha256: $0.value.sha256) }
  }

  /// How many bytes are shared with the earlier backup.
  var sharedByteCount: Int {
    staged.values.reduce(0) { $0 + ($1.isShared ? $1.byteCount : 0) }
  }

  // MARK: Attempts

  func beginAttempt() { current = [] }

  /// Lets `endAttempt` remove a file that this attempt has put.
  func withdraw(_ path: String) { current.remove(path) }

  /// Removes what earlier attempts put and this one did not.
  func endAttempt() throws(LedgerError) {
    for path in staged.keys where !current.contains(path) {
      let (folder, leaf) = try location(path)
      try folder.unlink(leaf)
      staged[path] = nil
    }
  }

  /// Makes all names durable.
  func sync() throws(LedgerError) {
    for part in folders.values { try part.sync() }
    try folder.sync()
  }

  private func location(_ path: String) throws(LedgerError) -> (folder: Folder, leaf: String) {
    guard let slash = path.firstIndex(of: "/") else { return (folder, path) }
    let name = String(path[..<slash])
    let known: Folder
    if let open = folders[name] { known = open } else { known = try folder.madeFolder(name) }
    folders[name] = known
    return (known, String(path[path.index(after: slash)...]))
  }

  // MARK: Files

  /// Puts bytes into a file.
  func put(_ path: String, _ content: [UInt8]) throws(LedgerError) {
    current.insert(path)
    let digest = content.withUnsafeBytes { SHA256.hash($0) }
    if let known = staged[path], known.byteCount == content.count, known.sha256 == digest { return }
    let (folder, leaf) = try location(path)
    let file = try folder.makeFile(leaf)
    try file.write(content, offsetBytes: 0)
    try file.syncData()
    staged[path] = Staged(byteCount: content.count, sha256: digest)
  }

  /// Copies the first bytes of a file.
  func copy(_ path: String, _ file: StorageFile, byteCount: Int) throws {
    current.insert(path)
    let (folder, leaf) = try location(path)
    let copy = try folder.makeFile(leaf)
    let digest = try read(file, byteCount) { bytes, offset in
      try copy.write(bytes, offsetBytes: offset)
      return true
    }
    guard let digest else { return }
    try copy.syncData()
    staged[path] = Staged(byteCount: byteCount, sha256: digest)
  }

  /// Puts a closed segment: as a second name of the earlier backup's file if that has the same bytes, else as a copy.
  /// One that an earlier attempt put, and that has not changed since, stays.
  func putSegment(_ path: String, _ file: StorageFile, _ stamp: FileStamp) throws {
    if staged[path]?.stamp == stamp {
      current.insert(path)
      return
    }
    if let digest = try shared(path, file, stamp.byteCount) {
      current.insert(path)
      staged[path] = Staged(
        byteCount: stamp.byteCount, sha256: digest, stamp: stamp, isShared: true)
      return
    }
    try copy(path, file, byteCount: stamp.byteCount)
    let (folder, leaf) = try location(path)
    try folder.openFile(leaf, .readOnly).changePermissions(Format.sealedPermissions)
    staged[path]?.stamp = stamp
  }

  /// Whether a segment of the ledger is no longer the file that was put.
  func isChanged(_ path: String, _ stamp: FileStamp?) -> Bool {
    guard let known = staged[path]?.stamp else { return false }
    return known != stamp
  }

  /// Shares the earlier backup's file; returns its SHA-256, or nil if it has other bytes or can't be shared.
  private func shared(
    _ path: String, _ file: StorageFile, _ byteCount: Int
  ) throws -> SHA256Digest? {
    let (folder, leaf) = try location(path)
    guard let parent = (try? earlier?.folder.folderIfPresent(Format.logDirectoryName)) ?? nil,
      let known = (try? parent.openFileIfPresent(leaf)) ?? nil, let status = try? known.status(),
      status.kind == .regular, status.sizeBytes == byteCount,
      status.permissions == Format.sealedPermissions
    else { return nil }
    var isSame = true
    let digest = try read(file, byteCount) { bytes, offset in
      // What can't be read there is copied again.
      let others = try? earlierWindow.read(known, offset, limit: offset + bytes.count)
      isSame = others.map { $0.count == bytes.count && isEqual($0, bytes) } ?? false
      return isSame
    }
    guard isSame, let digest else { return nil }
    try folder.unlink(leaf)
    // A file system without hard links, or the limit of names: a copy does as well.
    guard (try? folder.makeHardLink(leaf, in: parent, as: leaf)) != nil else { return nil }
    guard try folder.status(leaf)?.isOfSameFile(as: status) == true else {
      try folder.unlink(leaf)
      return nil
    }
    return digest
  }

  private func isEqual(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    guard let first = one.baseAddress, let second = other.baseAddress else { return true }
    return memcmp(first, second, one.count) == 0
  }

  /// Passes the first bytes of a file on; returns their SHA-256, or nil if the body returned false.
  private func read(
    _ file: StorageFile, _ byteCount: Int,
    _ body: (UnsafeRawBufferPointer, _ offset: Int) throws -> Bool
  ) throws -> SHA256Digest? {
    let hasher = SHA256()
    var offset = 0
    while offset < byteCount {
      try checkCancelled()
      let bytes = try window.read(file, offset, limit: byteCount)
      guard !bytes.isEmpty else {
        throw LedgerError(
          .init(verdict: .corrupt, file: file.name, position: nil),
          operation: BackupFolder.operation, cause: "it was truncated")
      }
      hasher.update(bytes)
      guard try body(bytes, offset) else { return nil }
      offset += bytes.count
      progress(bytes.count)
    }
    return hasher.finish()
  }
}
