// The libraries that write Excel files.
import CXlsxWriter
import CZlib

/// The library behind spreadsheets.
package enum SpreadsheetLibrary {
  /// The form of the files, as manifests name it. The same cells were packed otherwise in form 1.
  package static let form = 2

  /// For example `libxlsxwriter 1.1.4`.
  package static var name: String { "libxlsxwriter " + text(lxw_version()) }

  /// All that decides the bytes of a file, for example `libxlsxwriter 1.1.4, zlib 1.2.13`: other versions may write
  /// other bytes for the same rows.
  package static var versions: String { name + ", zlib " + text(zlibVersion()) }

  private static func text(_ version: UnsafePointer<CChar>?) -> String {
    version.map { String(cString: $0) } ?? "of an unknown version"
  }
}
