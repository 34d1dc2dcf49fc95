// A draft with its salt, and with its digest if that is already known.
import Base

/// What the submitter computes before an event has a position, so that the single thread that writes frames need not
/// do the hashing.
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
    digest =
      draft.references.isEmpty
      ? draft.data.withUnsafeBytes { Self.digest(salt: salt, data: $0, hasher) } : nil
  }

  /// Gives the 16 bytes of the salt to a closure.
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

  /// Adds a different salt to each draft.
  func salt(_ drafts: [EventDraft]) throws(LedgerError) -> [PreparedEvent] {
    var salted: [PreparedEvent] = []
    salted.reserveCapacity(drafts.count)
    for draft in drafts { salted.append(PreparedEvent(draft, salt: try nextSalt(), hasher)) }
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
    // Each is used by the one thread that took it out.
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
