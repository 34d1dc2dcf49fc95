// A folder for temporary files of a command.
import Glibc

/// A folder that only its owner may enter, removed with the value.
final class TemporaryFolder {
  private let folder: String

  /// Creates it in `TMPDIR`, else in `/tmp`.
  init() throws(Failure) {
    let parent = environmentValue("TMPDIR") ?? "/tmp"
    var template = Array("\(parent)/ledgerctl-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw Failure(operation: "create temporary folder", object: parent, systemError: errno)
    }
    let made = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    // The path may contain links; databases are opened without following any.
    folder = resolvedPath(made)
  }

  /// The path of a file in it.
  func path(_ name: String) -> String { "\(folder)/\(name)" }

  deinit {
    if let stream = opendir(folder) {
      while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { unlink(path(name)) }
      }
      closedir(stream)
    }
    rmdir(folder)
  }
}
