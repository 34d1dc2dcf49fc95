// The objects below a directory in the order of their keys, a limited number at a time.
import Base
import Glibc

/// Collects entries. Of a directory's names it keeps only as many as can be in the list.
struct DirectoryListing {
  static let entryCountMax = 1_000
  static let depthMax = 16
  /// What a crash left: a file that was being written so long ago.
  private static let draftAgeSecondsMax = 86_400

  let prefix: String
  let after: String?
  private(set) var entries: [ObjectEntry] = []

  init(prefix: String, after: String?) { (self.prefix, self.after) = (prefix, after) }

  private var isFull: Bool { entries.count >= Self.entryCountMax }

  /// A file, or a directory, whose path then ends with a slash, so that it stands where its objects do.
  private struct Item {
    let name: String
    let path: String
    var isFolder: Bool { path.utf8.last == UInt8(ascii: "/") }
  }

  /// Adds what is in a folder whose path, with its slash, is given.
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
        // It may have been deleted since.
        guard let status = try folder.status(of: item.name) else { return }
        entries.append(ObjectEntry(key: item.path, byteCount: Int(status.st_size)))
      } else if depth < Self.depthMax {
        try add(try folder.folder(item.name), at: item.path, depth: depth + 1)
      }
    } catch {
      if error.code != ENOENT { throw error }
    }
  }

  /// The first items that follow `last` and may be or hold what is asked for.
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
      // Most names of a large directory need no further look.
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
