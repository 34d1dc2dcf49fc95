// The interface between the ledger and the system's files, and the ledger's open files.
package import Base
import Glibc

/// How a file is opened.
package enum FileAccess: Sendable {
  /// An existing file, for reading.
  case readOnly
  /// An existing file, for reading and writing.
  case readWrite
  /// A file for reading and writing, created if there is none.
  case readWriteOrCreate
  /// A new file for reading and writing; fails if the name is taken, even by a link (`EEXIST`).
  case create
}

/// The kind of a directory entry.
package enum FileKind: Sendable {
  case regular, directory, link, other
}

/// What the system knows about a file.
package struct FileStatus: Sendable, Equatable {
  /// The file's kind.
  package let kind: FileKind
  /// The size in bytes.
  package let sizeBytes: Int
  /// When its content last changed, in epoch nanoseconds.
  package let modifiedAtNs: Int64
  /// When its content, owner, permissions or names last changed, in epoch nanoseconds.
  package let changedAtNs: Int64
  /// The permission bits.
  package let permissions: UInt32
  /// The user who owns the file.
  package let owner: UInt32
  /// The group that owns the file.
  package let group: UInt32
  /// The device that holds the file.
  package let device: UInt64
  /// The file's number. With the device, it tells whether two names or descriptors refer to the same file.
  package let fileNumber: UInt64

  package init(
    kind: FileKind = .regular, sizeBytes: Int, permissions: UInt32, owner: UInt32,
    group: UInt32 = 0, device: UInt64 = 0, fileNumber: UInt64, modifiedAtNs: Int64 = 0,
    changedAtNs: Int64 = 0
  ) {
    self.kind = kind
    self.sizeBytes = sizeBytes
    self.permissions = permissions
    self.owner = owner
    self.group = group
    self.device = device
    self.fileNumber = fileNumber
    self.modifiedAtNs = modifiedAtNs
    self.changedAtNs = changedAtNs
  }

  /// When its content last changed, in epoch milliseconds.
  package var modifiedAtMs: Int64 { modifiedAtNs / 1_000_000 }

  /// Whether both describe the same file.
  package func isOfSameFile(as other: FileStatus) -> Bool {
    fileNumber == other.fileNumber && device == other.device
  }

  /// Whether its group or everyone may write to it.
  package var isWritableByOthers: Bool { permissions & 0o022 != 0 }
}

/// Every file call of the ledger, as the system offers it: calls may be interrupted (`EINTR`) and may read or write
/// less than requested. `StorageFile` and `Folder` retry.
///
/// Names are looked up in an open directory and contain no slash. No call follows a symbolic link with that name.
/// SQLite opens, writes and syncs its database files itself, without this interface.
package protocol Storage: Sendable {
  /// Opens a directory by its path, following links, and returns its descriptor.
  func openDirectory(_ path: String) throws(SystemError) -> Int32
  /// Opens a directory in another, without following a link.
  func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32
  /// The path of an open directory without links; nil if the system does not provide it.
  func path(of directory: Int32) -> String?
  /// Opens a file and returns its descriptor, which child processes do not inherit. Does not wait for the other end
  /// of a pipe.
  func open(
    _ name: String, in directory: Int32, _ access: FileAccess, permissions: UInt32
  ) throws(SystemError) -> Int32
  /// Closes a descriptor. Errors have no consequence, because everything important was synced.
  func close(_ descriptor: Int32)
  /// Reads at an offset; 0 at the end of the file.
  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int
  /// Writes at an offset and returns the number of bytes written.
  func write(
    _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int
  /// Begins to write a file's bytes to disk, without waiting: a later sync has less left to do, and reports failures.
  func startWriting(_ descriptor: Int32)
  /// Syncs a file's bytes and size. Never retried after a failure.
  func syncData(_ descriptor: Int32) throws(SystemError)
  /// Syncs the entries of an open directory. Never retried after a failure.
  func syncDirectory(_ descriptor: Int32) throws(SystemError)
  /// Sets a file's size.
  func truncate(_ descriptor: Int32, sizeBytes: Int) throws(SystemError)
  /// Sets the permission bits of an open file or directory.
  func changePermissions(_ descriptor: Int32, _ permissions: UInt32) throws(SystemError)
  /// Gives an open file to another user and group.
  func changeOwner(_ descriptor: Int32, _ owner: UInt32, _ group: UInt32) throws(SystemError)
  /// The status of an open file or directory.
  func status(_ descriptor: Int32) throws(SystemError) -> FileStatus
  /// The status of a name, without following a link.
  func status(_ name: String, in directory: Int32) throws(SystemError) -> FileStatus
  /// The status of the file at a path, following links.
  func status(_ path: String) throws(SystemError) -> FileStatus
  /// Renames a file in its directory, replacing any file with the new name.
  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemError)
  /// Removes a file's name.
  func unlink(_ name: String, in directory: Int32) throws(SystemError)
  /// Gives a file of one directory a second name in another; fails if that name is taken.
  func makeHardLink(
    _ name: String, in directory: Int32, as newName: String, in newDirectory: Int32
  ) throws(SystemError)
  /// Removes an empty directory.
  func removeDirectory(_ name: String, in directory: Int32) throws(SystemError)
  /// Creates a directory at a path.
  func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError)
  /// Creates a directory in another.
  func makeDirectory(
    _ name: String, in directory: Int32, permissions: UInt32
  ) throws(SystemError)
  /// The names in a directory, unordered, without `.` and `..`.
  func list(_ directory: Int32) throws(SystemError) -> [String]
  /// The target of a symbolic link.
  func readLink(_ name: String, in directory: Int32) throws(SystemError) -> String
  /// Creates a symbolic link.
  func makeLink(to target: String, _ name: String, in directory: Int32) throws(SystemError)
  /// Acquires the exclusive lock on an open file; false if it is already held elsewhere.
  func lock(_ descriptor: Int32) throws(SystemError) -> Bool
  /// Waits for the exclusive lock of an open file.
  func waitForLock(_ descriptor: Int32) throws(SystemError)
  /// Releases the lock, even if a child process holds a copy of the descriptor until it runs its program.
  func unlock(_ descriptor: Int32)
}

