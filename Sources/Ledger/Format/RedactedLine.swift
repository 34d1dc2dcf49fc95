// Makes the line of an event that loses its data.
package import Base

extension EventLine {
  /// The same event with what is kept of its data. Header and digest stay, so the leaf in the tree stays too. The new
  /// salt is the first 16 bytes of SHA-256("redact" ‖ old salt): it follows from the old one, which is gone.
  /// - Parameters:
  ///   - erasure: the position of the event that opened the erasure, after this event.
  ///   - kept: one JSON object without white space.
  /// - Returns: the line without its line feed.
  package func redacted(by erasure: Position, kept: [UInt8], _ hasher: SHA256) -> [UInt8] {
    precondition(erasure > position, "an erasure comes after what it redacts")
    let salt = SaltText.withDecoded(saltText) { old in
      "redact".utf8.withContiguousStorageIfAvailable {
        hasher.update(UnsafeRawBufferPointer($0))
      }
      hasher.update(old)
      return hasher.finish()
    }
    guard let salt else { preconditionFailure("a parsed line has a canonical salt") }
    let line = ByteBuffer(capacity: kept.count + 400)
    // The record ends with the digest's closing quote.
    line.append(leafRecordStart)
    line.append(",\"salt\":null,\"data\":null,\"redacted\":{\"by\":")
    line.appendDecimal(erasure)
    line.append(",\"salt\":\"")
    salt.withUnsafeBytes {
      SaltText.append(UnsafeRawBufferPointer(rebasing: $0[..<SaltText.byteCount]), to: line)
    }
    line.append("\",\"kept\":")
    kept.withUnsafeBytes { line.append($0) }
    line.append("}}")
    return Array(line.bytes)
  }
}
