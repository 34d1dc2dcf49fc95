// A database file for the length of one command, which no crash leaves behind for long.
import Glibc

/// An empty file in `projections/past`, held by a lock for as long as it is of use and removed then. What a
/// process that was killed has left there is removed by the next one that needs such a file.
final class ScratchFile {
  let path: String
  let descriptor: Int32
  /// A folder made for this file alone, where the ledger's own may not be written to.
  private let ownFolder: String?

  /// - Parameter isCancelled: ends the waiting for others who make such a file.
  init(_ generations: Generations, isCancelled: () -> Bool) throws(ProjectionError) {
    let folder = generations.directory + "/past"
    guard let lock = try Self.lock(folder, in: generations.directory, isCancelled) else {
      let temporary = try Self.temporaryFolder()
      ownFolder = temporary
      path = temporary + "/0.sqlite"
      descriptor = try Self.create(path)
      return
    }
    defer { close(lock) }
    ownFolder = nil
    Self.removeLeftovers(folder)
    let found = Set(fileNames(in: folder))
    var number = 0
    while found.contains("\(number).sqlite") { number += 1 }
    path = "\(folder)/\(number).sqlite"
    descriptor = try Self.create(path)
  }

  /// Holds the lock of those who make such a file, until the descriptor is closed; nil where nothing may be
  /// written.
  private static func lock(
    _ folder: String, in projections: String, _ isCancelled: () -> Bool
  ) throws(ProjectionError) -> Int32? {
    for path in [projections, folder] where mkdir(path, 0o700) != 0 && errno != EEXIST {
      if errno == EACCES || errno == EROFS { return nil }
      throw failure("making the folder", "projections/past")
    }
    let descriptor = open("\(folder)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if descriptor < 0 {
      if errno == EACCES || errno == EROFS { return nil }
      throw failure("opening", "projections/past/lock")
    }
    do throws(ProjectionError) {
      try waitForLock(descriptor, name: "projections/past/lock", isCancelled: isCancelled)
    } catch {
      close(descriptor)
      throw error
    }
    // A folder that is there already may still refuse new files.
    if access(folder, W_OK) == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  deinit {
    unlink(path)
    unlink(path + "-journal")
    close(descriptor)
    if let ownFolder { rmdir(ownFolder) }
  }

  private static func failure(_ operation: String, _ name: String) -> ProjectionError {
    .file(operation: operation, name: name, cause: String(cString: strerror(errno)))
  }

  private static func create(_ path: String) throws(ProjectionError) -> Int32 {
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("making", "a temporary generation") }
    // Nobody else has seen the file yet, so that the lock is free.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let failure = failure("locking", "a temporary generation")
      close(descriptor)
      unlink(path)
      throw failure
    }
    return descriptor
  }

  private static func temporaryFolder() throws(ProjectionError) -> String {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/ledgerctl-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw failure("making a temporary folder in", parent) }
    return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// Removes the files that nobody holds any more.
  private static func removeLeftovers(_ folder: String) {
    for name in fileNames(in: folder) where name.contains(".sqlite") {
      let path = "\(folder)/\(name)"
      let descriptor = open(path, O_RDWR | O_CLOEXEC)
      if descriptor < 0 { continue }
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { unlink(path) }
      close(descriptor)
    }
  }
}
