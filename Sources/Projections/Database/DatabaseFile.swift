// Checks of a database's file, locks on it and its folder, and reading without locks.
import Glibc
import Ledger

extension Projector {
  /// What is wrong with a projections database according to SQLite's own check and the list of its tables, as the end
  /// of a sentence. Nil if nothing is wrong.
  package func damage(in database: Database) throws(ProjectionError) -> String? {
    do throws(DatabaseError) {
      return try database.interruptible(by: observer.isCancelled) { () throws(DatabaseError) in
        let check = try database.prepare("PRAGMA quick_check(1)")
        guard try check.step(), check.text(0) == "ok" else { return "is damaged" }
        return try otherShape(of: database)
      }
    } catch {
      if error.isCorrupt { return "is damaged" }
      if error.isInterrupted { throw .interrupted }
      throw .database(error)
    }
  }

  /// As `damage`, but checks only the list of tables, which is fast.
  func otherShape(of database: Database) throws(DatabaseError) -> String? {
    var found: [String: String] = [:]
    for definition in try Self.definitions(in: database) {
      found[definition.name] = definition.columns
    }
    for (name, columns) in try expectedDefinitions() where found[name] != columns {
      return found[name] == nil ? "has no \(name)" : "has a different \(name)"
    }
    return nil
  }

  /// The tables, indexes and views that a projections database must have.
  private func expectedDefinitions() throws(DatabaseError) -> [(name: String, columns: String)] {
    let empty = try Database(path: ":memory:", mode: .create)
    try empty.execute(Schema.tables + projections.tables)
    try empty.execute(Schema.indexes)
    try empty.execute(Schema.views + projections.views)
    return try Self.definitions(in: empty)
  }

  /// In creation order. Only tables have columns, because a view names the columns that it reads.
  private static func definitions(
    in database: Database
  ) throws(DatabaseError) -> [(name: String, columns: String)] {
    let rows = try database.prepare(
      """
      SELECT type || ' ' || name,
        CASE type WHEN 'table'
          THEN (SELECT group_concat(c.name) FROM pragma_table_info(m.name) c) ELSE '' END
      FROM sqlite_master m WHERE sql IS NOT NULL ORDER BY m.rowid
      """)
    var result: [(name: String, columns: String)] = []
    while try rows.step() { result.append((rows.text(0), rows.text(1))) }
    return result
  }
}

// MARK: - File locks

/// Waits for an exclusive lock, which coordinates the processes that change a folder; closing the file releases it.
/// - Parameter isCancelled: called before the wait, and when a signal interrupts it.
func waitForLock(
  _ file: StorageFile, isCancelled: () -> Bool
) throws(ProjectionError) {
  let isHeld: Bool
  do throws(LedgerError) {
    isHeld = try file.waitForLock(isCancelled: isCancelled)
  } catch { throw .file(operation: "locking", name: file.name, cause: error.cause) }
  if !isHeld { throw .interrupted }
}

/// Holds the lock for changing a folder of the ledger while `body` runs; waits if another process holds it. Creates
/// the folder if it is missing.
/// - Parameter name: the folder's name.
func withFolderLock<Result>(
  _ ledger: LedgerDirectory, _ name: String, isCancelled: () -> Bool,
  _ body: (Folder) throws(ProjectionError) -> Result
) throws(ProjectionError) -> Result {
  let (folder, lock) = try inLedger { () throws(LedgerError) in
    let folder = try ledger.root.madeFolder(name)
    return (folder, try folder.openLock("lock").file)
  }
  try waitForLock(lock, isCancelled: isCancelled)
  defer { lock.unlock() }
  return try body(folder)
}

/// Runs work on ledger files and passes its errors on.
func inLedger<Result>(
  _ body: () throws(LedgerError) -> Result
) throws(ProjectionError) -> Result {
  do throws(LedgerError) { return try body() } catch { throw .ledger(error) }
}

// MARK: - Reading without locks

/// A database file in a folder where SQLite cannot, or is not to, create its own files. It can still be read while no
/// process writes to it: it has no write-ahead log, and the file does not change.
struct UnlockedFile {
  private let path: String
  private let found: FileStatus

  /// Nil if the folder is writable (unless it may be), if SQLite's auxiliary files exist, or if a log holds changes that
  /// the file itself lacks.
  init?(_ path: String, mayBeWritable: Bool = false) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
    guard
      mayBeWritable || access(folder ?? ".", W_OK) != 0 && (errno == EACCES || errno == EROFS),
      access(path + "-shm", F_OK) != 0, (Self.status(path + "-wal")?.sizeBytes ?? 0) == 0,
      let found = Self.status(path)
    else { return nil }
    self.path = path
    self.found = found
  }

  /// Whether the file is still the one that was found.
  var isUnchanged: Bool {
    guard let status = Self.status(path) else { return false }
    return status.isOfSameFile(as: found) && status.sizeBytes == found.sizeBytes
      && status.modifiedAtNs == found.modifiedAtNs
  }

  private static func status(_ path: String) -> FileStatus? { try? PosixStorage().status(path) }

  /// The file's URI, which tells SQLite that the file does not change.
  var address: String {
    var escaped = ""
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "%"), ...0x20, 0x7F...:
        escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      default: escaped.unicodeScalars.append(Unicode.Scalar(byte))
      }
    }
    // An absolute path needs an empty authority, so that a path that begins with two slashes is read as a path.
    return (path.hasPrefix("/") ? "file://" : "file:") + escaped + "?immutable=1"
  }
}
