// The generations of the read models on disk, and the link to the one in use.
import Glibc
import Ledger

/// The files `projections/<n>.sqlite` of a ledger, and the link `projections.sqlite` to the one in use.
struct Generations {
  /// The folder `projections`.
  let directory: String
  private let link: String
  /// The folder of the ledger.
  private let ledger: String

  init(_ ledger: LedgerDirectory) {
    directory = ledger.fullPath("projections")
    link = ledger.fullPath("projections.sqlite")
    self.ledger = ledger.path
  }

  private func failure(_ operation: String, _ name: String) -> ProjectionError {
    .file(operation: operation, name: name, cause: String(cString: strerror(errno)))
  }

  /// The path of the generation in use, or nil where there is none.
  var current: String? {
    var last: String?
    while let path = linked {
      if access(path, F_OK) == 0 { return path }
      // Removed between the two looks: the link points at its successor by now.
      if path == last { return nil }
      last = path
    }
    return nil
  }

  /// When the generation in use was put in use, or its link copied, in epoch milliseconds; nil where there is none.
  var putInUseAtMs: Int64? {
    var status = stat()
    guard lstat(link, &status) == 0 else { return nil }
    return Int64(status.st_mtim.tv_sec) * 1000 + Int64(status.st_mtim.tv_nsec) / 1_000_000
  }

  /// Whether generations can be made, put in use and folded on.
  var isWritable: Bool {
    [ledger, directory, current].allSatisfy { path in
      guard let path, access(path, F_OK) == 0 else { return true }
      return access(path, W_OK) == 0
    }
  }

  /// Calls `body` with the path of the generation in use; nil where there is none. A rebuild may replace it, and
  /// remove it, at any moment: what then fails, or was found, is forgotten, and the new one is taken.
  func withCurrent<Result>(
    _ body: (String) throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result? {
    for _ in 1..<Self.attemptCount {
      guard let path = current else { return nil }
      do throws(ProjectionError) {
        let result = try body(path)
        if current == path { return result }
      } catch {
        if case .interrupted = error { throw error }
        if current == path { throw error }
      }
    }
    guard let path = current else { return nil }
    return try body(path)
  }

  /// Generations that follow each other faster than they can be opened are not waited for.
  private static let attemptCount = 8

  private var linked: String? {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink(link, &buffer, buffer.count - 1)
    guard count > 0 else { return nil }
    let target = String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    let name = target.split(separator: "/").last.map(String.init) ?? target
    return "\(directory)/\(name)"
  }

  /// A file of a generation, by its name. Nobody else's files are touched, whatever else lies in the folder.
  private struct FileName {
    static let numberMax = 999_999_999

    let number: Int
    let isBuilding: Bool

    /// Also what SQLite keeps beside a generation: a new database beside an old write-ahead log of the same name
    /// would take up its rows.
    init?(_ name: String) {
      let digits = name.prefix { ("0"..."9").contains($0) }
      guard let number = Int(digits), 0...Self.numberMax ~= number, digits == "\(number)" else {
        return nil
      }
      var rest = name.dropFirst(digits.count)
      guard rest.hasPrefix(".sqlite") else { return nil }
      rest = rest.dropFirst(".sqlite".count)
      isBuilding = rest.hasPrefix(Generations.building)
      if isBuilding { rest = rest.dropFirst(Generations.building.count) }
      guard Generations.companions.contains(String(rest)) else { return nil }
      self.number = number
    }
  }

  /// What the name of a generation ends with that is not finished.
  private static let building = ".building"
  /// What follows the name of a database in those of its files: its own, and those that SQLite keeps beside it.
  private static let companions = ["", "-wal", "-shm", "-journal"]

  /// Holds the lock of those who build a generation for as long as `body` runs; waits for another who does.
  /// - Parameter observer: told of the waiting, and asked whether it shall end.
  func withLock<Result>(
    _ observer: Projector.Observer, _ body: () throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result {
    try withFolderLock(
      directory, name: "projections", waiting: observer.waiting, isCancelled: observer.isCancelled,
      body)
  }

  /// Removes what builds that were killed have left behind, unless one is at work. What can't be removed stays.
  func tidy() {
    guard let inUse = current?.split(separator: "/").last.map(String.init),
      fileNames(in: directory).contains(where: { isLeftBehind($0, inUse: inUse) })
        || access(link + ".new", F_OK) == 0
    else { return }
    let descriptor = open("\(directory)/lock", O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, current?.hasSuffix("/\(inUse)") == true else {
      return
    }
    removeLeftBehind(inUse: inUse)
    unlink(link + ".new")
  }

  /// Whether a file belongs to a generation that is not in use.
  private func isLeftBehind(_ name: String, inUse: String) -> Bool {
    FileName(name) != nil && name != inUse && !name.hasPrefix("\(inUse)-")
  }

  private func removeLeftBehind(inUse: String) {
    for name in fileNames(in: directory) where isLeftBehind(name, inUse: inUse) {
      unlink("\(directory)/\(name)")
    }
  }

  /// A path for a new generation under a name that no reader looks for, and what it will be called.
  /// What interrupted builds have left behind is removed.
  func newPath() -> (building: String, final: String) {
    var taken: Set<Int> = []
    for name in fileNames(in: directory) {
      guard let file = FileName(name) else { continue }
      if file.isBuilding { unlink("\(directory)/\(name)") } else { taken.insert(file.number) }
    }
    var number = (taken.max() ?? 0) + 1
    if number > FileName.numberMax {
      // Someone has counted to the end; there is room before it.
      number = 1
      while taken.contains(number) { number += 1 }
    }
    let final = "\(directory)/\(number).sqlite"
    return (final + Self.building, final)
  }

  /// Makes an empty file that its owner alone may read: what stands in it are users and receipts.
  func create(_ path: String) throws(ProjectionError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("making", "a new generation") }
    close(descriptor)
  }

  /// Removes a file that was not finished, with what SQLite keeps beside it.
  func remove(_ path: String) {
    for companion in Self.companions { unlink(path + companion) }
  }

  /// Forces a generation to disk and puts it in use; older ones go. One that can't be put in use goes itself.
  func putInUse(building: String, final: String) throws(ProjectionError) {
    try sync(building)
    guard rename(building, final) == 0 else { throw failure("renaming", "a new generation") }
    let name = final.split(separator: "/").last.map(String.init) ?? final
    do throws(ProjectionError) {
      try sync(directory)
      try linkTo(name)
    } catch {
      remove(final)
      throw error
    }
    // From here on it is in use, also where the disk refuses to say so.
    try sync(ledger)
    // Whoever has an older generation open keeps it until it closes it.
    removeLeftBehind(inUse: name)
  }

  private func linkTo(_ name: String) throws(ProjectionError) {
    let newLink = link + ".new"
    unlink(newLink)
    guard symlink("projections/\(name)", newLink) == 0, rename(newLink, link) == 0 else {
      let failure = failure("linking", "projections.sqlite")
      unlink(newLink)
      throw failure
    }
  }

  private func sync(_ path: String) throws(ProjectionError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("opening", "the projections") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure("syncing", "the projections") }
  }
}
