// A ledger's directory: how it comes into being, and the files in it by their names.
import CCrypto
import Glibc
import Time

/// An existing ledger. Holds no descriptor and no lock.
package struct LedgerDirectory: Sendable {
  /// The path as it was given.
  package let path: String
  /// What `ledger.json` says.
  package let identity: LedgerIdentity
  /// The door to the files.
  package let storage: any Storage

  /// Makes a ledger in a new or empty directory, durably. The directory gets mode 0700.
  ///
  /// Throws `invalidInput` if the origin is no valid name or the directory holds anything but the
  /// remains of an earlier attempt.
  package static func create(
    path: String, origin: String, storage: any Storage = PosixStorage(), id: LedgerID? = nil,
    createdAtMs: Int64 = Timestamp.now()
  ) throws(LedgerError) -> LedgerDirectory {
    guard LedgerIdentity.isValidOrigin(origin) else {
      throw LedgerError(
        .invalidInput, operation: "create ledger", object: "origin",
        cause: "a name of 1 to 255 bytes without spaces, +, \" and \\ is needed")
    }
    let random = try randomBytes(LedgerID.byteCount)
    guard let newID = id ?? LedgerID(random: random) else {
      throw LedgerError(
        .inputOutput, operation: "create ledger", object: path, cause: "no random numbers")
    }
    let identity = LedgerIdentity(
      origin: origin, id: newID,
      createdAtMs: min(max(createdAtMs, 0), Timestamp.fixedRangeMs.upperBound))
    let directory = LedgerDirectory(path: path, identity: identity, storage: storage)
    try directory.prepare()
    try directory.replaceFile(Format.lockName, with: [])
    let opening = ByteBuffer()
    MemberWriter(opening).opening(
      ledgerID: newID, frontierBefore: Frontier(), lastEventAtMs: 0)
    try directory.replaceFile(
      directory.logPath(Format.segmentName(0)), with: Array(opening.bytes))
    try directory.replaceFile(Format.identityName, with: Array(identity.text.utf8))
    try directory.syncParent()
    return directory
  }

  /// Opens a ledger; reads nothing but `ledger.json`.
  ///
  /// Throws `noLedger`, `newerFormat`, or `corruption` if `ledger.json` is damaged.
  package static func open(
    path: String, storage: any Storage = PosixStorage()
  ) throws(LedgerError) -> LedgerDirectory {
    let operation = "open ledger"
    let name = Format.identityName
    let file = try openIdentity(path, storage, operation)
    // Larger than any real one: a huge file is refused, not read.
    let content = ByteBuffer(capacity: 1 << 20)
    content.count = try file.read(into: content.storage, offsetBytes: 0)
    do {
      let identity = try LedgerIdentity(content.bytes)
      return LedgerDirectory(path: path, identity: identity, storage: storage)
    } catch {
      switch error {
      case .newer(let version):
        throw LedgerError(
          .newerFormat, operation: operation, object: path,
          cause: "it has format version \(version); this program knows up to \(Format.version)")
      case .invalid(let cause):
        throw LedgerError(
          .init(verdict: .corrupt, file: name, position: nil), operation: operation, cause: cause)
      }
    }
  }

  private static func openIdentity(
    _ path: String, _ storage: any Storage, _ operation: String
  ) throws(LedgerError) -> StorageFile {
    let name = Format.identityName
    let fullName = "\(path)/\(name)"
    let opened = try retrying(operation, fullName) {
      () throws(SystemError) -> Result<Int32, SystemError> in
      do throws(SystemError) {
        return .success(try storage.open(fullName, .readOnly, permissions: 0))
      } catch {
        if error.code == ENOENT || error.code == ENOTDIR { return .failure(error) }
        throw error
      }
    }
    switch opened {
    case .success(let descriptor):
      return StorageFile(storage: storage, descriptor: descriptor, name: name)
    case .failure(let error):
      let cause =
        if error.code == ENOTDIR {
          "it is no directory"
        } else if (try? storage.status(path: path)) == nil {
          "there is no such directory"
        } else {
          "there is no \(name) in it"
        }
      throw LedgerError(.noLedger, operation: operation, object: path, cause: cause)
    }
  }

  /// Replaces `ledger.json`, durably, with the same origin and id and other public keys.
  package func withPublicKeys(_ publicKeys: [String]) throws(LedgerError) -> LedgerDirectory {
    var identity = identity
    identity.publicKeys = publicKeys
    try replaceFile(Format.identityName, with: Array(identity.text.utf8))
    return LedgerDirectory(path: path, identity: identity, storage: storage)
  }

  /// The full path of a file that is named relative to the ledger.
  package func fullPath(_ name: String) -> String { "\(path)/\(name)" }

  /// The path of a log file, relative to the ledger.
  func logPath(_ name: String) -> String { "\(Format.logDirectoryName)/\(name)" }

  func openFile(
    _ name: String, _ access: FileAccess, errorName: String? = nil
  ) throws(LedgerError) -> StorageFile {
    let descriptor = try retrying("open", errorName ?? name) { () throws(SystemError) in
      try storage.open(fullPath(name), access, permissions: Format.filePermissions)
    }
    return StorageFile(storage: storage, descriptor: descriptor, name: errorName ?? name)
  }

  /// Opens a file for reading; nil if there is none.
  func openFileIfPresent(_ name: String) throws(LedgerError) -> StorageFile? {
    let descriptor = try retrying("open", name) { () throws(SystemError) -> Int32? in
      do throws(SystemError) {
        return try storage.open(fullPath(name), .readOnly, permissions: 0)
      } catch {
        if error.code == ENOENT { return nil }
        throw error
      }
    }
    return descriptor.map { StorageFile(storage: storage, descriptor: $0, name: name) }
  }

  /// What the system knows about a file; nil if there is none.
  func statusIfPresent(_ name: String) throws(LedgerError) -> FileStatus? {
    try retrying("examine", name) { () throws(SystemError) -> FileStatus? in
      do throws(SystemError) {
        return try storage.status(path: fullPath(name))
      } catch {
        if error.code == ENOENT { return nil }
        throw error
      }
    }
  }

  func list(_ name: String) throws(LedgerError) -> [String] {
    try retrying("list", name) { () throws(SystemError) in try storage.list(fullPath(name)) }
  }

  /// The names in a directory; nil if there is none.
  func listIfPresent(_ name: String) throws(LedgerError) -> [String]? {
    try retrying("list", name) { () throws(SystemError) -> [String]? in
      do throws(SystemError) { return try storage.list(fullPath(name)) } catch {
        if error.code == ENOENT || error.code == ENOTDIR { return nil }
        throw error
      }
    }
  }

  func rename(_ name: String, to newName: String) throws(LedgerError) {
    try retrying("rename", name) { () throws(SystemError) in
      try storage.rename(fullPath(name), to: fullPath(newName))
    }
  }

  /// Removes a file, if it is there.
  func unlink(_ name: String) throws(LedgerError) {
    try retrying("remove", name) { () throws(SystemError) in
      do throws(SystemError) {
        try storage.unlink(fullPath(name))
      } catch {
        if error.code != ENOENT { throw error }
      }
    }
  }

  func syncDirectory(_ name: String) throws(LedgerError) {
    do {
      try storage.syncDirectory(name.isEmpty ? path : fullPath(name))
    } catch { throw .system(error.code, "sync", name.isEmpty ? path : name) }
  }

  func syncLogDirectory() throws(LedgerError) { try syncDirectory(Format.logDirectoryName) }

  /// Makes a file appear whole or not at all: written beside, synced, renamed, directory synced.
  func replaceFile(_ name: String, with content: [UInt8]) throws(LedgerError) {
    let buffer = ByteBuffer(capacity: content.count)
    content.withUnsafeBytes { buffer.append($0) }
    _ = try replaceFile(name, with: buffer)
  }

  /// The same, given a buffer; returns the file, open for writing.
  @discardableResult
  func replaceFile(_ name: String, with content: ByteBuffer) throws(LedgerError) -> StorageFile {
    let temporary = name + Format.temporarySuffix
    let file = try openFile(temporary, .replace, errorName: name)
    try file.write(content.bytes, offsetBytes: 0)
    try putInPlace(file, temporary, as: name)
    return file
  }

  /// Gives a file that was written whole its name, durably.
  func putInPlace(
    _ file: StorageFile, _ temporary: String, as name: String
  ) throws(LedgerError) {
    try file.syncData()
    try rename(temporary, to: name)
    let parent = name.lastIndex(of: "/").map { String(name[..<$0]) } ?? ""
    try syncDirectory(parent)
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

  private func prepare() throws(LedgerError) {
    let isNew = try makeDirectory("")
    if !isNew { try refuseUnlessEmpty() }
    _ = try makeDirectory(Format.logDirectoryName)
    let directory = try openFile(".", .readOnly)
    try directory.changePermissions(Format.directoryPermissions)
  }

  /// Makes a directory; false if it exists.
  func makeDirectory(_ name: String) throws(LedgerError) -> Bool {
    let fullName = name.isEmpty ? path : fullPath(name)
    return try retrying("create directory", fullName) { () throws(SystemError) in
      do throws(SystemError) {
        try storage.makeDirectory(fullName, permissions: Format.directoryPermissions)
        return true
      } catch {
        if error.code == EEXIST { return false }
        throw error
      }
    }
  }

  private func refuseUnlessEmpty() throws(LedgerError) {
    func refusal(_ cause: String) -> LedgerError {
      LedgerError(.invalidInput, operation: "create ledger", object: path, cause: cause)
    }
    let names = Set(try list("."))
    if names.contains(Format.identityName) { throw refusal("there is a ledger already") }
    // What an attempt that was cut short can have left, and nothing else, may be built upon.
    let remains = [Format.lockName, Format.identityName].flatMap {
      [$0, $0 + Format.temporarySuffix]
    }
    var logNames: [String] = []
    if names.contains(Format.logDirectoryName) { logNames = try list(Format.logDirectoryName) }
    let first = Format.segmentName(0)
    guard names.subtracting(remains).subtracting([Format.logDirectoryName]).isEmpty,
      Set(logNames).subtracting([first, first + Format.temporarySuffix]).isEmpty
    else { throw refusal("the directory is not empty") }
    guard logNames.contains(first) else { return }
    let sizeBytes = try openFile(logPath(first), .readOnly).sizeBytes()
    let openingByteCount =
      Format.memberPrefixByteCount + Format.openingFixedByteCount + Format.emptyDeflate.count
      + Format.memberFooterByteCount
    if sizeBytes > openingByteCount { throw refusal("its log holds events but no ledger.json") }
  }

  private func syncParent() throws(LedgerError) {
    do {
      try storage.syncDirectory("\(path)/..")
    } catch { throw .system(error.code, "sync", "\(path)/..") }
  }
}
