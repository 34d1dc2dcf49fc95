// The file of redacted lines that are not all in their segments yet: its names, header, writer, reader and removal.
package import Base
import Glibc

/// `erasures/lines`: a header of fixed size, then redacted event lines by position. Once it has its final name it is
/// authoritative: readers show its lines instead of those in the log.
package enum RedactionFile {
  static let directoryName = "erasures"
  static let leafName = "lines"
  static let temporaryLeafName = leafName + Format.temporarySuffix
  /// Its path inside the ledger.
  package static let name = "\(directoryName)/\(leafName)"
  /// The path of a file that is being written, or that was never completed.
  package static let temporaryName = "\(directoryName)/\(temporaryLeafName)"

  /// The first line, padded with spaces before its line feed: it is written last, over space reserved for it.
  struct Header: Equatable {
    static let byteCount = 192

    let pass: UUID16
    let lineCount: Int
    /// The size of the lines, with their line feeds.
    let byteCount: Int
    let digest: SHA256Digest

    init(pass: UUID16, lineCount: Int, byteCount: Int, digest: SHA256Digest) {
      self.pass = pass
      self.lineCount = lineCount
      self.byteCount = byteCount
      self.digest = digest
    }

    var bytes: [UInt8] {
      var writer = JSONWriter()
      writer.beginObject()
      writer.member("pass", pass.description)
      writer.member("lines", lineCount)
      writer.member("bytes", byteCount)
      writer.member("sha256", digest.hex)
      writer.endObject()
      var bytes = writer.bytes
      precondition(bytes.count < Self.byteCount, "a header is larger than its room")
      bytes.append(contentsOf: repeatElement(0x20, count: Self.byteCount - bytes.count - 1))
      bytes.append(0x0A)
      return bytes
    }

    /// Reads a header; nil unless a writer of this program would write exactly these bytes.
    init?(_ bytes: [UInt8]) {
      guard bytes.count == Self.byteCount, let value = try? JSONValue(bytes),
        let pass = value["pass"]?.stringValue.flatMap({ UUID16($0) }),
        let lineCount = value.count("lines"), let byteCount = value.count("bytes"),
        let hex = value["sha256"]?.stringValue,
        let digest = Array(hex.utf8).withUnsafeBytes({ SHA256Digest(hex: $0) })
      else { return nil }
      self.init(pass: pass, lineCount: lineCount, byteCount: byteCount, digest: digest)
      if self.bytes != bytes { return nil }
    }
  }

  /// Whether a ledger has the file.
  package static func exists(in directory: LedgerDirectory) throws(LedgerError) -> Bool {
    try directory.statusIfPresent(name) != nil
  }

  /// Removes the file durably, once all its lines are in their segments. Does nothing if there is none.
  package static func remove(from directory: LedgerDirectory) throws(LedgerError) {
    guard let folder = try directory.folderIfPresent(directoryName),
      try folder.status(leafName) != nil
    else { return }
    try folder.unlink(leafName)
    try folder.sync()
  }
}

// MARK: - Writer

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
  /// The size of the written lines, without those in the buffer.
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

  /// As above, for an array.
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

// MARK: - Reader

/// Delivers redacted lines in the order of their file, from its beginning. Not thread-safe.
package struct RedactionLineReader {
  static let operation = "read redacted lines"
  private static let windowByteCount = 1 << 20

  private let file: StorageFile
  private let sizeBytes: Int
  let header: RedactionFile.Header
  private let hasher = SHA256()
  /// The part of the file in memory, where it ends in the file, and how much of it was delivered.
  private let window = ByteBuffer(capacity: RedactionLineReader.windowByteCount)
  private var windowEndBytes = RedactionFile.Header.byteCount
  private var doneByteCount = 0
  /// The offset in the file of the last delivered line.
  private(set) var lineOffsetBytes = 0

  /// Reads the header. Throws `corruption` if it is not the header of a file of this size.
  init(_ file: StorageFile, sizeBytes: Int) throws(LedgerError) {
    self.file = file
    self.sizeBytes = sizeBytes
    let bytes = ByteBuffer(capacity: RedactionFile.Header.byteCount)
    guard
      try file.readWhole(RedactionFile.Header.byteCount, offsetBytes: 0, into: bytes),
      let header = RedactionFile.Header(Array(bytes.bytes))
    else { throw Self.damage("its header is damaged") }
    guard sizeBytes - RedactionFile.Header.byteCount == header.byteCount else {
      throw Self.damage("its size differs from the one in its header")
    }
    self.header = header
  }

  static func damage(_ cause: String) -> LedgerError {
    LedgerError(
      .init(verdict: .corrupt, file: RedactionFile.name, position: nil), operation: operation,
      cause: cause)
  }

  /// The next line; nil after the last. It is valid until the next call.
  package mutating func next() throws(LedgerError) -> EventLine? {
    while true {
      let rest = UnsafeRawBufferPointer(rebasing: window.bytes[doneByteCount...])
      if let line = EventLines.first(rest) {
        guard let event = EventLine(line), event.isRedacted else {
          throw Self.damage("a line is not a redacted event")
        }
        lineOffsetBytes = windowEndBytes - rest.count
        doneByteCount += line.count + 1
        return event
      }
      if windowEndBytes == sizeBytes {
        guard rest.isEmpty else { throw Self.damage("it ends inside a line") }
        return nil
      }
      guard rest.count < Format.lineByteCountMax else {
        throw Self.damage("a line is larger than an event can be")
      }
      try fill()
    }
  }

  /// Moves the undelivered bytes to the window's start, and reads the bytes that follow.
  private mutating func fill() throws(LedgerError) {
    let restByteCount = window.count - doneByteCount
    memmove(window.base, window.base + doneByteCount, restByteCount)
    window.count = restByteCount
    doneByteCount = 0
    let byteCount = min(Self.windowByteCount, sizeBytes - windowEndBytes)
    window.reserve(byteCount)
    let target = UnsafeMutableRawBufferPointer(
      rebasing: window.storage[restByteCount..<restByteCount + byteCount])
    guard try file.read(into: target, offsetBytes: windowEndBytes) == byteCount else {
      throw Self.damage("it was truncated")
    }
    hasher.update(UnsafeRawBufferPointer(target))
    window.count += byteCount
    windowEndBytes += byteCount
  }

  /// The SHA-256 of the lines, after the last one.
  func digest() -> SHA256Digest {
    precondition(windowEndBytes == sizeBytes, "not all lines were read")
    return hasher.finish()
  }
}
