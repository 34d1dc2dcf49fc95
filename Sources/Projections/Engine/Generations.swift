// The generations of the read models on disk, and the link to the one in use.
import Glibc
import Ledger

/// The files `projections/<n>.sqlite` of a ledger, and the link `projections.sqlite` to the one in use.
struct Generations {
  /// The ledger.
  let ledger: LedgerDirectory
  static let folderName = "projections"
  private static let linkName = "projections.sqlite"

  init(_ ledger: LedgerDirectory) { self.ledger = ledger }

  /// The path of the folder, without links. SQLite takes only paths, and follows no link either.
  private var path: String { "\(ledger.root.path)/\(Self.folderName)" }

  /// The folder; nil where there is none, or none that may be used, which is reported when a file is
  /// created in it.
  private var folder: Folder? { (try? ledger.folderIfPresent(Self.folderName)) ?? nil }

  /// The path of the generation in use, or nil where there is none.
  var current: String? {
    var last: String?
    while let name = linked {
      if name == last { return nil }
      if isThere(name) { return "\(path)/\(name)" }
      // Removed between the two looks: the link points at its successor by now.
      last = name
    }
    return nil
  }

  /// A folder that may not be used is reported when a file in it is inspected.
  private func isThere(_ name: String) -> Bool {
    do throws(LedgerError) {
      return try ledger.folderIfPresent(Self.folderName)?.status(name) != nil
    } catch { return true }
  }

  /// When the generation in use was put in use, or its link copied, in epoch milliseconds; nil where there is none.
  var putInUseAtMs: Int64? {
    (try? ledger.root.status(Self.linkName))?.modifiedAtMs
  }

  /// Whether generations can be made, put in use and folded on.
  var isWritable: Bool {
    [ledger.root.path, path, current].allSatisfy { path in
      guard let path, access(path, F_OK) == 0 else { return true }
      return access(path, W_OK) == 0
    }
  }

