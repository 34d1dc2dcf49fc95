// The one seam between the ledger and the system's files.
package import Base
import Glibc

/// How a file is opened.
package enum FileAccess: Sendable {
  /// An existing file, for reading.
  case readOnly
  /// An existing file, for reading and writing.
  case readWrite
  /// A file for reading and writing, made if there is none.
  case readWriteOrCreate
  /// A new file for reading and writing; fails where the name is taken, be it by a link (`EEXIST`).
  case create
}

/// What bears a name.
package enum FileKind: Sendable {
  case regular, directory, link, other
}

/// What the system knows about a file.
package struct FileStatus: Sendable, Equatable {
  /// What it is.
  package let kind: FileKind
  /// The size in bytes.
  package let sizeBytes: Int
  /// When its content last changed, in epoch nanoseconds.
  package let modifiedAtNs: Int64
  /// When its content, owner, permissions or names last changed, in epoch nanoseconds.
  package let changedAtNs: Int64
  /// The permission bits.
  package let permissions: UInt32
  /// The user that the file belongs to.
  package let owner: UInt32
  /// The group that the file belongs to.
  package let group: UInt32
  /// The device that holds the file.
  package let device: UInt64
  /// The file's number: tells, with the device, whether two names or descriptors are one file.
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

  /// Whether both are of one file.
  package func isOfSameFile(as other: FileStatus) -> Bool {
    fileNumber == other.fileNumber && device == other.device
  }

  /// Whether its group, or everyone, may write to it.
  package var isWritableByOthers: Bool { permissions & 0o022 != 0 }
}

/// Every call on files that the ledger makes, as the system offers it: calls may be interrupted
/// (`EINTR`) and may read or write less than asked. `StorageFile` and `Folder` retry.
///
/// A name is looked up in an open directory and holds no slash. No call follows a symbolic link that bears it.
/// SQLite opens, writes and syncs the files of its databases itself, past this seam.
package protocol Storage: Sendable {
  /// Opens a directory by its path, also through links, and returns its descriptor.
  func openDirectory(_ path: String) throws(SystemError) -> Int32
  /// Opens a directory in another; not through a link.
  func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32
  /// The path of an open directory without links in it; nil where the system does not tell.
  func path(of directory: Int32) -> String?
  /// Opens a file and returns its descriptor, which no child process inherits. Does not wait for the other end
  /// of a pipe.
  func open(
    _ name: String, in directory: Int32, _ access: FileAccess, permissions: UInt32
  ) throws(SystemError) -> Int32
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
  /// Forces the entries of an open directory to disk. Never retried after a failure.
  func syncDirectory(_ descriptor: Int32) throws(SystemError)
  /// Sets a file's size.
  func truncate(_ descriptor: Int32, sizeBytes: Int) throws(SystemError)
  /// Sets the permission bits of an open file or directory.
  func changePermissions(_ descriptor: Int32, _ permissions: UInt32) throws(SystemError)
  /// Gives an open file to another user and group.
  func changeOwner(_ descriptor: Int32, _ owner: UInt32, _ group: UInt32) throws(SystemError)
  /// What the system knows about an open file or directory.
  func status(_ descriptor: Int32) throws(SystemError) -> FileStatus
  /// What the system knows about what bears a name, be it a link.
  func status(_ name: String, in directory: Int32) throws(SystemError) -> FileStatus
  /// What the system knows about what a path leads to, also through links.
  func status(_ path: String) throws(SystemError) -> FileStatus
  /// Gives a file another name in the same directory, replacing what bore it.
  func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemError)
  /// Removes a file's name.
  func unlink(_ name: String, in directory: Int32) throws(SystemError)
  /// Makes a directory at a path.
  func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError)
  /// Makes a directory in another.
  func makeDirectory(
    _ name: String, in directory: Int32, permissions: UInt32
  ) throws(SystemError)
  /// The names in a directory, in no order, without `.` and `..`.
  func list(_ directory: Int32) throws(SystemError) -> [String]
  /// Where a symbolic link leads.
  func readLink(_ name: String, in directory: Int32) throws(SystemError) -> String
  /// Makes a symbolic link.
  func makeLink(to target: String, _ name: String, in directory: Int32) throws(SystemError)
  /// Takes the exclusive lock of an open file; false when another holds it.
  func lock(_ descriptor: Int32) throws(SystemError) -> Bool
  /// Waits for the exclusive lock of an open file.
  func waitForLock(_ descriptor: Int32) throws(SystemError)
  /// Gives the lock back, also where a child process holds a copy of the descriptor until it runs its program.
  func unlock(_ descriptor: Int32)
}

extension Storage {
  /// Closing gives back a lock that only this process can hold.
  package func unlock(_ descriptor: Int32) {}

  /// Where nothing but this process can hold a lock, one that is held is not given back during the wait.
  package func waitForLock(_ descriptor: Int32) throws(SystemError) {
    if try !lock(descriptor) { throw SystemError(code: EDEADLK) }
  }

  /// The same for a directory's path; where there are no other paths.
  package func status(_ path: String) throws(SystemError) -> FileStatus {
    let descriptor = try openDirectory(path)
    defer { close(descriptor) }
    return try status(descriptor)
  }
}
