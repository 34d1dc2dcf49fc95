// A draft with its salt, and with its digest as soon as that can be known.
import Base

/// What the submitter computes of an event before it has a position, so that the one thread that
/// writes frames need not hash what others can.
struct PreparedEvent: Sendable {
  let draft: EventDraft
  private let saltWords: (UInt64, UInt64)
  /// The digest of salt and data; nil where positions are still to be inserted into the data.
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

  /// Lends the 16 bytes of the salt.
  func withSalt<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    withUnsafeBytes(of: saltWords, body)
  }

  /// The digest of an event: of its salt followed by its data.
  static func digest(
    salt: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer, _ hasher: SHA256
  ) -> SHA256Digest {
    hasher.update(salt)
    hasher.update(data)
    return hasher.finish()
  }
}

/// Salts drafts, and hashes what can be hashed; one thread at a time.
final class Salter {
  private let random: @Sendable (UnsafeMutableRawBufferPointer) -> Bool
  private let hasher = SHA256()
  // Drawn by the thousand: asking for each costs more than hashing a small event.
  private let salts = ByteBuffer(capacity: 256 * SaltText.byteCount)
  private var usedByteCount = 0

  /// - Parameter random: fills a buffer with random bytes; false if it can't.
  init(random: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Bool) {
    self.random = random
  }

  /// Gives each draft a salt of its own.
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

/// Salters that threads borrow from each other.
final class Salters: Sendable {
  private struct State: @unchecked Sendable {
    var idle: [Salter] = []
  }

  private let random: @Sendable (UnsafeMutableRawBufferPointer) -> Bool
  private let monitor = Monitor(State())

  init(random: @escaping @Sendable (UnsafeMutableRawBufferPointer) -> Bool) {
    self.random = random
  }

  /// Gives each draft a salt of its own.
  func salt(_ drafts: [EventDraft]) throws(LedgerError) -> [PreparedEvent] {
    let salter = monitor.withLock { $0.idle.popLast() } ?? Salter(random: random)
    defer { monitor.withLock { $0.idle.append(salter) } }
    return try salter.salt(drafts)
  }
}
