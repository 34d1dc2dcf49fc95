// Why an Excel file could not be made.

/// A failure while an Excel file is made. No file is put in place then.
package enum SpreadsheetError: Error, Equatable, CustomStringConvertible {
  /// The report has more rows than a sheet holds.
  case tooManyRows
  /// A part of the file would have more bytes than it may have.
  case tooLarge
  /// A system call failed, with its `errno`.
  case system(operation: String, code: Int32)
  /// The library failed, with its number and words.
  case library(operation: String, cause: String)

  package var description: String {
    switch self {
    case .tooManyRows:
      "more than 1,048,575 rows, which is what an Excel sheet holds below its heading; "
        + "choose fewer days with --from and --to, or write CSV"
    case .tooLarge:
      "more than 4 GiB of rows, which is what an Excel file can hold; "
        + "choose fewer days with --from and --to, or write CSV"
    case .system(let operation, let code): "\(operation): system error \(code)"
    case .library(let operation, let cause): "\(operation): \(cause)"
    }
  }
}
