// `-o FILE`: a file that is created atomically.
import Glibc
import Ledger

/// A file that is written under a temporary name in the same folder and renamed at the end. Unless `commit` succeeds,
/// no new file remains and an existing one stays unchanged.
final class OutputFile {
  private let path: String
  /// Nil if the target is not a regular file (a device, a pipe) and is written in place.
  private let temporaryPath: String?
  private var descriptor: Int32
  let output: Output

  /// Opens the file. If the path is a symbolic link, its target is replaced, not the link.
  ///
  /// Throws if the file would be inside a ledger's directory.
  /// - Parameters:
  ///   - ledger: the ledger that the command has opened.
  ///   - mode: of a new file; an existing file keeps its mode.
  ///   - isPrivate: whether only its owner may read it, whatever the permissions of a file that it replaces.
  init(
    path: String, outside ledger: LedgerDirectory?, mode newMode: mode_t = 0o666,
    isPrivate: Bool = false
  ) throws {
    let operation = "write"
    var status = stat()
    let exists = stat(path, &status) == 0
    let mode = exists && !isPrivate ? status.st_mode & 0o777 : nil
    if exists, status.st_mode & S_IFMT == S_IFDIR {
      throw Failure(operation: operation, object: path, cause: "it is a directory")
    }
    if exists, status.st_mode & S_IFMT != S_IFREG {
      self.path = path
      temporaryPath = nil
      descriptor = Glibc.open(path, O_WRONLY | O_CLOEXEC)
    } else {
      let target = exists ? resolvedPath(path) : path
      let (folder, name) = Self.split(target)
      guard !name.isEmpty else {
        throw Failure(operation: operation, object: path, cause: "it does not name a file")
      }
      if stat(folder, &status) != 0 {
        let cause = errno == ENOENT ? "the folder does not exist" : systemErrorText(errno)
        throw Failure(operation: operation, object: folder, cause: cause)
      }
      if try isInsideLedger(folder, ledger) {
        throw Failure(
          operation: operation, object: path,
          cause: "it is inside a ledger's directory, which may contain only the ledger's own files")
      }
      self.path = target
      // Process ids are unique; a leftover of an earlier process with the same id is removed.
      let temporary = "\(folder)/.\(name.prefix(200)).tmp-\(getpid())"
      temporaryPath = temporary
      _ = unlink(temporary)
      descriptor = Glibc.open(
        temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, isPrivate ? 0o600 : newMode)
      if descriptor >= 0, let mode { _ = fchmod(descriptor, mode) }
    }
    let code = errno
    output = Output(descriptor: descriptor, name: path)
    // Opening a pipe waits for its reader; a signal may have arrived meanwhile.
    if descriptor < 0, code == EINTR { throw Interrupted() }
    if descriptor < 0 { throw Failure(operation: operation, object: path, systemError: code) }
  }

  /// Flushes the buffer, syncs the file and renames it to its final name.
  func commit() throws {
    try output.flush()
    if let temporaryPath {
      // Not `Folder.putInPlace`: a report stands outside the ledger, in a folder that a link may lead to.
      try check(fsync(descriptor))
      try check(rename(temporaryPath, path))
    }
    let code = close(descriptor) == 0 ? 0 : errno
    descriptor = -1
    if code != 0 { throw Failure(operation: "write", object: path, systemError: code) }
    if temporaryPath != nil { Self.syncFolder(of: path) }
  }

  private func check(_ result: Int32) throws(Failure) {
    if result != 0 { throw Failure(operation: "write", object: path, systemError: errno) }
  }

  deinit {
    guard descriptor >= 0 else { return }
    close(descriptor)
    if let temporaryPath { unlink(temporaryPath) }
  }

  private static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.lastIndex(of: "/") else { return (".", path) }
    let folder = path[..<slash]
    return (folder.isEmpty ? "/" : String(folder), String(path[path.index(after: slash)...]))
  }

  /// The name is durable only after its folder is synced. If that fails, the content is safe nevertheless.
  private static func syncFolder(of path: String) {
    let descriptor = Glibc.open(split(path).folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = fsync(descriptor)
    close(descriptor)
  }
}

/// A path without links; unchanged if it can't be resolved.
func resolvedPath(_ path: String) -> String {
  guard let pointer = realpath(path, nil) else { return path }
  defer { free(pointer) }
  return String(cString: pointer)
}

/// Whether a folder is a ledger's directory or inside one: that of `ledger` or of any other. Compares the folders
/// themselves, so that neither a link nor another spelling of the path gets around the check.
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
