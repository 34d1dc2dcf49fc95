// A folder for temporary files of a command.
import Glibc

/// A folder that only its owner may enter, removed with the value.
package final class TemporaryFolder {
  package let folder: Folder

  /// Creates it in `TMPDIR`, else in `/tmp`.
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

  /// The path of a file in it, without links: databases are opened without following any.
  package func path(_ name: String) -> String { "\(folder.path)/\(name)" }

  deinit {
    for name in (try? folder.names()) ?? [] { try? folder.unlink(name) }
    rmdir(folder.path)
  }
}
