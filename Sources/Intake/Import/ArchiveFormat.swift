// What an archive holds, and how its parts become lines of an import file.

/// The formats of archives that an import reads besides its own.
package enum ArchiveFormat: String, CaseIterable, Sendable {
  /// Receipts, one a file: base64 text, or the binary file.
  case receipts
  /// Replies of verifyReceipt.
  case replies
  /// Signed transactions (JWS).
  case transactions
  /// Bodies of notifications, version 1 or 2.
  case notifications
  /// A table with a header line.
  case csv
  /// A table as JSON objects: one array, or one object a line.
  case json
}

/// How an archive is read.
package struct ArchiveOptions: Equatable, Sendable {
  package var format: ArchiveFormat
  /// For tables: which column gives which part of a line.
  package var columns: TableMap?
  /// `Production` or `Sandbox`: an operator's word about replies and signed objects that name none.
  package var environment: String?

  package init(
    _ format: ArchiveFormat, columns: TableMap? = nil, environment: String? = nil
  ) {
    (self.format, self.columns, self.environment) = (format, columns, environment)
  }

  /// The largest file that is read as a whole; larger ones are read line by line.
  static let wholeBytesMax = 16 << 20
}
