// The one seam between the ledger and the system's files.

/// The code that a system call failed with.
package struct SystemError: Error, Sendable, Equatable {
  /// The value of `errno`.
  package let code: Int32

  package init(code: Int32) { self.code = code }
}

/// How a file is opened.
package enum FileAccess: Sendable {
  /// An existing file, for reading.
  case readOnly
  /// An existing file, for reading and writing.
  case readWrite
  /// A file for reading and writing, made if there is none.
  case readWriteOrCreate
  /// A new, empty file for reading and writing; whatever bore the name is emptied.
  case replace
}

/// What the system knows about a file.
package struct FileStatus: Sendable, Equatable {
  /// The size in bytes.
  package let sizeBytes: Int
  /// The permission bits.
  package let permissions: UInt32
  /// The user that the file belongs to.
  package let owner: UInt32
  /// The file's number: tells whether two names or descriptors are one file.
  package let fileNumber: UInt64

  package init(sizeBytes: Int, permissions: UInt32, owner: UInt32, fileNumber: UInt64) {
    self.sizeBytes = sizeBytes
    self.permissions = permissions
    self.owner = owner
    self.fileNumber = fileNumber
  }
}

/// Every call on files that the ledger makes, as the system offers it: calls may be interrupted
/// (`EINTR`) and may read or write less than asked. `StorageFile` and `LedgerDirectory` retry.
package protocol Storage: Sendable {
  /// Opens a file and returns its descriptor, which no child process inherits.
  func open(_ path: String, _ access: FileAccess, permissions: UInt32) throws(SystemError) -> Int32
  /// Closes a descriptor; errors have no consequence, since whatever matters was synced.
  func close(_ descriptor: Int32)
  /// Reads at an offset; 0 at the end of the file.
  func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int
  /// Writes at an offset and returns how many bytes were taken.
  func write(
    _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int
  /// Forces a file's bytes and size to disk. Never retried after a failure.
  func syncData(_ descriptor: Int32) throws(SystemError)
  /// Forces a directory's entries to disk. Never retried after a failure.
  func syncDirectory(_ path: String) throws(SystemError)
  /// Sets a file's size.
  func truncate(_ descriptor: Int32, sizeBytes: Int) throws(SystemError)
  /// Sets a file's permission bits.
  func changePermissions(_ descriptor: Int32, _ permissions: UInt32) throws(SystemError)
  /// What the system knows about an open file.
  func status(_ descriptor: Int32) throws(SystemError) -> FileStatus
  /// What the system knows about a path.
  func status(path: String) throws(SystemError) -> FileStatus
  /// Gives a file another name, replacing what bore it.
  func rename(_ oldPath: String, to newPath: String) throws(SystemError)
  /// Removes a file's name.
  func unlink(_ path: String) throws(SystemError)
  /// Makes a directory.
  func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError)
  /// The names in a directory, in no order, without `.` and `..`.
  func list(_ path: String) throws(SystemError) -> [String]
  /// Takes the exclusive lock of an open file; false when another holds it.
  func lock(_ descriptor: Int32) throws(SystemError) -> Bool
  /// Gives the lock back, also where a child process holds a copy of the descriptor until it runs its program.
  func unlock(_ descriptor: Int32)
}

extension Storage {
  /// Closing gives back a lock that only this process can hold.
  package func unlock(_ descriptor: Int32) {}
}
