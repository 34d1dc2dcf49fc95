// Small files that are read and replaced whole: how they are, as well as what they hold.
import Glibc

/// Reads and replaces configuration, and reads what it names.
enum SmallFile {
  /// What tells whether a file has changed since it was looked at.
  struct Stamp: Equatable, Sendable {
    private let device: UInt64
    private let number: UInt64
    private let sizeBytes: Int64
    private let modified: [Int]
    let permissions: UInt32
    let owner: UInt32
    fileprivate let isRegular: Bool

    fileprivate init(_ status: stat) {
      device = UInt64(status.st_dev)
      number = UInt64(status.st_ino)
      sizeBytes = Int64(status.st_size)
      modified = [
        status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
        status.st_ctim.tv_nsec,
      ]
      permissions = status.st_mode & 0o7777
      owner = status.st_uid
      isRegular = status.st_mode & S_IFMT == S_IFREG
    }

    /// The stamp of a path, or of a link there that leads nowhere; nil where nothing can be seen there.
    init?(path: String) {
      var status = stat()
      guard stat(path, &status) == 0 || lstat(path, &status) == 0 else { return nil }
      self.init(status)
    }

    /// When it last changed, in epoch seconds.
    var changedAtSeconds: Int { max(modified[0], modified[2]) }
  }

  /// Why a file could not be read.
  struct Failure: Error {
    /// The value of `errno`; 0 where the system is not to blame.
    let code: Int32
    let cause: String

    fileprivate static func system() -> Failure {
      let words = String(cString: strerror(errno))
      return Failure(code: errno, cause: words.prefix(1).lowercased() + words.dropFirst())
    }
  }

  /// A file as it was when it was read.
  struct Content {
    let content: [UInt8]
    let stamp: Stamp
  }

  /// Whether a symbolic link stands there, wherever it leads.
  static func isLink(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  static func read(_ path: String, sizeBytesMax: Int) throws(Failure) -> Content {
    // A pipe in its place must not keep anyone waiting.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .system() }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .system() }
    let stamp = Stamp(status)
    guard stamp.isRegular else { throw Failure(code: 0, cause: "it is no regular file") }
    var content: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = Glibc.read(descriptor, &piece, piece.count)
      if count == 0 { return Content(content: content, stamp: stamp) }
      if count < 0 {
        if errno == EINTR { continue }
        throw .system()
      }
      content += piece[..<count]
      if content.count > sizeBytesMax {
        throw Failure(code: 0, cause: "it is larger than \(sizeBytesMax) bytes")
      }
    }
  }

  // MARK: Writing

  /// Puts a file in place, durably and whole or not at all; its owner alone may read it.
  static func replace(
    _ path: String, in directoryPath: String, with content: [UInt8]
  ) throws(Failure) {
    let temporary = path + ".new"
    // One that an earlier attempt left might have other permissions.
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system() }
    defer { close(descriptor) }
    giveToOwner(of: directoryPath, descriptor)
    var written = 0
    while written < content.count {
      let count = content.withUnsafeBytes { bytes in
        write(descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
      }
      if count >= 0 {
        written += count
      } else if errno != EINTR {
        throw abandoned(temporary)
      }
    }
    guard fsync(descriptor) == 0, rename(temporary, path) == 0 else { throw abandoned(temporary) }
    let directory = open(directoryPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { throw .system() }
    defer { close(directory) }
    guard fsync(directory) == 0 else { throw .system() }
  }

  private static func abandoned(_ temporary: String) -> Failure {
    let failure = Failure.system()
    unlink(temporary)
    return failure
  }

  /// What root makes belongs to the folder's owner, whose server could not read it otherwise.
  static func giveToOwner(of directoryPath: String, _ descriptor: Int32) {
    var status = stat()
    guard geteuid() == 0, stat(directoryPath, &status) == 0 else { return }
    _ = fchown(descriptor, status.st_uid, status.st_gid)
  }
}
