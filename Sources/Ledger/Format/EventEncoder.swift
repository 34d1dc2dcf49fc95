// Event drafts, their salts, and their encoding as event lines with digests and inserted positions.
package import Base
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

/// What an event that another ledger holds keeps when it is copied: the time, the salt, and whether data was redacted.
package struct StoredForm: Sendable {
  /// A line that lost its data: the draft has what was kept, the salt is that of the kept part.
  package struct Redaction: Sendable {
    /// The position here of the erasure, after the event.
    package let erasure: Position
    /// The digest of the lost data.
    package let digest: SHA256Digest
  }

  package let recordedAtMs: Int64
  package let redaction: Redaction?
  /// 16 bytes.
  let salt: [UInt8]

  /// - Parameter erasure: the position here of the erasure, for a redacted line.
  package init(_ line: EventLine, redactedBy erasure: Position?) {
    recordedAtMs = line.recordedAtMs
    salt = SaltText.withDecoded(line.saltText) { Array($0) } ?? []
    redaction = erasure.flatMap { erasure in
      SHA256Digest(hex: line.digestHex).map { Redaction(erasure: erasure, digest: $0) }
    }
  }

  /// For an event without secrets that must come out the same whenever it is made: the salt follows from the data.
  package init(recordedAtMs: Int64, saltFrom data: [UInt8]) {
    self.recordedAtMs = recordedAtMs
    redaction = nil
    let digest = data.withUnsafeBytes { SHA256.hash($0) }
    salt = digest.withUnsafeBytes { Array($0.prefix(SaltText.byteCount)) }
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
  /// Of a copied event. Its time must not be before that of the last event.
  package var stored: StoredForm?

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
  var lineByteCountLimit: Int {
    data.count + references.count * 18 + (stored == nil ? 320 : 400)
  }

  /// Whether its line would be larger than an event may be.
  package var isTooLarge: Bool { lineByteCountLimit > Format.lineByteCountMax }

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
    if isTooLarge {
      return "the event is larger than \(Format.lineByteCountMax) bytes"
    }
    return nil
  }
}

extension EventDraft {
  /// The line of an event that is not appended, for folding a plan: its digest and salt are no event's.
  package func plannedLine(position: Position, recordedAtMs: Int64) -> [UInt8] {
    let head =
      "{\"seq\":\(position),\"type\":\"\(type)\",\"v\":\(version),\"at\":\""
      + Timestamp.fixedText(ms: recordedAtMs) + "\",\"digest\":\""
      + String(repeating: "0", count: 64) + "\",\"salt\":\""
      + String(repeating: "A", count: SaltText.characterCount - 2) + "==\",\"data\":"
    return Array(head.utf8) + data + [0x7D]
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
      buffer.reserve(content.count + 400)
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
      if let redaction = draft.stored?.redaction {
        buffer.append("\",\"salt\":null,\"data\":null,\"redacted\":{\"by\":")
        buffer.appendDecimal(redaction.erasure)
        buffer.append(",\"salt\":\"")
      } else {
        buffer.append("\",\"salt\":\"")
      }
      salted.withSalt { SaltText.append($0, to: buffer) }
      buffer.append(draft.stored?.redaction == nil ? "\",\"data\":" : "\",\"kept\":")
      buffer.append(content)
      buffer.append(draft.stored?.redaction == nil ? "}\n" : "}}\n")
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

// MARK: - Prepared events

/// A draft with its salt, and with its digest if that is already known. The submitter computes them before an event has
/// a position, so that the single thread that writes frames need not do the hashing.
struct PreparedEvent: Sendable {
  let draft: EventDraft
  private let saltWords: (UInt64, UInt64)
  /// The digest of salt and data; nil if positions must still be inserted into the data.
  let digest: SHA256Digest?

  /// - Parameter salt: 16 random bytes.
  init(_ draft: EventDraft, salt: UnsafeRawBufferPointer, _ hasher: SHA256) {
    precondition(salt.count == SaltText.byteCount, "a salt has 16 bytes")
    self.draft = draft
    saltWords = (
      salt.loadUnaligned(as: UInt64.self),
      salt.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    )
    if let redaction = draft.stored?.redaction {
      digest = redaction.digest
    } else if draft.references.isEmpty {
      digest = draft.data.withUnsafeBytes { Self.digest(salt: salt, data: $0, hasher) }
    } else {
      digest = nil
    }
  }

  /// Passes the 16 bytes of the salt to a closure.
  func withSalt<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withUnsafeBytes(of: saltWords, body)
  }

  /// An event's digest: that of its salt followed by its data.
  static func digest(
    salt: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer, _ hasher: SHA256
  ) -> SHA256Digest {
    hasher.update(salt)
    hasher.update(data)
    return hasher.finish()
  }
}

/// Adds salts to drafts and computes digests where possible. Not thread-safe.
final class Salter {
  private let random: @Sendable (UnsafeMutableRawBufferPointer) -> Bool
  private let hasher = SHA256()
  // Random bytes are fetched in large portions: a call for each salt costs more than hashing a small event.
  private let salts = ByteBuffer(capacity: 256 * SaltText.byteCount)
  private var usedByteCount = 0

