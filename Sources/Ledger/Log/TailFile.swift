// A tail's file, which a writer removes once it is a block: kept open, or opened whenever it is read.

/// A tail's file. One that is kept open stays readable when its name is gone; keeping all of them open would take as many
/// descriptors as there are tails.
final class TailFile: Sendable {
  /// The path inside the ledger.
  let name: String
  /// The number of the file that was met under the name.
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

  /// - Parameter isKept: whether it stays open as long as this lives.
  convenience init(
    _ file: StorageFile, _ directory: LedgerDirectory, first: Position, isKept: Bool
  ) throws(LedgerError) {
    self.init(
      directory, name: file.name, first: first, fileNumber: try file.status().fileNumber,
      kept: isKept ? file : nil)
  }

  /// The same file, no longer kept open.
  var letGo: TailFile {
    TailFile(directory, name: name, first: first, fileNumber: fileNumber, kept: nil)
  }

  /// The file, open for reading.
  ///
  /// Throws an error with `isOfVanishedTail` where another file, or none, has its name.
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

  /// Whether a tail was removed since it was seen: its events are in a block by now, or in a new file of that name.
  var isOfVanishedTail: Bool { operation == Self.tailOperation && damage != nil }
}
