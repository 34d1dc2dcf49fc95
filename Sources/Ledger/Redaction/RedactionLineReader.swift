// Reads the file of redacted lines from its beginning, line by line.
import Base
import Glibc

/// Delivers redacted lines in the order of their file. Not thread-safe.
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
  /// Where the line that was delivered last begins in the file.
  private(set) var lineOffsetBytes = 0

  /// Reads the header. Throws `corruption` if it is not that of a file of this size.
  init(_ file: StorageFile, sizeBytes: Int) throws(LedgerError) {
    self.file = file
    self.sizeBytes = sizeBytes
    let bytes = ByteBuffer(capacity: RedactionFile.Header.byteCount)
    guard
      try file.readWhole(RedactionFile.Header.byteCount, offsetBytes: 0, into: bytes),
      let header = RedactionFile.Header(Array(bytes.bytes))
    else { throw Self.damage("its header is damaged") }
    guard sizeBytes - RedactionFile.Header.byteCount == header.byteCount else {
      throw Self.damage("its size is not the one that its header names")
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

  /// Moves what was not delivered to the window's start, and reads what follows it.
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