extension Storage {
  /// Without a disk there is nothing to begin.
  package func startWriting(_ descriptor: Int32) {}

  /// Closing releases a lock that only this process can hold.
  package func unlock(_ descriptor: Int32) {}

  /// If only this process can hold a lock, a held lock is not released during the wait.
  package func waitForLock(_ descriptor: Int32) throws(SystemError) {
    if try !lock(descriptor) { throw SystemError(code: EDEADLK) }
  }

  /// Some file systems have no second names either.
  package func makeHardLink(
    _ name: String, in directory: Int32, as newName: String, in newDirectory: Int32
  ) throws(SystemError) { throw SystemError(code: EOPNOTSUPP) }

  /// For storages whose directories stay.
  package func removeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    throw SystemError(code: EOPNOTSUPP)
  }

  /// As above for a directory's path, for storages without other paths.
  package func status(_ path: String) throws(SystemError) -> FileStatus {
    let descriptor = try openDirectory(path)
    defer { close(descriptor) }
    return try status(descriptor)
  }
}

// MARK: - Open files

/// An open file of the ledger, with complete reads and writes, and errors that name the file. The last reference closes
/// it.
package final class StorageFile: Sendable {
  private let storage: any Storage
  /// The storage's descriptor; a system descriptor if the storage is the operating system's.
  package let descriptor: Int32
  /// The path inside the ledger, for errors.
  package let name: String

  init(storage: any Storage, descriptor: Int32, name: String) {
    self.storage = storage
    self.descriptor = descriptor
    self.name = name
  }

  deinit { storage.close(descriptor) }

  /// Fills the buffer from an offset; returns less than its size only at the end of the file.
  package func read(
    into buffer: UnsafeMutableRawBufferPointer, offsetBytes: Int
  ) throws(LedgerError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
      let count = try attempt(LedgerError.readOperation) { () throws(SystemError) in
        try storage.read(descriptor, into: rest, offsetBytes: offsetBytes + filled)
      }
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Writes all bytes at an offset.
  package func write(_ bytes: UnsafeRawBufferPointer, offsetBytes: Int) throws(LedgerError) {
    var written = 0
    while written < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
      let count = try attempt(LedgerError.writeOperation) { () throws(SystemError) in
        try storage.write(descriptor, rest, offsetBytes: offsetBytes + written)
      }
      if count == 0 { throw .system(ENOSPC, LedgerError.writeOperation, name) }
      written += count
    }
  }

  /// Writes all bytes of an array at an offset.
  package func write(_ content: [UInt8], offsetBytes: Int) throws(LedgerError) {
    try content.withUnsafeBufferPointer { (bytes) throws(LedgerError) in
      try write(UnsafeRawBufferPointer(bytes), offsetBytes: offsetBytes)
    }
  }

  /// Reads an exact number of bytes into a buffer, replacing its content; false if the file ends.
  func readWhole(
    _ byteCount: Int, offsetBytes: Int, into buffer: ByteBuffer
  ) throws(LedgerError) -> Bool {
    buffer.count = 0
    buffer.reserve(byteCount)
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer.storage[..<byteCount])
    buffer.count = try read(into: target, offsetBytes: offsetBytes)
    return buffer.count == byteCount
  }

  /// Begins to write the file to disk, without waiting.
  func startWriting() { storage.startWriting(descriptor) }

  /// Syncs the file. A failure is final: the kernel may have dropped the bytes.
  package func syncData() throws(LedgerError) {
    do { try storage.syncData(descriptor) } catch {
      throw .system(error.code, LedgerError.syncOperation, name)
    }
  }

  package func truncate(sizeBytes: Int) throws(LedgerError) {
    try attempt("truncate") { () throws(SystemError) in
      try storage.truncate(descriptor, sizeBytes: sizeBytes)
    }
  }

  package func changePermissions(_ permissions: UInt32) throws(LedgerError) {
    try attempt("change permissions of") { () throws(SystemError) in
      try storage.changePermissions(descriptor, permissions)
    }
  }

  /// The whole content. A larger file counts as corruption.
  package func readSmall(byteCountMax: Int = 1 << 20) throws(LedgerError) -> [UInt8] {
    let sizeBytes = try sizeBytes()
    guard sizeBytes <= byteCountMax else {
      throw LedgerError(
        .init(verdict: .corrupt, file: name, position: nil), operation: "read",
        cause: "it is larger than \(byteCountMax) bytes")
    }
    let content = ByteBuffer(capacity: max(sizeBytes, 1))
    content.count = try read(
      into: UnsafeMutableRawBufferPointer(rebasing: content.storage[..<sizeBytes]), offsetBytes: 0)
    return Array(content.bytes)
  }

  package func sizeBytes() throws(LedgerError) -> Int { try status().sizeBytes }

  package func status() throws(LedgerError) -> FileStatus {
    try attempt("examine") { () throws(SystemError) in try storage.status(descriptor) }
  }

  /// Acquires the exclusive lock; false if it is already held elsewhere.
  package func lock() throws(LedgerError) -> Bool {
    try attempt("lock") { () throws(SystemError) in try storage.lock(descriptor) }
  }

  /// Waits for the exclusive lock; false if the wait was cancelled.
  /// - Parameters:
  ///   - waiting: called if the lock is held elsewhere.
  ///   - isCancelled: called before the wait, and when a signal interrupts it.
  package func waitForLock(
    waiting: () -> Void = {}, isCancelled: () -> Bool = { false }
  ) throws(LedgerError) -> Bool {
    if isCancelled() { return false }
    if try lock() { return true }
    waiting()
    while !isCancelled() {
      do throws(SystemError) {
        try storage.waitForLock(descriptor)
        return true
      } catch {
        if error.code != EINTR { throw .system(error.code, "lock", name) }
      }
    }
    return false
  }

  /// Releases the lock.
  package func unlock() { storage.unlock(descriptor) }

  private func attempt<Result>(
    _ operation: String, _ call: () throws(SystemError) -> Result
  ) throws(LedgerError) -> Result {
    try retrying(operation, name, call)
  }
}

