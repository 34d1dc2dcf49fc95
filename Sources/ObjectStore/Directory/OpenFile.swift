// An open file or directory below a store's root, reached without following links.
import Base
import Glibc

/// A descriptor that is closed with the value.
final class OpenFile {
  let descriptor: Int32

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  private static let flags = O_CLOEXEC | O_NOFOLLOW

  /// The root, which may be reached through links.
  static func root(_ path: String) throws(SystemError) -> OpenFile {
    try made(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
  }

  /// A directory in this one.
  func folder(_ name: String) throws(SystemError) -> OpenFile {
    try Self.made(openat(descriptor, name, O_RDONLY | O_DIRECTORY | Self.flags))
  }

  /// A file in this directory, to read. Does not block if the name is a pipe's.
  func file(_ name: String) throws(SystemError) -> OpenFile {
    try Self.made(openat(descriptor, name, O_RDONLY | O_NONBLOCK | Self.flags))
  }

  /// A new file in this directory, to write, which only its owner may read.
  func newFile(_ name: String) throws(SystemError) -> OpenFile {
    try Self.made(openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | Self.flags, 0o600))
  }

  private static func made(_ descriptor: Int32) throws(SystemError) -> OpenFile {
    if descriptor < 0 { throw SystemError(code: errno) }
    return OpenFile(descriptor)
  }

  /// Makes a directory in this one; does nothing if there is one.
  func makeFolder(_ name: String) throws(SystemError) {
    if mkdirat(descriptor, name, 0o700) == 0 { return try sync() }
    if errno != EEXIST { throw SystemError(code: errno) }
  }

  func sync() throws(SystemError) {
    if fsync(descriptor) != 0 { throw SystemError(code: errno) }
  }

  func status() throws(SystemError) -> stat {
    var status = stat()
    if fstat(descriptor, &status) != 0 { throw SystemError(code: errno) }
    return status
  }

  /// Of what bears a name in this directory, links themselves included; nil if nothing does.
  func status(of name: String) throws(SystemError) -> stat? {
    var status = stat()
    if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return status }
    if errno == ENOENT { return nil }
    throw SystemError(code: errno)
  }

  func unlink(_ name: String) throws(SystemError) {
    if unlinkat(descriptor, name, 0) != 0, errno != ENOENT { throw SystemError(code: errno) }
  }

  func rename(_ old: String, to new: String) throws(SystemError) {
    if renameat(descriptor, old, descriptor, new) != 0 { throw SystemError(code: errno) }
  }

  /// Gives a file a second name.
  /// - Returns: false if the name is taken.
  func link(_ old: String, to new: String) throws(SystemError) -> Bool {
    if linkat(descriptor, old, descriptor, new, 0) == 0 { return true }
    if errno == EEXIST { return false }
    // Linux says EPERM of a file system without hard links.
    throw SystemError(code: errno == EPERM ? EOPNOTSUPP : errno)
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    var written = 0
    while written < bytes.count {
      let count = Glibc.write(
        descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
      if count >= 0 {
        written += count
      } else if errno != EINTR {
        throw SystemError(code: errno)
      }
    }
  }

  /// Calls `body` with the name of each thing in this directory, in no order.
  func forEachName(_ body: (String) throws(SystemError) -> Void) throws(SystemError) {
    // A stream closes its descriptor, and has its own place in the directory.
    let own = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | Self.flags)
    if own < 0 { throw SystemError(code: errno) }
    guard let stream = fdopendir(own) else {
      let code = errno
      close(own)
      throw SystemError(code: code)
    }
    defer { closedir(stream) }
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw SystemError(code: errno) }
        return
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      try body(name)
    }
  }
}
