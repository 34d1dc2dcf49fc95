// An event's line: parsed strictly and in place, without allocating; and its redaction.
package import Base
import Glibc

/// One event as stored in the log. It points into bytes that it does not own and is valid as long as they are.
///
/// A redacted line has lost its data: `data` is then the kept part, `saltText` the salt of the kept part.
package struct EventLine {
  /// The line without its line feed.
  package let bytes: UnsafeRawBufferPointer
  /// The event's position (`seq`).
  package private(set) var position: Position
  /// The version of the event's type, from 1.
  package let version: Int
  /// When it was recorded, in milliseconds since 1970.
  package let recordedAtMs: Int64
  /// The position of the erasure that redacted it; nil if the event has all its data.
  package let redactedBy: Position?
  private let typeRange: Range<Int>
  private let digestOffset: Int
  private let saltOffset: Int
  /// The offset in the line of the data, or of its kept part.
  package let dataOffsetBytes: Int

  /// Parses a line without its line feed; nil unless it has the exact form of an event.
  ///
  /// Of the data, only the enclosing braces are checked: the writer guarantees valid JSON.
  package init?(_ line: UnsafeRawBufferPointer) {
    guard line.count < Format.lineByteCountMax else { return nil }
    var scanner = ByteScanner(line)
    guard scanner.skip("{\"seq\":"), let position = scanner.decimal(),
      scanner.skip(",\"type\":\""), let typeRange = scanner.eventType(),
      scanner.skip("\",\"v\":"), let version = scanner.decimal(), version > 0,
      scanner.skip(",\"at\":\""), let time = scanner.read(Timestamp.fixedByteCount),
      let recordedAtMs = Timestamp.parseFixed(time), scanner.skip("\",\"digest\":\"")
    else { return nil }
    digestOffset = scanner.offset
    guard let digest = scanner.read(64), Self.isHex(digest), scanner.skip("\",\"salt\":")
    else { return nil }
    // What follows the data: the brace of the line, and that of `redacted`.
    var closingByteCount = 1
    var redactedBy: Position?
    if !scanner.skip("\"") {
      guard scanner.skip("null,\"data\":null,\"redacted\":{\"by\":"), let by = scanner.decimal(),
        by > position, scanner.skip(",\"salt\":\"")
      else { return nil }
      redactedBy = by
      closingByteCount = 2
    }
    saltOffset = scanner.offset
    guard let salt = scanner.read(SaltText.characterCount), SaltText.isCanonical(salt),
      redactedBy == nil ? scanner.skip("\",\"data\":{") : scanner.skip("\",\"kept\":{"),
      line.count - scanner.offset > closingByteCount,
      line.suffix(closingByteCount + 1).allSatisfy({ $0 == 0x7D })
    else { return nil }
    dataOffsetBytes = scanner.offset - 1
    self.redactedBy = redactedBy
    bytes = line
    self.position = position
    self.version = version
    self.recordedAtMs = recordedAtMs
    self.typeRange = typeRange
  }

  private static func isHex(_ digits: UnsafeRawBufferPointer) -> Bool {
    for offset in stride(from: 0, to: digits.count, by: 8) {
      let word = digits.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      if Hex.bytes(UInt64(littleEndian: word)) == nil { return false }
    }
    return true
  }

  /// The same event at another position, for a fold of events of several ledgers. The bytes do not change.
  package func moved(to position: Position) -> EventLine {
    var moved = self
    moved.position = position
    return moved
  }

  /// The event's type.
  package var type: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[typeRange]) }

  /// Whether the event is of this type.
  package func hasType(_ name: StaticString) -> Bool {
    guard typeRange.count == name.utf8CodeUnitCount, let base = bytes.baseAddress
    else { return false }
    return memcmp(base + typeRange.lowerBound, name.utf8Start, typeRange.count) == 0
  }

  /// The 64 hexadecimal digits of the digest.
  package var digestHex: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes[digestOffset..<digestOffset + 64])
  }

  /// Whether the event's data was redacted.
  package var isRedacted: Bool { redactedBy != nil }

  /// The salt in base64; in a redacted line, the salt of the kept part.
  package var saltText: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      rebasing: bytes[saltOffset..<saltOffset + SaltText.characterCount])
  }

  /// The data, or its kept part: a JSON object with its braces.
  package var data: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      rebasing: bytes[dataOffsetBytes..<bytes.count - (isRedacted ? 2 : 1)])
  }

  /// The leaf record without its last byte: the line up to the digest's closing quote.
  package var leafRecordStart: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes[0..<digestOffset + 65])
  }

  /// The record that is hashed as the tree's leaf.
  package var leafRecord: [UInt8] { Array(leafRecordStart) + [0x7D] }

  /// The hash of the leaf: SHA-256 of a zero byte and the leaf record.
  package func leafHash(_ hasher: SHA256) -> SHA256Digest {
    let record = leafRecordStart
    return withUnsafeTemporaryAllocation(byteCount: record.count + 2, alignment: 1) { leaf in
      leaf[0] = 0
      UnsafeMutableRawBufferPointer(rebasing: leaf[1...]).copyMemory(from: record)
      leaf[record.count + 1] = 0x7D
      return hasher.hash(UnsafeRawBufferPointer(leaf))
    }
  }

  /// Whether the digest matches salt and data; false for a redacted line, which no longer has what its digest covers.
  package func verifyDigest(_ hasher: SHA256) -> Bool {
    !isRedacted && SHA256Digest(hex: digestHex) == contentDigest(hasher)
  }

  /// The SHA-256 of salt and data; in a redacted line, of the kept ones, which its erasure lists.
  package func contentDigest(_ hasher: SHA256) -> SHA256Digest {
    contentDigest(of: data, hasher)
  }

  /// The SHA-256 of this event's salt and other data.
  package func contentDigest(
    of data: UnsafeRawBufferPointer, _ hasher: SHA256
  ) -> SHA256Digest {
    let digest = SaltText.withDecoded(saltText) { salt in
      hasher.update(salt)
      hasher.update(data)
      return hasher.finish()
    }
    guard let digest else { preconditionFailure("a parsed line has a canonical salt") }
    return digest
  }
}

