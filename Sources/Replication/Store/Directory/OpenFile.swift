// Files and directories below a store's root, opened without following links, and listed in the order of keys.
import Base
import Glibc

/// A descriptor that is closed when the value is released.
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

  /// A file in this directory, opened for reading. Does not block on a named pipe.
  func file(_ name: String) throws(SystemError) -> OpenFile {
    try Self.made(openat(descriptor, name, O_RDONLY | O_NONBLOCK | Self.flags))
  }

  /// A new file in this directory, opened for writing, readable only by its owner.
  func newFile(_ name: String) throws(SystemError) -> OpenFile {
    try Self.made(openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | Self.flags, 0o600))
  }

  private static func made(_ descriptor: Int32) throws(SystemError) -> OpenFile {
    if descriptor < 0 { throw SystemError(code: errno) }
    return OpenFile(descriptor)
  }

  /// Creates a directory in this one; does nothing if it exists.
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

  /// The status of a name in this directory, without following a link; nil if there is none.
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
    // Linux reports EPERM for a file system without hard links.
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

  /// Calls `body` with each name in this directory, in no order.
  func forEachName(_ body: (String) throws(SystemError) -> Void) throws(SystemError) {
    // A stream closes its descriptor, and has its own offset in the directory.
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

// MARK: - Listing in the order of keys

/// Lists the objects below a directory in the order of their keys, a limited number at a time. It keeps only as many
/// names of a directory as can be in the list.
struct DirectoryListing {
  static let entryCountMax = 1_000
  static let depthMax = 16
  /// The age from which a draft counts as left by a crash.
  private static let draftAgeSecondsMax = 86_400

  let prefix: String
  let after: String?
  private(set) var entries: [ObjectEntry] = []

  init(prefix: String, after: String?) { (self.prefix, self.after) = (prefix, after) }

  private var isFull: Bool { entries.count >= Self.entryCountMax }

  /// A file, or a directory, whose path then ends with a slash, so that it sorts where its objects do.
  private struct Item {
    let name: String
    let path: String
    var isFolder: Bool { path.utf8.last == UInt8(ascii: "/") }
  }

  /// Adds the contents of a folder. Its path ends with a slash.
  mutating func add(_ folder: OpenFile, at path: String, depth: Int = 1) throws(SystemError) {
    var last: String?
    while !isFull {
      // Folders may be empty, so the first items need not fill the list.
      let items = try firstItems(of: folder, at: path, after: last)
      for item in items where !isFull {
        try add(item, in: folder, depth: depth)
      }
      guard items.count == Self.entryCountMax else { return }
      last = items.last?.path
    }
  }

  private mutating func add(
    _ item: Item, in folder: OpenFile, depth: Int
  ) throws(SystemError) {
    do throws(SystemError) {
      if !item.isFolder {
        // It may have been deleted meanwhile.
        guard let status = try folder.status(of: item.name) else { return }
        entries.append(ObjectEntry(key: item.path, byteCount: Int(status.st_size)))
      } else if depth < Self.depthMax {
        try add(try folder.folder(item.name), at: item.path, depth: depth + 1)
      }
    } catch {
      if error.code != ENOENT { throw error }
    }
  }

  /// The first items that follow `last` and may be or contain what is asked for.
  private func firstItems(
    of folder: OpenFile, at path: String, after last: String?
  ) throws(SystemError) -> [Item] {
    var items: [Item] = []
    func cut() {
      items.sort { ObjectKey.precedes($0.path, $1.path) }
      items.removeLast(max(0, items.count - Self.entryCountMax))
    }
    try folder.forEachName { name throws(SystemError) in
      if DraftName.matches(name) { return try Self.removeIfOld(name, in: folder) }
      guard ObjectKey.isValid(name) else { return }
      let candidates = [
        Item(name: name, path: path + name), Item(name: name, path: path + name + "/"),
      ].filter { item in
        isWanted(item) && last.map({ ObjectKey.precedes($0, item.path) }) != false
      }
      // Most names of a large directory are ruled out by now.
      guard !candidates.isEmpty, let status = try folder.status(of: name) else { return }
      let kind = status.st_mode & S_IFMT
      guard kind == S_IFREG || kind == S_IFDIR,
        let item = candidates.first(where: { $0.isFolder == (kind == S_IFDIR) })
      else { return }
      items.append(item)
      if items.count >= 4 * Self.entryCountMax { cut() }
    }
    cut()
    return items
  }

  private func isWanted(_ item: Item) -> Bool {
    let path = item.path.utf8
    guard item.isFolder else {
      return path.starts(with: prefix.utf8)
        && after.map({ ObjectKey.precedes($0, item.path) }) != false
    }
    let mayHavePrefix = path.starts(with: prefix.utf8) || prefix.utf8.starts(with: path)
    return mayHavePrefix
      && after.map({ ObjectKey.precedes($0, item.path) || $0.utf8.starts(with: path) }) != false
  }

  private static func removeIfOld(_ name: String, in folder: OpenFile) throws(SystemError) {
    guard let status = try folder.status(of: name), status.st_mode & S_IFMT == S_IFREG,
      Int(Timestamp.now() / 1000) - status.st_mtim.tv_sec > draftAgeSecondsMax
    else { return }
    try folder.unlink(name)
  }
}
