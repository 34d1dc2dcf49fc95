// An open file of the ledger, with complete reads and writes, and errors that name the file.
import Base
import Glibc

/// An open file. The last reference closes it.
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
  ///   - isCancelled: asked before the wait, and when a signal interrupts it.
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

/// Repeats a system call as long as it is interrupted.
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
      .inputOutput, operation: operation, object: object, cause: String(cString: strerror(code)),
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
