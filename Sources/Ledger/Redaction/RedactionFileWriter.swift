// Writes the file of redacted lines: the lines first, then the header, then its name.
package import Base

/// Writes `erasures/lines.new` and gives it its name. Not thread-safe.
///
/// Call `append` for each line, then `finish`, then `commit`; or `discard` at any time before `commit`.
package final class RedactionFileWriter {
  private static let bufferByteCount = 1 << 20

  private let folder: Folder
  private let file: StorageFile
  private let pass: UUID16
  private let hasher = SHA256()
  private let buffer = ByteBuffer(capacity: RedactionFileWriter.bufferByteCount)
  private var lineCount = 0
  /// The size of the lines that were written, without those in the buffer.
  private var writtenByteCount = 0
  private var lastPosition: Position = -1
  private var isFinished = false

  /// Begins the file; replaces one that was never completed.
  ///
  /// Throws `invalidInput` if the lines of an earlier pass are not all in their segments yet.
  package init(_ directory: LedgerDirectory, pass: UUID16) throws(LedgerError) {
    self.pass = pass
    try directory.makePrivateDirectory(RedactionFile.directoryName)
    folder = try directory.root.folder(RedactionFile.directoryName)
    try directory.root.giveNewFolderToOwner(folder)
    guard try folder.status(RedactionFile.leafName) == nil else {
      throw LedgerError(
        .invalidInput, operation: "write redacted lines", object: RedactionFile.name,
        cause: "an earlier erasure is not finished")
    }
    file = try folder.makeFile(RedactionFile.temporaryLeafName)
    try folder.giveNewFileToOwner(file)
  }

  /// Adds a redacted line, without its line feed, after all lines of smaller positions.
  package func append(line: UnsafeRawBufferPointer) throws(LedgerError) {
    precondition(!isFinished, "the file is finished")
    guard let event = EventLine(line), event.isRedacted else {
      preconditionFailure("only redacted lines belong in the file")
    }
    precondition(
      !event.hasType("data.redacted"), "an erasure's own events keep their data: they list lines")
    precondition(event.position > lastPosition, "redacted lines come by position")
    lastPosition = event.position
    lineCount += 1
    buffer.append(line)
    buffer.append("\n")
    if buffer.count >= Self.bufferByteCount { try flush() }
  }

  /// The same for an array.
  package func append(line: [UInt8]) throws(LedgerError) {
    try line.withUnsafeBufferPointer { (bytes) throws(LedgerError) in
      try append(line: UnsafeRawBufferPointer(bytes))
    }
  }

  private func flush() throws(LedgerError) {
    hasher.update(buffer.bytes)
    try file.write(
      buffer.bytes, offsetBytes: RedactionFile.Header.byteCount + writtenByteCount)
    writtenByteCount += buffer.count
    file.startWriting()
    buffer.count = 0
    if buffer.capacity > 8 << 20 { buffer.shrink() }
  }

  /// Writes the header and syncs the file, which still has its temporary name.
  package func finish() throws(LedgerError) {
    precondition(!isFinished, "the file is finished already")
    try flush()
    let header = RedactionFile.Header(
      pass: pass, lineCount: lineCount, byteCount: writtenByteCount, digest: hasher.finish())
    try file.write(header.bytes, offsetBytes: 0)
    try file.syncData()
    isFinished = true
  }

  /// Gives the file its name, durably: from then on, readers show its lines.
  package func commit() throws(LedgerError) {
    precondition(isFinished, "a file is finished before it is committed")
    try folder.rename(
      RedactionFile.temporaryLeafName, to: RedactionFile.leafName, of: file)
    try folder.sync()
  }

  /// Removes the file, which was not committed.
  package func discard() throws(LedgerError) {
    try folder.unlink(RedactionFile.temporaryLeafName)
  }
}
