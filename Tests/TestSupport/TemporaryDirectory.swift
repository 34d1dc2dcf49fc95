// Directories that exist as long as a test.
import Foundation

/// A new, empty directory that only its owner may enter; removed with the value.
package final class TemporaryDirectory {
  /// Absolute, without a slash at the end.
  package let path: String

  package init(_ prefix: String = "receipt-ledger") throws {
    let url = FileManager.default.temporaryDirectory
      .appendingPathComponent("\(prefix)-\(UUID().uuidString)")
    path = url.path
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// Read-only files in it do not keep their owner from removing them.
  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of something in the directory.
  package func path(_ name: String) -> String { path + "/" + name }
}
