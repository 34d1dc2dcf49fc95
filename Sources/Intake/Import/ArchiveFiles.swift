// Finds and opens the files of an archive, without following links.
import Base
import Glibc

/// The files below some paths, in the order of the paths and of their names as bytes.
struct ArchiveFiles {
  /// What a path turned out to be.
  enum Entry {
    case file(String)
    case skipped(String, cause: String)
  }

  /// How deep folders may lie in each other, and how many files there may be.
  static let depthMax = 16
  static let countMax = 4_000_000

  /// Throws if a path itself cannot be read, or there are too many files. Names that begin with a dot are not looked at.
  static func entries(_ paths: [String]) throws(IntakeError) -> [Entry] {
    var entries: [Entry] = []
    for path in paths {
      switch try kind(path) {
      case S_IFDIR: try addFolder(path, depth: 1, to: &entries)
      case S_IFREG: entries.append(.file(path))
      default:
        throw IntakeError(
          .unreadable, operation: "open", object: path,
          cause: "is neither a file nor a folder (links are not followed)")
      }
    }
    return entries
  }

  private static func kind(_ path: String) throws(IntakeError) -> mode_t {
    guard !path.utf8.contains(0) else {
      throw IntakeError(
        .unreadable, operation: "open", object: "input", cause: "the path contains a NUL")
    }
    var status = stat()
    guard lstat(path, &status) == 0 else { throw FileSource.fault("open", path, errno) }
    return status.st_mode & S_IFMT
  }

  private static func addFolder(
    _ path: String, depth: Int, to entries: inout [Entry]
  ) throws(IntakeError) {
    guard depth <= depthMax else {
      throw IntakeError(
        .unreadable, operation: "read", object: path,
        cause: "folders lie in each other more than \(depthMax) deep")
    }
    for name in try names(in: path) {
      let child = path.hasSuffix("/") ? path + name : "\(path)/\(name)"
      switch try kind(child) {
      case S_IFDIR: try addFolder(child, depth: depth + 1, to: &entries)
      case S_IFREG: entries.append(.file(child))
      case S_IFLNK: entries.append(.skipped(child, cause: "is a link, which is not followed"))
      default: entries.append(.skipped(child, cause: "is not a regular file"))
      }
      guard entries.count <= countMax else {
        throw IntakeError(
          .unreadable, operation: "read", object: path, cause: "has more than \(countMax) files")
      }
    }
  }

  private static func names(in path: String) throws(IntakeError) -> [String] {
    let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileSource.fault("open", path, errno) }
    guard let stream = fdopendir(descriptor) else {
      let code = errno
      close(descriptor)
      throw FileSource.fault("read", path, code)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw FileSource.fault("read", path, errno) }
        break
      }
      let name = withUnsafePointer(to: entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
  }

  /// Opens a file that was found; its size is returned too.
  static func open(_ path: String, _ stop: StopFlag) throws(IntakeError) -> (FileSource, Int) {
    let descriptor = Glibc.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileSource.fault("open", path, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw IntakeError(
        .unreadable, operation: "open", object: path, cause: "is not a regular file")
    }
    let size = Int(status.st_size)
    return (FileSource(spool: descriptor, name: path, sizeBytes: size, stop: stop), size)
  }
}
