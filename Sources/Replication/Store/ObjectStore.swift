// The object store that replication needs, with keys as S3 has them; its errors, keys and backoff.
package import Base
import Glibc

/// Where the bytes of an object come from.
package enum ObjectBody: Sendable {
  case bytes([UInt8])
  /// A part of an open file. The descriptor must stay open until the call returns; reads are positional.
  case file(descriptor: Int32, offsetBytes: Int, byteCount: Int, sha256: SHA256Digest)
}

/// The result of a conditional put.
package enum PutOutcome: Sendable, Equatable {
  case stored
  /// The key is taken. Nothing was changed.
  case exists
}

/// An object in a list.
package struct ObjectEntry: Sendable, Equatable {
  /// Without the store's prefix.
  package let key: String
  package let byteCount: Int

  package init(key: String, byteCount: Int) {
    (self.key, self.byteCount) = (key, byteCount)
  }
}

/// A store of objects. All calls block; any number of threads may make them at once. A call makes one request; the
/// caller retries transient failures. Keys are without the store's prefix: ASCII letters, digits and `/ - .`.
package protocol ObjectStore: Sendable {
  /// For messages: the target without credentials, such as `s3://bucket/prefix`.
  var name: String { get }
  /// Stores an object, replacing any under that key.
  func put(_ key: String, _ body: ObjectBody) throws(ObjectStoreError)
  /// Stores an object if the key is free: `If-None-Match: *`.
  func create(_ key: String, _ body: ObjectBody) throws(ObjectStoreError) -> PutOutcome
  /// The whole object; nil if there is none. Throws `tooLarge` beyond the limit.
  func get(_ key: String, byteCountMax: Int) throws(ObjectStoreError) -> [UInt8]?
  /// Passes on the object's bytes as they arrive; false if there is none. Some bytes may have been passed on before an
  /// error.
  func read(
    _ key: String, byteCountMax: Int,
    _ body: (UnsafeRawBufferPointer) throws(ObjectStoreError) -> Void
  ) throws(ObjectStoreError) -> Bool
  /// Whether there is an object under the key.
  func contains(_ key: String) throws(ObjectStoreError) -> Bool
  /// Deletes an object; does nothing if there is none.
  func delete(_ key: String) throws(ObjectStoreError)
  /// The objects whose keys begin with `prefix` and follow `after`, in order, at most 1,000; fewer only at the end.
  func list(prefix: String, after: String?) throws(ObjectStoreError) -> [ObjectEntry]
  /// Ends calls under way, and all later ones, with `cancelled`.
  func cancel()
}

/// Why a call failed. Contains no credentials, no signatures and none of an object's content.
package struct ObjectStoreError: Error, Sendable, Equatable, CustomStringConvertible {
  package enum Kind: Sendable, Equatable {
    /// No connection, a timeout, a truncated response, or the store is temporarily unable to answer (409, 429, 5xx).
    case unavailable
    /// The store rejects the credentials or their permissions (401, 403).
    case denied
    /// There is no such bucket or directory, or it is in another region.
    case noBucket
    /// The store has no room (507, `QuotaExceeded`, a full disk).
    case full
    /// An object is larger than the caller allows.
    case tooLarge
    /// A response that S3 does not give, or a request that the store calls malformed.
    case unexpected
    case cancelled
  }

  package let kind: Kind
  /// As a verb phrase: "put", "list".
  package let operation: String
  /// The key, or the store's name.
  package let object: String
  /// Starts with a lower-case letter; the HTTP status and the store's error code are part of it.
  package let cause: String
  /// How long the store asks to wait, in milliseconds.
  package let retryAfterMs: Int?

  package init(
    _ kind: Kind, operation: String, object: String, cause: String, retryAfterMs: Int? = nil
  ) {
    self.kind = kind
    self.operation = operation
    self.object = object
    self.cause = cause
    self.retryAfterMs = retryAfterMs
  }

  package var description: String { "\(operation): \(object): \(cause)" }

  /// Whether the same call may succeed later without an operator's action.
  package var isTransient: Bool { kind == .unavailable }
}

// MARK: - Bodies and keys

extension ObjectBody {
  package var byteCount: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .file(_, _, let byteCount, _): byteCount
    }
  }

  /// The digest of the bytes; for a part of a file, the caller provides it.
  package var sha256: SHA256Digest {
    switch self {
    case .bytes(let bytes): bytes.withUnsafeBytes { SHA256.hash($0) }
    case .file(_, _, _, let sha256): sha256
    }
  }

  /// Copies bytes from an offset in the body.
  /// - Returns: how many: fewer than the buffer holds if the body ends, or if the file is shorter than stated.
  package func copy(
    to buffer: UnsafeMutableRawBufferPointer, fromOffset offset: Int
  ) throws(SystemError) -> Int {
    let count = min(buffer.count, byteCount - offset)
    guard count > 0 else { return 0 }
    switch self {
    case .bytes(let bytes):
      buffer.copyBytes(from: bytes[offset..<offset + count])
      return count
    case .file(let descriptor, let start, _, _):
      var copied = 0
      while copied < count {
        let piece = pread(
          descriptor, buffer.baseAddress.map { $0 + copied }, count - copied,
          start + offset + copied)
        if piece == 0 { break }
        if piece > 0 {
          copied += piece
        } else if errno != EINTR {
          throw SystemError(code: errno)
        }
      }
      return copied
    }
  }
}

/// The keys that stores accept.
package enum ObjectKey {
  /// Leaves room for a prefix: S3 allows 1,024 bytes for both.
  package static let byteCountMax = 800

  /// Whether the text consists of parts of ASCII letters, digits, `-` and `.` between slashes, none of them empty, `.`
  /// or `..`.
  package static func isValid(_ key: String) -> Bool {
    guard (1...byteCountMax).contains(key.utf8.count) else { return false }
    return key.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { part in
      !part.isEmpty && part != "." && part != ".." && part.utf8.allSatisfy(isPlain)
    }
  }

  /// Throws unless the key is valid. The message omits the key, which may come from a store's list.
  package static func check(_ key: String, operation: String) throws(ObjectStoreError) {
    if isValid(key) { return }
    throw ObjectStoreError(
      .unexpected, operation: operation, object: "an object",
      cause: "its key does not have the form of a copy's")
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// The order of lists: bytewise.
  package static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}

// MARK: - Backoff

/// Waits between retries that grow with each failure, random below a bound, so that clients do not all return at once.
package struct Backoff: Sendable {
  package static let firstMs = 200
  package static let longestMs = 30_000
  /// The longest wait that a store can impose.
  package static let retryAfterMsMax = 300_000

  private var source: any RandomNumberGenerator & Sendable
  private var boundMs = firstMs

  package init(random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()) {
    source = random
  }

  /// The wait after one more failure, in milliseconds.
  /// - Parameter retryAfterMs: what the store asks for: the wait is at least that, but at most five minutes.
  package mutating func next(retryAfterMs: Int? = nil) -> Int {
    let wait = Int.random(in: 1...boundMs, using: &source)
    boundMs = min(2 * boundMs, Self.longestMs)
    return max(wait, min(max(retryAfterMs ?? 0, 0), Self.retryAfterMsMax))
  }

  /// Resets the bound after a success.
  package mutating func reset() { boundMs = Self.firstMs }
}
