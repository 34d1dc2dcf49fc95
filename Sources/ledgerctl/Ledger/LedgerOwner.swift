// Root in the ledger of another user: the command gives up root's rights and acts as that user.
import Glibc
import Ledger

/// The user as whom a run of the program acts in place of root.
final class LedgerOwner {
  /// Nil while the program acts as the user that started it.
  private(set) var actsAs: String?

  /// Makes root act as the owner of a directory for the rest of the run, with that user's groups. What the command makes
  /// then belongs to the owner, whose server can read and write it, and nothing in the directory can make root read or
  /// write another file. The C library applies this to all threads.
  func assume(_ path: String, owner: UInt32, group: UInt32) throws(Failure) {
    guard geteuid() == 0, owner != 0 else { return }
    let user = getpwuid(owner)
    let name = user.map { String(cString: $0.pointee.pw_name) }
    let groups = user.map { initgroups($0.pointee.pw_name, group) } ?? setgroups(1, [group])
    let shown = name ?? "#\(owner)"
    guard groups == 0, setgid(group) == 0, setuid(owner) == 0, geteuid() == owner else {
      throw Failure(
        operation: "act as the ledger's owner", object: path,
        cause:
          "\(systemErrorText(errno)); run the command as that user: sudo -u '\(shown)' ledgerctl …")
    }
    actsAs = shown
    guard access(path, R_OK | X_OK) == 0 else {
      throw Failure(
        operation: "act as the ledger's owner", object: path,
        cause: "\(shown) cannot open it: \(systemErrorText(errno))")
    }
  }

  /// The same for a directory that may become a ledger; one that does not exist yet will be the caller's own.
  func assume(newLedger path: String) throws(Failure) {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
    try assume(path, owner: status.st_uid, group: status.st_gid)
  }
}
