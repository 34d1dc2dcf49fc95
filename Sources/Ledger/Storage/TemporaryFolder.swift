// A folder for a command's temporary files.
import Glibc

/// A folder that only its owner may enter; removed with the value.
package final class TemporaryFolder {
  package let folder: Folder

  /// Creates it in `TMPDIR`, or in `/tmp` if that is not set.
  package init() throws(LedgerError) {
    var parent = "/tmp"
    if let given = getenv("TMPDIR"), given.pointee != 0 { parent = String(cString: given) }
    var template = Array("\(parent)/ledgerctl-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw .system(errno, "create temporary folder", parent)
    }
    folder = try Folder(
      path: String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self))
  }

  /// The path of a file in it, without links, because databases are opened without following links.
  package func path(_ name: String) -> String { "\(folder.path)/\(name)" }

  deinit {
    for name in (try? folder.names()) ?? [] { try? folder.unlink(name) }
    rmdir(folder.path)
  }
}
