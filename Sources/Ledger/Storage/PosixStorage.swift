// The real storage: one system call for each function of `Storage`.
package import Base
import CLinux
import Glibc

/// Files of the operating system.
package struct PosixStorage: Storage {
  package init() {}

  package func openDirectory(_ path: String) throws(SystemError) -> Int32 {
    try checked(Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
  }

  package func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
    try checked(openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))
  }

  package func path(of directory: Int32) -> String? {
    try? Self.readLink("/proc/self/fd/\(directory)", in: AT_FDCWD)
  }

  package func open(
    _ name: String, in directory: Int32, _ access: FileAccess, permissions: UInt32
  ) throws(SystemError) -> Int32 {
    let flags =
      switch access {
      case .readOnly: O_RDONLY
      case .readWrite: O_RDWR
      case .readWriteOrCreate: O_RDWR | O_CREAT
      case .create: O_RDWR | O_CREAT | O_EXCL
      }
    return try checked(
      openat(directory, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, permissions))
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

  package func startWriting(_ descriptor: Int32) { clinux_start_writing(descriptor) }

  package func syncData(_ descriptor: Int32) throws(SystemError) {
    _ = try checked(fdatasync(descriptor))
  }

  package func syncDirectory(_ descriptor: Int32) throws(SystemError) {
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

  package func changeOwner(
    _ descriptor: Int32, _ owner: UInt32, _ group: UInt32
  ) throws(SystemError) {
    _ = try checked(fchown(descriptor, owner, group))
  }

  package func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try checked(fstat(descriptor, &status))
    return FileStatus(status)
  }

  package func status(_ name: String, in directory: Int32) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try checked(fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW))
    return FileStatus(status)
  }

  package func status(_ path: String) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try checked(stat(path, &status))
    return FileStatus(status)
  }

  package func rename(
    _ name: String, to newName: String, in directory: Int32
  ) throws(SystemError) {
    _ = try checked(renameat(directory, name, directory, newName))
  }

  package func unlink(_ name: String, in directory: Int32) throws(SystemError) {
    _ = try checked(unlinkat(directory, name, 0))
  }

  package func makeHardLink(
    _ name: String, in directory: Int32, as newName: String, in newDirectory: Int32
  ) throws(SystemError) {
    _ = try checked(linkat(directory, name, newDirectory, newName, 0))
  }

  package func removeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
    _ = try checked(unlinkat(directory, name, AT_REMOVEDIR))
  }

  package func makeDirectory(_ path: String, permissions: UInt32) throws(SystemError) {
    _ = try checked(mkdir(path, permissions))
  }

  package func makeDirectory(
    _ name: String, in directory: Int32, permissions: UInt32
  ) throws(SystemError) {
    _ = try checked(mkdirat(directory, name, permissions))
  }

  package func readLink(_ name: String, in directory: Int32) throws(SystemError) -> String {
    try Self.readLink(name, in: directory)
  }

  private static func readLink(
    _ name: String, in directory: Int32
  ) throws(SystemError) -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlinkat(directory, name, &buffer, buffer.count)
    if count < 0 { throw SystemError(code: errno) }
    guard count < buffer.count else { throw SystemError(code: ENAMETOOLONG) }
    return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  package func makeLink(
    to target: String, _ name: String, in directory: Int32
  ) throws(SystemError) {
    _ = try checked(symlinkat(target, directory, name))
  }

  package func list(_ directory: Int32) throws(SystemError) -> [String] {
    // A separate open file description, whose read position no other reader shares.
    let descriptor = try openDirectory(".", in: directory)
    guard let directory = fdopendir(descriptor) else {
      let code = errno
      close(descriptor)
      throw SystemError(code: code)
    }
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

  package func waitForLock(_ descriptor: Int32) throws(SystemError) {
    try FileLock.wait(descriptor)
  }

  package func unlock(_ descriptor: Int32) { FileLock.release(descriptor) }

  package func lock(_ descriptor: Int32) throws(SystemError) -> Bool {
    try FileLock.tryLock(descriptor)
  }

  private func checked<Result: SignedInteger>(_ result: Result) throws(SystemError) -> Result {
    if result < 0 { throw SystemError(code: errno) }
    return result
  }
}

extension FileStatus {
  fileprivate init(_ status: stat) {
    let kind: FileKind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .link
      default: .other
      }
    self.init(
      kind: kind, sizeBytes: Int(status.st_size), permissions: status.st_mode & 0o7777,
      owner: status.st_uid, group: status.st_gid, device: UInt64(status.st_dev),
      fileNumber: UInt64(status.st_ino),
      modifiedAtNs: Self.nanoseconds(status.st_mtim),
      changedAtNs: Self.nanoseconds(status.st_ctim))
  }

  /// A time out of range, which a file may have by mistake, wraps around.
  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

// MARK: - Limit of open files

/// The system's limit of open files for this process: a log reader keeps its tails open.
package enum OpenFileLimit {
  /// How many files the process may have open now.
  package static var current: Int {
    // The call cannot fail; with the usual limit, everything works.
    limits.map { Int(clamping: $0.rlim_cur) } ?? 1024
  }

  /// How many tails may wait to be sealed under this limit of open files: a server has several readers, and a reader
  /// that reads everything again opens all tails a second time.
  package static func tailCountMax(limit: Int) -> Int {
    min(WriterOptions().unsealedTailCountMax, limit / 8)
  }

  /// Raises the limit as far as requested and allowed. If the system rejects it, everything works with fewer files.
  /// - Parameter wanted: the default is enough for all tails that can wait and for a server's connections.
  package static func raise(to wanted: Int = 65_536) {
    guard var limit = limits else { return }
    let reachable = min(limit.rlim_max, rlim_t(wanted))
    guard limit.rlim_cur < reachable else { return }
    limit.rlim_cur = reachable
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  private static var limits: rlimit? {
    var limit = rlimit()
    let status = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return status == 0 ? limit : nil
  }
}
