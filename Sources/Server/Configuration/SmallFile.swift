// Small files that are read whole: how they are, as well as what they hold.
import Glibc
import Ledger

/// Reads configuration, and what it names.
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
      Failure(code: errno, words: String(cString: strerror(errno)))
    }

    fileprivate init(code: Int32, words: String) {
      self.init(code: code, cause: words.prefix(1).lowercased() + words.dropFirst())
    }

    private init(code: Int32, cause: String) { (self.code, self.cause) = (code, cause) }

    /// Where the system is not to blame.
    fileprivate init(_ cause: String) { self.init(code: 0, cause: cause) }

    init(_ error: LedgerError) { self.init(code: error.code, words: error.cause) }
  }

  /// A file as it was when it was read.
  struct Content {
    let content: [UInt8]
    let stamp: Stamp
  }

  /// Reads a file of the ledger whose permissions the caller judges.
  static func read(
    _ name: String, in folder: Folder, sizeBytesMax: Int
  ) throws(Failure) -> Content {
    let descriptor: Int32
    do throws(LedgerError) {
      descriptor = try folder.openDescriptor(name, .readOnly, isSecret: true)
    } catch {
      throw Failure(error)
    }
    return try read(descriptor, sizeBytesMax: sizeBytesMax)
  }

  /// Reads a file at any path.
  static func read(_ path: String, sizeBytesMax: Int) throws(Failure) -> Content {
    // A pipe in its place must not keep anyone waiting.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .system() }
    return try read(descriptor, sizeBytesMax: sizeBytesMax)
  }

  /// Reads a file and closes it.
  private static func read(
    _ descriptor: Int32, sizeBytesMax: Int
  ) throws(Failure) -> Content {
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .system() }
    let stamp = Stamp(status)
    guard stamp.isRegular else { throw Failure("it is not a regular file") }
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
        throw Failure("it is larger than \(sizeBytesMax) bytes")
      }
    }
  }
}
