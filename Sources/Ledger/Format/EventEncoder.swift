// Encodes drafts as event lines, with digests and inserted positions.
import Base
import Glibc

/// A reference to the position of another event in the same append. The position is known only when the event is
/// written.
package struct PositionReference: Sendable, Equatable {
  /// The offset in `EventDraft.data` at which the position's decimal digits are inserted.
  package let offsetBytes: Int
  /// The index of that event in the append.
  package let eventIndex: Int

  package init(offsetBytes: Int, eventIndex: Int) {
    self.offsetBytes = offsetBytes
    self.eventIndex = eventIndex
  }
}

/// An event that has no position yet.
package struct EventDraft: Sendable {
  /// The type: `[a-z][a-z0-9_.]*`, at most 64 bytes.
  package let type: String
  /// The version of the type, from 1.
  package let version: Int
  /// A compact JSON object, without a raw line feed.
  package let data: [UInt8]
  /// The positions to insert, by increasing `offsetBytes`.
  package let references: [PositionReference]

  package init(type: String, version: Int, data: [UInt8], references: [PositionReference] = []) {
    self.type = type
    self.version = version
    self.data = data
    self.references = references
  }

  /// An event of the catalogue in its current version.
  package init(_ type: EventType, _ data: [UInt8], references: [PositionReference] = []) {
    self.init(
      type: type.rawValue, version: type.currentVersion, data: data, references: references)
  }

  /// An upper limit for the length of this draft's line.
  var lineByteCountLimit: Int { data.count + references.count * 18 + 320 }

  /// Why this draft cannot become an event; nil if it can.
  func fault(eventCount: Int) -> String? {
    let typeFault = "the type is not [a-z][a-z0-9_.]* of at most \(Format.typeByteCountMax) bytes"
    guard let first = type.utf8.first, 0x61...0x7A ~= first,
      type.utf8.count <= Format.typeByteCountMax,
      type.utf8.allSatisfy({
        0x61...0x7A ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x5F || $0 == 0x2E
      })
    else { return typeFault }
    guard version > 0, version <= Int(Int32.max) else {
      return "the version is less than 1 or too large"
    }
    guard data.first == 0x7B, data.last == 0x7D, data.count >= 2
    else { return "the data is not a JSON object" }
    let hasLineFeed = data.withUnsafeBytes { bytes in
      bytes.baseAddress.map { memchr($0, 0x0A, bytes.count) != nil } ?? false
    }
    if hasLineFeed { return "the data holds a line feed" }
    var previous = 0
    for reference in references {
      guard reference.offsetBytes > previous, reference.offsetBytes < data.count,
        0..<eventCount ~= reference.eventIndex
      else { return "a position reference is out of range" }
      previous = reference.offsetBytes
    }
    if lineByteCountLimit > Format.lineByteCountMax {
      return "the event is larger than \(Format.lineByteCountMax) bytes"
    }
    return nil
  }
}

/// Writes event lines. Not thread-safe.
final class EventEncoder {
  private let hasher = SHA256()
  private let data = ByteBuffer(capacity: 16 << 10)

  /// Appends the line of a draft to a buffer.
  func append(
    _ salted: PreparedEvent, position: Position, firstPosition: Position, timeMs: Int64,
    to buffer: ByteBuffer
  ) {
    let draft = salted.draft
    draft.data.withUnsafeBytes { bytes in
      let content = inserted(draft.references, into: bytes, firstPosition: firstPosition)
      let digest =
        salted.digest
        ?? salted.withSalt { PreparedEvent.digest(salt: $0, data: content, hasher) }
      buffer.reserve(content.count + 320)
      buffer.append("{\"seq\":")
      buffer.appendDecimal(position)
      buffer.append(",\"type\":\"")
      buffer.append(draft.type)
      buffer.append("\",\"v\":")
      buffer.appendDecimal(draft.version)
      buffer.append(",\"at\":\"")
      buffer.append(fixedTimestampMs: timeMs)
      buffer.append("\",\"digest\":\"")
      digest.withUnsafeBytes { buffer.append(hexOf: $0) }
      buffer.append("\",\"salt\":\"")
      salted.withSalt { SaltText.append($0, to: buffer) }
      buffer.append("\",\"data\":")
      buffer.append(content)
      buffer.append("}\n")
    }
  }

  private func inserted(
    _ references: [PositionReference], into bytes: UnsafeRawBufferPointer, firstPosition: Position
  ) -> UnsafeRawBufferPointer {
    if references.isEmpty { return bytes }
    data.count = 0
    var copied = 0
    for reference in references {
      data.append(UnsafeRawBufferPointer(rebasing: bytes[copied..<reference.offsetBytes]))
      data.appendDecimal(firstPosition + reference.eventIndex)
      copied = reference.offsetBytes
    }
    data.append(UnsafeRawBufferPointer(rebasing: bytes[copied...]))
    return data.bytes
  }
}