  /// - Parameter random: fills a buffer with random bytes; returns false if it fails.
  init(random: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Bool) {
    self.random = random
  }

  /// Adds a different salt to each draft; copied events keep theirs.
  func salt(_ drafts: [EventDraft]) throws(LedgerError) -> [PreparedEvent] {
    var salted: [PreparedEvent] = []
    salted.reserveCapacity(drafts.count)
    for draft in drafts {
      if let stored = draft.stored {
        stored.salt.withUnsafeBytes { salted.append(PreparedEvent(draft, salt: $0, hasher)) }
      } else {
        salted.append(PreparedEvent(draft, salt: try nextSalt(), hasher))
      }
    }
    return salted
  }

  private func nextSalt() throws(LedgerError) -> UnsafeRawBufferPointer {
    if usedByteCount == salts.count {
      guard random(salts.storage) else {
        throw LedgerError(
          .inputOutput, operation: "draw random bytes", object: "salt", cause: "it failed")
      }
      salts.count = salts.capacity
      usedByteCount = 0
    }
    defer { usedByteCount += SaltText.byteCount }
    return UnsafeRawBufferPointer(
      rebasing: salts.bytes[usedByteCount..<usedByteCount + SaltText.byteCount])
  }
}

/// A pool of salters for several threads.
final class Salters: Sendable {
  private struct State: @unchecked Sendable {
    // Each is used by the thread that removed it.
    var idle: [Salter] = []
  }

  private let random: @Sendable (UnsafeMutableRawBufferPointer) -> Bool
  private let monitor = Monitor(State())

  init(random: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Bool) {
    self.random = random
  }

  /// Adds a different salt to each draft.
  func salt(_ drafts: [EventDraft]) throws(LedgerError) -> [PreparedEvent] {
    let salter = monitor.withLock { $0.idle.popLast() } ?? Salter(random: random)
    defer { monitor.withLock { $0.idle.append(salter) } }
    return try salter.salt(drafts)
  }
}

// MARK: - Salts

/// The written form of an event's salt: the canonical base64 of 16 random bytes, which always has 24 characters.
enum SaltText {
  static let byteCount = 16
  static let characterCount = 24
  /// The buffer size that base64 needs for decoding.
  private static let roomByteCount = 18

  static func append(_ salt: UnsafeRawBufferPointer, to buffer: ByteBuffer) {
    buffer.reserve(characterCount)
    Base64.encode(
      salt,
      into: UnsafeMutableBufferPointer(
        start: (buffer.base + buffer.count).assumingMemoryBound(to: UInt8.self),
        count: characterCount))
    buffer.count += characterCount
  }

  /// Decodes a text and passes the 16 bytes to a closure. If the text is not canonical, returns nil without calling
  /// it.
  static func withDecoded<Result>(
    _ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    guard text.count == characterCount else { return nil }
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: roomByteCount) { room in
      guard (try? Base64.decode(text, into: room)) == byteCount else { return nil }
      return body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<byteCount]))
    }
  }

  static func isCanonical(_ text: UnsafeRawBufferPointer) -> Bool {
    withDecoded(text) { _ in true } ?? false
  }
}
