// The real storage: one system call for each function of the seam.
import Glibc

/// Files of the operating system.
package struct PosixStorage: Storage {
  package init() {}

  package func open(
    _ path: String, _ access: FileAccess, permissions: UInt32
  ) throws(SystemError) -> Int32 {
    let flags =
      switch access {
      case .readOnly: O_RDONLY
      case .readWrite: O_RDWR
      case .readWriteOrCreate: O_RDWR | O_CREAT
      case .replace: O_RDWR | O_CREAT | O_TRUNC
      }
    return try checked(Glibc.open(path, flags | O_CLOEXEC, permissions))
  }

  package func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

  package func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int {
    try checked(pread(descriptor, buffer.baseAddress, buffer.count, offsetBytes))
  }

  package func write(
    _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, offsetBytes: Int
  ) throws(SystemError) -> Int {
    try checked(pwrite(descriptor, bytes.baseAddress, bytes.count, offsetBytes))
  }

  package func syncData(_ descriptor: Int32) throws(SystemError) {
    _ = try checked(fdatasync(descriptor))
  }

  package func syncDirectory(_ path: String) throws(SystemError) {
    let descriptor = try checked(Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    defer { _ = Glibc.close(descriptor) }
    _ = try checked(fsync(descriptor))
  }

  package func truncate(_ descriptor: Int32, sizeBytes: Int) throws(SystemError) {
    _ = try checked(ftruncate(descriptor, sizeBytes))
  }

  package func changePermissions(
    _ descriptor: Int32, _ permissions: UInt32
  ) throws(SystemError) {
    _ = try checked(fchmod(descriptor, permissions))
  }

  package func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try checked(fstat(descriptor, &status))
    return FileStatus(status)
  }

  package func status(path: String) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try checked(stat(path, &status))
    return FileStatus(status)
  }

  package func rename(_ oldPath: String, to newPath: String) throws(SystemError) {
    _ = try checked(Glibc.rename(oldPath, newPath))
  }

  package func unlink(_ path: String) throws(SystemError) {
    _ = try checked(Glibc.unlink(path))
  }

  package func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError) {
    _ = try checked(mkdir(path, permissions))
  }

  package func list(_ path: String) throws(SystemError) -> [String] {
    guard let directory = opendir(path) else { throw SystemError(code: errno) }
    defer { closedir(directory) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(directory) else {
        if errno != 0 { throw SystemError(code: errno) }
        return names
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != "." && name != ".." { names.append(name) }
    }
  }

  package func unlock(_ descriptor: Int32) { flock(descriptor, LOCK_UN) }

  package func lock(_ descriptor: Int32) throws(SystemError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw SystemError(code: errno)
  }

  private func checked<Result: SignedInteger>(_ result: Result) throws(SystemError) -> Result {
    if result < 0 { throw SystemError(code: errno) }
    return result
  }
}

extension FileStatus {
  fileprivate init(_ status: stat) {
    self.init(
      sizeBytes: Int(status.st_size), permissions: status.st_mode & 0o7777,
      owner: status.st_uid, fileNumber: UInt64(status.st_ino))
  }
}
