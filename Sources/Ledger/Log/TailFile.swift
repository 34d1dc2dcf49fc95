// A tail's file, which a writer removes once a block holds its events: kept open, or opened for each read.

/// A tail's file. A file that is kept open stays readable after its name is removed. Keeping all tails open would
/// need as many descriptors as there are tails.
final class TailFile: Sendable {
  /// The path inside the ledger.
  let name: String
  /// The number of the file that was found under the name.
  let fileNumber: UInt64
  private let first: Position
  private let directory: LedgerDirectory
  private let kept: StorageFile?

  private init(
    _ directory: LedgerDirectory, name: String, first: Position, fileNumber: UInt64,
    kept: StorageFile?
  ) {
    self.directory = directory
    self.name = name
    self.first = first
    self.fileNumber = fileNumber
    self.kept = kept
  }

  /// - Parameter isKept: whether the file stays open as long as this object lives.
  convenience init(
    _ file: StorageFile, _ directory: LedgerDirectory, first: Position, isKept: Bool
  ) throws(LedgerError) {
    self.init(
      directory, name: file.name, first: first, fileNumber: try file.status().fileNumber,
      kept: isKept ? file : nil)
  }

  /// The same file, no longer kept open.
  var closed: TailFile {
    TailFile(directory, name: name, first: first, fileNumber: fileNumber, kept: nil)
  }

  /// The file, open for reading.
  ///
  /// Throws an error with `isOfVanishedTail` if the name now refers to another file or to none.
  func opened() throws(LedgerError) -> StorageFile {
    if let kept { return kept }
    guard let file = try directory.openFileIfPresent(name),
      try file.status().fileNumber == fileNumber
    else {
      throw LedgerError(
        .init(verdict: .missing, file: name, position: first),
        operation: LedgerError.tailOperation, cause: "the tail is missing")
    }
    return file
  }
}

extension LedgerError {
  fileprivate static let tailOperation = "open tail"

  /// Whether a tail was removed after it was found: its events are now in a block or in a new file with that name.
  var isOfVanishedTail: Bool { operation == Self.tailOperation && damage != nil }
}
