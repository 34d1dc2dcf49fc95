// The generations of the read models on disk, and the link to the one in use.
import Glibc
import Ledger

/// The files `projections/<n>.sqlite` of a ledger, and the link `projections.sqlite` to the one in use.
struct Generations {
  /// The folder `projections`.
  let directory: String
  private let link: String

  init(_ ledger: LedgerDirectory) {
    directory = ledger.fullPath("projections")
    link = ledger.fullPath("projections.sqlite")
  }

  private func failure(_ operation: String, _ name: String) -> ProjectionError {
    .file(operation: operation, name: name, cause: String(cString: strerror(errno)))
  }

  /// The path of the generation in use, or nil where there is none.
  var current: String? {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink(link, &buffer, buffer.count - 1)
    guard count > 0 else { return nil }
    let target = String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    let name = target.split(separator: "/").last.map(String.init) ?? target
    let path = "\(directory)/\(name)"
    return access(path, F_OK) == 0 ? path : nil
  }

  /// The numbers of the generations that are there.
  private func numbers() -> [Int] {
    names().compactMap { name in
      name.hasSuffix(".sqlite") ? Int(name.dropLast(".sqlite".count)) : nil
    }
  }

  private func names() -> [String] {
    guard let stream = opendir(directory) else { return [] }
    defer { closedir(stream) }
    var result: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      result.append(name)
    }
    return result
  }

  /// Holds the lock of those who build a generation for as long as `body` runs; waits for another who does.
  func withLock<Result>(
    _ body: () throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result {
    if mkdir(directory, 0o700) != 0, errno != EEXIST {
      throw failure("making the folder", "projections")
    }
    let descriptor = open("\(directory)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("opening", "projections/lock") }
    defer { close(descriptor) }
    while flock(descriptor, LOCK_EX) != 0 {
      if errno != EINTR { throw failure("locking", "projections/lock") }
    }
    return try body()
  }

  /// A path for a new generation under a name that no reader looks for, and what it will be called.
  /// What interrupted builds have left behind is removed.
  func newPath() -> (building: String, final: String) {
    for name in names() where name.contains(".building") { unlink("\(directory)/\(name)") }
    let number = (numbers().max() ?? 0) + 1
    return ("\(directory)/\(number).sqlite.building", "\(directory)/\(number).sqlite")
  }

  /// Makes an empty file that its owner alone may read: what stands in it are users and receipts.
  func create(_ path: String) throws(ProjectionError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("making", "a new generation") }
    close(descriptor)
  }

  /// Removes a file that was not finished.
  func remove(_ path: String) { unlink(path) }

  /// Forces a generation to disk and puts it in use; older ones go.
  func putInUse(building: String, final: String) throws(ProjectionError) {
    try sync(building)
    guard rename(building, final) == 0 else { throw failure("renaming", "a new generation") }
    try sync(directory)
    let name = final.split(separator: "/").last.map(String.init) ?? final
    let newLink = link + ".new"
    unlink(newLink)
    guard symlink("projections/\(name)", newLink) == 0, rename(newLink, link) == 0 else {
      throw failure("linking", "projections.sqlite")
    }
    try sync(String(link.dropLast("/projections.sqlite".count)))
    // Whoever has an older generation open keeps it until it closes it.
    for old in names()
    where old.contains(".sqlite") && old != name && !old.hasPrefix("\(name)-") {
      unlink("\(directory)/\(old)")
    }
  }

  private func sync(_ path: String) throws(ProjectionError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("opening", "the projections") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure("syncing", "the projections") }
  }
}