/// Iterates over consecutive whole event lines.
package struct EventLines {
  private var rest: UnsafeRawBufferPointer

  /// The bytes must be empty or end with a line feed.
  package init(_ bytes: UnsafeRawBufferPointer) { rest = bytes }

  /// The next line without its line feed; nil at the end. It never returns bytes after the last line feed; then
  /// `isAtEnd` stays false.
  package mutating func next() -> UnsafeRawBufferPointer? {
    guard let base = rest.baseAddress, !rest.isEmpty, let end = memchr(base, 0x0A, rest.count)
    else { return nil }
    let count = UnsafeRawPointer(end) - base
    defer { rest = UnsafeRawBufferPointer(rebasing: rest[(count + 1)...]) }
    return UnsafeRawBufferPointer(start: base, count: count)
  }

  /// The first line of these bytes, without its line feed; nil if none ends in them.
  static func first(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var lines = EventLines(bytes)
    return lines.next()
  }

  /// Whether no bytes are left.
  package var isAtEnd: Bool { rest.isEmpty }
}

// MARK: - Redaction

extension EventLine {
  /// The same event with only a part of its data. Header and digest stay, and so does the leaf in the tree. The new
  /// salt is the first 16 bytes of SHA-256("redact" ‖ old salt): it is derived from the old one, which is not kept.
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
    return redacted(by: erasure, kept: kept) { line in
      salt.withUnsafeBytes {
        SaltText.append(UnsafeRawBufferPointer(rebasing: $0[..<SaltText.byteCount]), to: line)
      }
    }
  }

  /// As above, with the salt of another redacted line: that of the event in the ledger that this one was merged from.
  package func redacted(by erasure: Position, kept: [UInt8], as other: EventLine) -> [UInt8] {
    precondition(erasure > position, "an erasure comes after what it redacts")
    return redacted(by: erasure, kept: kept) { $0.append(other.saltText) }
  }

  private func redacted(
    by erasure: Position, kept: [UInt8], appendSalt: (ByteBuffer) -> Void
  ) -> [UInt8] {
    let line = ByteBuffer(capacity: kept.count + 400)
    // The record ends with the digest's closing quote.
    line.append(leafRecordStart)
    line.append(",\"salt\":null,\"data\":null,\"redacted\":{\"by\":")
    line.appendDecimal(erasure)
    line.append(",\"salt\":\"")
    appendSalt(line)
    line.append("\",\"kept\":")
    kept.withUnsafeBytes { line.append($0) }
    line.append("}}")
    return Array(line.bytes)
  }
}
