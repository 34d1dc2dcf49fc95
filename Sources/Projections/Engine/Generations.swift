// The generations of the projection databases on disk, and the link to the current one.
import Base
import Glibc
package import Ledger

/// The files `projections/<n>.sqlite` of a ledger, and the link `projections.sqlite` to the current one.
package struct Generations {
  /// The ledger.
  let ledger: LedgerDirectory

  static let folderName = "projections"
  private static let linkName = "projections.sqlite"

  package init(_ ledger: LedgerDirectory) { self.ledger = ledger }

  /// The folder's path without links. SQLite accepts only paths, and it is opened without following links.
  private var path: String { "\(ledger.root.path)/\(Self.folderName)" }

  /// The folder; nil if it does not exist or must not be used. The latter is reported when a file is created in it.
  private var folder: Folder? { (try? ledger.folderIfPresent(Self.folderName)) ?? nil }

  /// The path of the current generation; nil if there is none.
  package var current: String? {
    var last: String?
    while let name = linked {
      if name == last { return nil }
      if isThere(name) { return "\(path)/\(name)" }
      // The file was removed between the two checks; by now the link names its successor.
      last = name
    }
    return nil
  }

  /// A folder that must not be used is reported when a file in it is inspected.
  private func isThere(_ name: String) -> Bool {
    do throws(LedgerError) {
      return try ledger.folderIfPresent(Self.folderName)?.status(name) != nil
    } catch { return true }
  }

  /// When the current generation was put in use or its link copied, in epoch milliseconds; nil if there is none.
  var putInUseAtMs: Int64? {
    (try? ledger.root.status(Self.linkName))?.modifiedAtMs
  }

  /// Whether generations can be created, put in use and updated.
  var isWritable: Bool {
    [ledger.root.path, path, current].allSatisfy { path in
      guard let path, access(path, F_OK) == 0 else { return true }
      return access(path, W_OK) == 0
    }
  }

  /// Calls `body` with the path of the current generation; nil if there is none. A rebuild may replace and remove
  /// that generation at any time: the failure or result is then discarded, and `body` runs again with the new one.
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

  /// Rejects a generation that is a link or that other users may write to. Does not open its file: closing it would
  /// release SQLite's locks.
  private func inspect(_ path: String) throws(ProjectionError) {
    try inLedger { () throws(LedgerError) in
      try ledger.folderIfPresent(Self.folderName)?.inspect(Self.name(path), .regular, "open")
    }
  }

  /// The name of a generation's file in its folder.
  private static func name(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
  }

  /// How many times to try when generations are replaced faster than they can be opened.
  private static let attemptCount = 8

  /// The file name in the link's target; its directory is ignored. nil if no generation can have that name.
  private var linked: String? {
    guard let target = ledger.root.link(Self.linkName) else { return nil }
    let name = Self.name(target)
    guard let file = FileName(name), !file.isBuilding, name == "\(file.number).sqlite" else {
      return nil
    }
    return name
  }

  /// A generation's file, by its name. Other files in the folder are left alone.
  private struct FileName {
    static let numberMax = 999_999_999

    let number: Int
    let isBuilding: Bool

    /// Also matches SQLite's files of a generation: SQLite would apply an old write-ahead log of the same name to a
    /// new database.
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
  /// The suffixes of a database's files: its own, and those of SQLite's auxiliary files.
  private static let companions = ["", "-wal", "-shm", "-journal"]

  // MARK: Lock

  /// Holds the lock for building a generation while `body` runs; waits while another process holds it and makes
  /// progress.
  ///
  /// Throws `locked` if that process makes no progress.
  /// - Parameter observer: notified of the wait and asked whether to end it.
  package func withLock<Result>(
    _ observer: Projector.Observer, _ body: () throws(ProjectionError) -> Result
  ) throws(ProjectionError) -> Result {
    let lock = try inLedger { () throws(LedgerError) in
      try ledger.root.madeFolder(Self.folderName).openLock("lock").file
    }
    guard try wait(for: lock, observer, idleLimitMs: observer.lockLimitMs) else {
      throw .ledger(
        LedgerError(
          .locked, operation: "build projections", object: "\(Self.folderName)/lock",
          cause:
            "another process holds it and has made no progress for \(observer.lockLimitMs / 1000) s; "
            + "is a 'redact' or a 'rebuild' stopped?"))
    }
    defer { lock.unlock() }
    return try body()
  }

  /// Whether another process holds the lock and makes no progress. Waits while it does.
  func isStalled(_ observer: Projector.Observer) throws(ProjectionError) -> Bool {
    guard let lock = try? folder?.openFile("lock", .readWrite) else { return false }
    guard try wait(for: lock, observer, idleLimitMs: observer.stallMs) else { return true }
    lock.unlock()
    return false
  }

  private static let pollMicroseconds: UInt32 = 50_000

  /// Waits for the lock; false if its holder makes no progress for the limit.
  private func wait(
    for lock: StorageFile, _ observer: Projector.Observer, idleLimitMs: Int64
  ) throws(ProjectionError) -> Bool {
    func isHeld() throws(ProjectionError) -> Bool {
      try inLedger { () throws(LedgerError) in try lock.lock() }
    }
    if observer.isCancelled() { throw .interrupted }
    if try isHeld() { return true }
    observer.waiting()
    let beganMs = MonotonicClock.nowMs()
    var (known, changedMs) = (unfinished(), beganMs)
    var isSaid = false
    while true {
      if observer.isCancelled() { throw .interrupted }
      if try isHeld() { return true }
      let nowMs = MonotonicClock.nowMs()
      let found = unfinished()
      if found != known { (known, changedMs) = (found, nowMs) }
      if nowMs - changedMs >= idleLimitMs { return false }
      if !isSaid, nowMs - beganMs >= observer.stallMs {
        isSaid = true
        observer.notice("waiting for another process that builds projections")
      }
      usleep(Self.pollMicroseconds)
    }
  }

  /// The files of unfinished generations with their states, which change while a process builds.
  private func unfinished() -> [String: Int64] {
    guard let folder else { return [:] }
    var files: [String: Int64] = [:]
    for name in names(in: folder) where FileName(name)?.isBuilding == true {
      guard let status = try? folder.status(name) else { continue }
      files[name] = Int64(status.sizeBytes) &+ status.modifiedAtMs
    }
    return files
  }

  /// Removes the files of interrupted builds unless a build is running. Files that cannot be removed stay.
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

  /// The names in a folder; none if it cannot be read.
  private func names(in folder: Folder?) -> [String] { (try? folder?.names()) ?? [] }

  /// Whether a file belongs to a generation that is not in use.
  private func isLeftBehind(_ name: String, inUse: String) -> Bool {
    FileName(name) != nil && name != inUse && !name.hasPrefix("\(inUse)-")
  }

  /// Removes all generations, including the one in use.
  func removeAll(_ observer: Projector.Observer) throws(ProjectionError) {
    try withLock(observer) { () throws(ProjectionError) in
      try inLedger { () throws(LedgerError) in
        guard ledger.root.link(Self.linkName) != nil else { return }
        try ledger.root.unlink(Self.linkName)
        try ledger.root.sync()
      }
      removeLeftBehind(inUse: "")
    }
  }

  private func removeLeftBehind(inUse: String) {
    let folder = folder
    for name in names(in: folder) where isLeftBehind(name, inUse: inUse) {
      try? folder?.unlink(name)
    }
  }

  /// The path for building a new generation, with a name that readers ignore, and its final path. Removes the files
  /// of interrupted builds.
  package func newPath() -> (building: String, final: String) {
    var taken: Set<Int> = []
    let folder = folder
    for name in names(in: folder) {
      guard let file = FileName(name) else { continue }
      if file.isBuilding { try? folder?.unlink(name) } else { taken.insert(file.number) }
    }
    var number = (taken.max() ?? 0) + 1
    if number > FileName.numberMax {
      // The highest number is in use; lower numbers are free.
      number = 1
      while taken.contains(number) { number += 1 }
    }
    let final = "\(path)/\(number).sqlite"
    return (final + Self.building, final)
  }

  /// Creates an empty file that only its owner can read: it will hold users and receipts.
  package func create(_ path: String) throws(ProjectionError) {
    try inLedger { () throws(LedgerError) in
      _ = try folder(of: path).openFile(Self.name(path), .create)
    }
  }

  /// The folder that holds a file.
  private func folder(of path: String) throws(LedgerError) -> Folder {
    try Folder(
      path: String(path.dropLast(Self.name(path).count + 1)), storage: ledger.root.storage)
  }

  /// Removes an unfinished file and SQLite's auxiliary files.
  func remove(_ path: String) {
    guard let folder = try? self.folder(of: path) else { return }
    for companion in Self.companions { try? folder.unlink(Self.name(path) + companion) }
  }

  /// Syncs a generation, puts it in use and removes older ones. If that fails, removes the new generation.
  package func putInUse(building: String, final: String) throws(ProjectionError) {
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
      // From here on the generation is in use, even if the sync fails.
      try ledger.root.sync()
    }
    // A process that has an older generation open can use it until it closes it.
    removeLeftBehind(inUse: name)
  }
}
