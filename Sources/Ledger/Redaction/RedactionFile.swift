// The file of redacted lines that are not all in their segments yet: its names, header and removal.
import Base
import JSON

/// `erasures/lines`: a header of fixed size, then redacted event lines by position. Once it has its name it is the
/// truth: readers show its lines instead of those in the log.
package enum RedactionFile {
  static let directoryName = "erasures"
  static let leafName = "lines"
  static let temporaryLeafName = leafName + Format.temporarySuffix
  /// Its path inside the ledger.
  package static let name = "\(directoryName)/\(leafName)"
  /// The path of one that is being written, or that was never completed.
  package static let temporaryName = "\(directoryName)/\(temporaryLeafName)"

  /// The first line, padded with spaces before its line feed: it is written last, over room that was left for it.
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

  /// Whether a ledger has one.
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