  /// Calls `body` with the path of the generation in use; nil where there is none. A rebuild may replace it, and
  /// remove it, at any moment: then a failure or a result is discarded, and `body` runs with the new one.
  func withCurrent<Result>(
    _ body: (String) throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result? {
    for _ in 1..<Self.attemptCount {
      guard let path = current else { return nil }
      do throws(ProjectionError) {
        try inspect(path)
        let result = try body(path)
        if current == path { return result }
      } catch {
        if case .interrupted = error { throw error }
        if current == path { throw error }
      }
    }
    guard let path = current else { return nil }
    try inspect(path)
    return try body(path)
  }

  /// Rejects a generation that is a link, or that others may write to. Its file is not opened for that: closing it
  /// would release SQLite's locks.
  private func inspect(_ path: String) throws(ProjectionError) {
    try inLedger { () throws(LedgerError) in
      try ledger.folderIfPresent(Self.folderName)?.inspect(Self.name(path), .regular, "open")
    }
  }

  /// The name of a generation's file in its folder.
  private static func name(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  /// Generations that follow each other faster than they can be opened are not waited for.
  private static let attemptCount = 8

  /// The name that the link gives. It is taken as a name, wherever the link leads; one that no generation can have is
  /// none.
  private var linked: String? {
    guard let target = ledger.root.link(Self.linkName) else { return nil }
    let name = Self.name(target)
    guard let file = FileName(name), !file.isBuilding, name == "\(file.number).sqlite" else {
      return nil
    }
    return name
  }

  /// A file of a generation, by its name. No other files in the folder are touched.
  private struct FileName {
    static let numberMax = 999_999_999

    let number: Int
    let isBuilding: Bool

    /// Also SQLite's files of a generation: a new database with an old write-ahead log of the same name
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

  /// The suffix of an unfinished generation's name.
  private static let building = ".building"
  /// What follows the name of a database in those of its files: its own, and SQLite's auxiliary files.
  private static let companions = ["", "-wal", "-shm", "-journal"]

  /// Holds the lock for building a generation while `body` runs; waits for another holder.
  /// - Parameter observer: told of the wait, and asked whether to end it.
  func withLock<Result>(
    _ observer: Projector.Observer, _ body: () throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result {
    try withFolderLock(
      ledger, Self.folderName, waiting: observer.waiting, isCancelled: observer.isCancelled
    ) { (_) throws(ProjectionError) in try body() }
  }

  /// Removes what killed builds have left behind, unless a build is running. What can't be removed stays.
  func tidy() {
    guard let inUse = current.map(Self.name), let folder,
      names(in: folder).contains(where: { isLeftBehind($0, inUse: inUse) })
        || (try? ledger.root.status(Self.linkName + ".new")) != nil,
      let lock = try? folder.openFile("lock", .readWrite)
    else { return }
    defer { lock.unlock() }
    guard (try? lock.lock()) == true, current.map(Self.name) == inUse else { return }
    removeLeftBehind(inUse: inUse)
    try? ledger.root.unlink(Self.linkName + ".new")
  }

  /// The names in a folder; none where it cannot be read.
  private func names(in folder: Folder?) -> [String] { (try? folder?.names()) ?? [] }

  /// Whether a file belongs to a generation that is not in use.
  private func isLeftBehind(_ name: String, inUse: String) -> Bool {
    FileName(name) != nil && name != inUse && !name.hasPrefix("\(inUse)-")
  }

  private func removeLeftBehind(inUse: String) {
    let folder = folder
    for name in names(in: folder) where isLeftBehind(name, inUse: inUse) {
      try? folder?.unlink(name)
    }
  }

  /// A path for a new generation under a name that no reader looks for, and what it will be called.
  /// What interrupted builds have left behind is removed.
  func newPath() -> (building: String, final: String) {
    var taken: Set<Int> = []
    let folder = folder
    for name in names(in: folder) {
      guard let file = FileName(name) else { continue }
      if file.isBuilding { try? folder?.unlink(name) } else { taken.insert(file.number) }
    }
    var number = (taken.max() ?? 0) + 1
    if number > FileName.numberMax {
      // The highest number is in use; there are free ones below.
      number = 1
      while taken.contains(number) { number += 1 }
    }
    let final = "\(path)/\(number).sqlite"
    return (final + Self.building, final)
  }

  /// Creates an empty file that only its owner may read: it will hold users and receipts.
  func create(_ path: String) throws(ProjectionError) {
    try inLedger { () throws(LedgerError) in
      _ = try folder(of: path).openFile(Self.name(path), .create)
    }
  }

  /// The folder that holds a file.
  private func folder(of path: String) throws(LedgerError) -> Folder {
    try Folder(
      path: String(path.dropLast(Self.name(path).count + 1)), storage: ledger.root.storage)
  }

  /// Removes an unfinished file, with SQLite's auxiliary files.
  func remove(_ path: String) {
    guard let folder = try? self.folder(of: path) else { return }
    for companion in Self.companions { try? folder.unlink(Self.name(path) + companion) }
  }

  /// Syncs a generation and puts it in use; older ones are removed. One that can't be put in use is removed itself.
  func putInUse(building: String, final: String) throws(ProjectionError) {
    let name = Self.name(final)
    precondition(
      FileName(name)?.isBuilding == false && FileName(Self.name(building))?.isBuilding == true,
      "a generation's file has another's name")
    try inLedger { () throws(LedgerError) in
      let folder = try ledger.root.folder(Self.folderName)
      let file = try folder.openFile(Self.name(building), .readOnly)
      do throws(LedgerError) {
        try folder.putInPlace(file, Self.name(building), as: name)
        try ledger.root.putLink(Self.linkName, to: "\(Self.folderName)/\(name)")
      } catch {
        remove(final)
        throw error
      }
      // From here on it is in use, even if the sync fails.
      try ledger.root.sync()
    }
    // A process that has an older generation open can use it until it closes it.
    removeLeftBehind(inUse: name)
  }
}
