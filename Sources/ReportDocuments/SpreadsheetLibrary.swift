// The library that writes Excel files.
import CXlsxWriter

/// The library behind spreadsheets. Another version may write other bytes for the same rows.
package enum SpreadsheetLibrary {
  /// For example `libxlsxwriter 1.1.4`.
  package static var name: String {
    "libxlsxwriter " + (lxw_version().map { String(cString: $0) } ?? "of an unknown version")
  }
}
