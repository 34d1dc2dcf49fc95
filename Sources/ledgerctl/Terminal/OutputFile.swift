// `-o FILE`: a file that is created atomically.
import Base
import Glibc
package import Ledger

/// A file that is written under a temporary name in the same folder and renamed at the end. Unless `commit` succeeds,
/// no new file remains and an existing one stays unchanged.
package final class OutputFile {
  /// A regular file that is being written.
  private struct Replacement {
    let folder: Folder
    let file: StorageFile
    let temporary: String
    let name: String
  }

  private let path: String
  /// Nil if the target is not a regular file (a device, a pipe) and is written in place.
  private var replacement: Replacement?
  private var descriptor: Int32 = -1
  package let output: Output

  /// Opens the file. If the path is a symbolic link, its target is replaced, not the link.
  ///
  /// Throws if the file would be inside a ledger's directory.
  /// - Parameters:
  ///   - ledger: the ledger that the command has opened.
  ///   - mode: of a new file; an existing file keeps its mode.
  ///   - isPrivate: whether only its owner may read it, whatever the permissions of a file that it replaces.
  package init(
    path: String, outside ledger: LedgerDirectory?, mode newMode: UInt32 = 0o666,
    isPrivate: Bool = false, storage: any Storage = PosixStorage()
  ) throws {
    self.path = path
    if path == "-" { throw UsageError("--output -", "this command writes a file alone") }
    let existing = try? storage.status(path)
    if existing?.kind == .directory { throw Self.failure(path, "it is a directory") }
    if let existing, existing.kind != .regular {
      descriptor = Glibc.open(path, O_WRONLY | O_CLOEXEC)
      let code = errno
      output = Output(descriptor: descriptor, name: path)
      // Opening a pipe waits for its reader; a signal may have arrived meanwhile.
      if descriptor < 0, code == EINTR { throw Interrupted() }
      if descriptor < 0 { throw Failure(operation: "write", object: path, systemError: code) }
      return
    }
    let (folderPath, name) = Self.split(existing == nil ? path : resolvedPath(path))
    guard !name.isEmpty else { throw Self.failure(path, "it does not name a file") }
    if let error = Self.error(of: folderPath, storage) {
      let cause = error.code == ENOENT ? "the folder does not exist" : systemErrorText(error.code)
      throw Self.failure(folderPath, cause)
    }
    if try isInsideLedger(folderPath, ledger) {
      throw Self.failure(
        path,
        "it is inside a ledger's directory, which may contain only the ledger's own files")
    }
    do throws(LedgerError) {
      let folder = try Folder(path: folderPath, storage: storage)
      // Process ids are unique; a leftover of an earlier process with the same id is removed.
      let temporary = ".\(name.prefix(200)).tmp-\(getpid())"
      let file = try folder.makeFile(temporary, permissions: isPrivate ? 0o600 : newMode)
      if let existing, !isPrivate { try? file.changePermissions(existing.permissions & 0o777) }
      output = Output(file: file, name: path)
      replacement = Replacement(folder: folder, file: file, temporary: temporary, name: name)
    } catch { throw Failure(operation: "write", object: path, systemError: error.code) }
  }

  private static func failure(_ object: String, _ cause: String) -> Failure {
    Failure(operation: "write", object: object, cause: cause)
  }

  /// Why a path can't be examined.
  private static func error(of path: String, _ storage: any Storage) -> SystemError? {
    do throws(SystemError) {
      _ = try storage.status(path)
      return nil
    } catch { return error }
  }

  /// Flushes the buffer, syncs the file and renames it to its final name.
  package func commit() throws {
    try output.flush()
    guard let made = replacement else {
      let code = close(descriptor) == 0 ? 0 : errno
      descriptor = -1
      if code != 0 { throw Failure(operation: "write", object: path, systemError: code) }
      return
    }
    do throws(LedgerError) {
      try made.file.syncData()
      try made.folder.rename(made.temporary, to: made.name, of: made.file)
      replacement = nil
      try made.folder.sync()
    } catch {
      // Some file systems can't sync a folder; the content is safe nevertheless.
      if replacement == nil, error.code == EINVAL { return }
      throw error.code == 0
        ? Self.failure(path, error.cause)
        : Failure(operation: "write", object: path, systemError: error.code)
    }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if let replacement { try? replacement.folder.unlink(replacement.temporary) }
  }

  private static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.lastIndex(of: "/") else { return (".", path) }
    let folder = path[..<slash]
    return (folder.isEmpty ? "/" : String(folder), String(path[path.index(after: slash)...]))
  }
}

/// A path without links; unchanged if it can't be resolved.
func resolvedPath(_ path: String) -> String {
  guard let pointer = realpath(path, nil) else { return path }
  defer { free(pointer) }
  return String(cString: pointer)
}

/// Whether a folder is a ledger's directory or inside one: that of `ledger` or of any other. Compares the folders
/// themselves, so that neither a link nor another spelling of the path evades the check.
func isInsideLedger(_ folder: String, _ ledger: LedgerDirectory?) throws(LedgerError) -> Bool {
  var known: [FileStatus] = []
  if let ledger {
    known.append(try ledger.root.ownStatus())
    for name in LedgerDirectory.folderNames {
      if let status = try ledger.root.status(name), status.kind == .directory {
        known.append(status)
      }
    }
  }
  var path = resolvedPath(folder)
  while true {
    if let folder = try? Folder(path: path) {
      let status = try folder.ownStatus()
      if known.contains(where: status.isOfSameFile) || folder.holdsLedger { return true }
    }
    guard path.hasPrefix("/"), path != "/", let slash = path.lastIndex(of: "/") else {
      return false
    }
    path = slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

extension Folder {
  /// Whether it looks like a ledger's directory.
  fileprivate var holdsLedger: Bool {
    (try? status("ledger.json"))?.kind == .regular && (try? status("log"))?.kind == .directory
  }
}

/// Calls `body` with the file at `path`, or with standard output if that is nil or `-`, and commits what it wrote.
func withDestination(
  _ path: String?, _ context: Context, _ body: (Output) throws -> Void
) throws {
  guard let path, path != "-" else {
    try body(context.output)
    return try context.output.flush()
  }
  let file = try OutputFile(path: path, outside: context.ledgers.opened)
  try body(file.output)
  try context.interruption.check()
  try file.commit()
}
