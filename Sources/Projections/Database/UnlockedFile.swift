// A database on a medium, or in a folder, that may not be written to: read without locks.
import Glibc
import Ledger

/// A database file in a folder where SQLite can make no files of its own. It can be read all the same while
/// no process writes to it: there is no write-ahead log next to it, and its file does not change.
struct UnlockedFile {
  private let path: String
  private let found: FileStatus

  /// Nil where the folder may be written to, where SQLite's own files are there already, or where a log of
  /// changes holds some that the file itself has not.
  init?(_ path: String) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
    guard access(folder ?? ".", W_OK) != 0, errno == EACCES || errno == EROFS,
      access(path + "-shm", F_OK) != 0, (Self.status(path + "-wal")?.sizeBytes ?? 0) == 0,
      let found = Self.status(path)
    else { return nil }
    self.path = path
    self.found = found
  }

  /// Whether the file is the one that was found.
  var isUnchanged: Bool {
    guard let status = Self.status(path) else { return false }
    return status.isOfSameFile(as: found) && status.sizeBytes == found.sizeBytes
      && status.modifiedAtNs == found.modifiedAtNs
  }

  private static func status(_ path: String) -> FileStatus? { try? PosixStorage().status(path) }

  /// The file as SQLite takes one that does not change.
  var address: String {
    var escaped = ""
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "%"), ...0x20, 0x7F...:
        escaped += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      default: escaped.unicodeScalars.append(Unicode.Scalar(byte))
      }
    }
    // An absolute path follows an empty authority; one that begins with two slashes has no other place.
    return (path.hasPrefix("/") ? "file://" : "file:") + escaped + "?immutable=1"
  }
}
