// Objects under keys, as S3 has them: what replication needs of a store.
package import Base

/// Where the bytes of an object come from.
package enum ObjectBody: Sendable {
  case bytes([UInt8])
  /// A part of an open file. The descriptor must stay open until the call returns; reads are positional.
  case file(descriptor: Int32, offsetBytes: Int, byteCount: Int, sha256: SHA256Digest)
}

/// What came of a conditional put.
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
/// caller repeats what failed for a time. Keys are without the store's prefix: ASCII letters, digits and `/ - .`.
package protocol ObjectStore: Sendable {
  /// For messages: the target without credentials, such as `s3://bucket/prefix`.
  var name: String { get }
  /// Stores an object, replacing any under that key.
  func put(_ key: String, _ body: ObjectBody) throws(ObjectStoreError)
  /// Stores an object if the key is free: `If-None-Match: *`.
  func create(_ key: String, _ body: ObjectBody) throws(ObjectStoreError) -> PutOutcome
  /// The whole object; nil if there is none. Throws `tooLarge` beyond the limit.
  func get(_ key: String, byteCountMax: Int) throws(ObjectStoreError) -> [UInt8]?
  /// Passes the object's bytes on as they arrive; false if there is none. Bytes may have been passed on before an error.
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

/// Why a call failed. Contains no credentials, no signatures and nothing of an object's content.
package struct ObjectStoreError: Error, Sendable, Equatable, CustomStringConvertible {
  package enum Kind: Sendable, Equatable {
    /// No connection, a time-out, a cut-off answer, or the store says that it can't at the moment (409, 429, 5xx).
    case unavailable
    /// The store refuses the credentials or what they may do (401, 403).
    case denied
    /// There is no such bucket or directory, or it is in another region.
    case noBucket
    /// The store has no room (507, `QuotaExceeded`, a full disk).
    case full
    /// An object is larger than the caller allows.
    case tooLarge
    /// An answer that S3 does not give, or a request that the store calls wrong.
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

  /// Whether the same call may succeed later without anybody's help.
  package var isTransient: Bool { kind == .unavailable }
}
