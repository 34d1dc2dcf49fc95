// An event's line: parsed strictly and in place, without allocating.
package import Base
import Glibc

/// One event as stored in the log. It points into bytes that it does not own and is valid as long as they are.
package struct EventLine {
  /// The line without its line feed.
  package let bytes: UnsafeRawBufferPointer
  /// The event's position (`seq`).
  package private(set) var position: Position
  /// The version of the event's type, from 1.
  package let version: Int
  /// When it was recorded, in milliseconds since 1970.
  package let recordedAtMs: Int64
  private let typeRange: Range<Int>
  // The offset of the digest's 64 digits; salt and data are at fixed distances from it.
  private let digestOffset: Int

  private static let digestToSalt = 64 + 10
  private static let saltToData = SaltText.characterCount + 9

  /// Parses a line without its line feed; nil unless it has the exact form of an event.
  ///
  /// Of the data, only the enclosing braces are checked: the writer guarantees valid JSON.
  package init?(_ line: UnsafeRawBufferPointer) {
    guard line.count < Format.lineByteCountMax else { return nil }
    var scanner = ByteScanner(line)
    guard scanner.skip("{\"seq\":"), let position = scanner.decimal(),
      scanner.skip(",\"type\":\""), let typeRange = scanner.eventType(),
      scanner.skip("\",\"v\":"), let version = scanner.decimal(), version > 0,
      scanner.skip(",\"at\":\""), let time = scanner.take(Timestamp.fixedByteCount),
      let recordedAtMs = Timestamp.parseFixed(time), scanner.skip("\",\"digest\":\"")
    else { return nil }
    digestOffset = scanner.offset
    guard let digest = scanner.take(64), Self.isHex(digest),
      scanner.skip("\",\"salt\":\""), let salt = scanner.take(SaltText.characterCount),
      SaltText.isCanonical(salt), scanner.skip("\",\"data\":{"),
      line.count - scanner.offset >= 2, line[line.count - 1] == 0x7D, line[line.count - 2] == 0x7D
    else { return nil }
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

  /// The same event at another position, for a fold of events of several ledgers. The bytes stay as they are.
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

  /// The salt in base64.
  package var saltText: UnsafeRawBufferPointer {
    let start = digestOffset + EventLine.digestToSalt
    return UnsafeRawBufferPointer(rebasing: bytes[start..<start + SaltText.characterCount])
  }

  /// The data: a JSON object with its braces.
  package var data: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes[dataOffsetBytes..<bytes.count - 1])
  }

  /// The offset of the data in the line.
  package var dataOffsetBytes: Int {
    digestOffset + EventLine.digestToSalt + EventLine.saltToData
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

  /// Whether the digest matches salt and data.
  package func verifyDigest(_ hasher: SHA256) -> Bool {
    let isSame = SaltText.withDecoded(saltText) { salt in
      hasher.update(salt)
      hasher.update(data)
      return SHA256Digest(hex: digestHex) == hasher.finish()
    }
    return isSame ?? false
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

  /// Whether no bytes are left.
  package var isAtEnd: Bool { rest.isEmpty }
}