/// Repeats an interrupted system call.
func retrying<Result>(
  _ operation: String, _ object: String, _ call: () throws(SystemError) -> Result
) throws(LedgerError) -> Result {
  while true {
    do {
      return try call()
    } catch {
      if error.code != EINTR { throw .system(error.code, operation, object) }
    }
  }
}

extension LedgerError {
  static let readOperation = "read"
  static let writeOperation = "write"
  static let syncOperation = "sync"

  /// Whether the content on disk is unknown: a sync failed, or the device failed a write. Any other refusal leaves
  /// the file as it was, and a later attempt may succeed.
  var leavesDiskUnknown: Bool {
    operation == Self.syncOperation || isOfDevice && operation == Self.writeOperation
  }

  /// A failed system call.
  static func system(_ code: Int32, _ operation: String, _ object: String) -> LedgerError {
    LedgerError(
      .inputOutput, operation: operation, object: object, cause: systemErrorText(code),
      code: code)
  }

  /// Turns a failed read of a log file into damage at this place; leaves any other error unchanged.
  func unreadable(
    _ file: StorageFile, block: Int? = nil, at position: Position?
  ) -> LedgerError {
    guard kind == .inputOutput, operation == LedgerError.readOperation else { return self }
    return LedgerError(
      .init(verdict: .unreadable, file: file.name, block: block, position: position),
      operation: operation, cause: cause)
  }
}
