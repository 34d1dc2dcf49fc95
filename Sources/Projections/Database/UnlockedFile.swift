// A database on read-only media or in a read-only folder: read without locks.
import Glibc
import Ledger

/// A database file in a folder where SQLite cannot create its own files. It can still be read while no process writes
/// to it: it has no write-ahead log, and the file does not change.
struct UnlockedFile {
  private let path: String
  private let found: FileStatus

  /// Nil if the folder is writable, if SQLite's auxiliary files exist, or if a log holds changes that the file itself
  /// lacks.
  init?(_ path: String) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
    guard access(folder ?? ".", W_OK) != 0, errno == EACCES || errno == EROFS,
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
