// A folder for what a command makes and throws away.
import Glibc

/// A folder that its owner alone may enter, removed with the value.
final class TemporaryFolder {
  private let folder: String

  /// Makes it under `TMPDIR`, else `/tmp`.
  init() throws(Failure) {
    let parent = environmentValue("TMPDIR") ?? "/tmp"
    var template = Array("\(parent)/ledgerctl-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw Failure(operation: "make a temporary folder", object: parent, systemError: errno)
    }
    let made = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    // Links may lead to it; the databases in it are opened through none.
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
