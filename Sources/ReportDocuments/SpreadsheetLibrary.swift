// The libraries that write Excel files.
import CXlsxWriter
import CZlib

/// The libraries behind spreadsheets. Other versions may write other bytes for the same rows.
package enum SpreadsheetLibrary {
  /// For example `libxlsxwriter 1.1.4, zlib 1.2.13`.
  package static var name: String {
    func text(_ version: UnsafePointer<CChar>?) -> String {
      version.map { String(cString: $0) } ?? "of an unknown version"
    }
    return "libxlsxwriter \(text(lxw_version())), zlib \(text(zlibVersion()))"
  }
}
