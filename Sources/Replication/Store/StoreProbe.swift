// Checks that a store does what a copy needs, with an object that is created and deleted.
import Base

package enum StoreProbe {
  /// A store that responds, but not as a copy needs it.
  package struct StoreCheckFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// A sentence without its full stop.
    package let cause: String
    package var description: String { cause }
  }

  package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The store could not be asked, or rejects the request.
    case unanswered(ObjectStoreError)
    case unfit(StoreCheckFailure)

    package var description: String {
      switch self {
      case .unanswered(let error): "try the store: \(error)"
      case .unfit(let unfit): "the store cannot be used for replication: \(unfit)"
      }
    }
  }

  private static let byteCount = 64

  /// Tries every operation that replication needs from a store, on a new key below `probe/`.
  package static func check(_ store: any ObjectStore) throws(Failure) {
    let key = "probe/\(UUID16.random())"
    do throws(Failure) { try check(store, key) } catch {
      // At worst one small object remains; the first error is the one to show.
      try? store.delete(key)
      throw error
    }
  }

  private static func check(_ store: any ObjectStore, _ key: String) throws(Failure) {
    let (first, second) = (randomBytes(), randomBytes())
    if try ask({ () throws(ObjectStoreError) in try store.contains(key) }) {
      throw .unfit(
        StoreCheckFailure(cause: "it says that it has an object under a key that was never used"))
    }
    let made = try ask { () throws(ObjectStoreError) in try store.create(key, .bytes(first)) }
    let read = try ask { () throws(ObjectStoreError) in try store.get(key, byteCountMax: byteCount)
    }
    // A retried request finds its own object.
    guard made == .stored || read == first else {
      throw .unfit(StoreCheckFailure(cause: "a create of a key that was never used found it taken"))
    }
    guard read == first else {
      throw .unfit(
        StoreCheckFailure(cause: "an object that was just stored is missing or has other bytes"))
    }
    guard try ask({ () throws(ObjectStoreError) in try store.contains(key) }) else {
      throw .unfit(StoreCheckFailure(cause: "it says that it lacks an object that was just stored"))
    }
    let again = try ask { () throws(ObjectStoreError) in try store.create(key, .bytes(second)) }
    guard again == .exists else {
      throw .unfit(
        StoreCheckFailure(cause: "it does not honour If-None-Match: a second create succeeded"))
    }
    try expect(first, store, key, "a refused create still changed the object")
    try checkList(store, key)
    try ask { () throws(ObjectStoreError) in try store.put(key, .bytes(second)) }
    try expect(second, store, key, "an object that was replaced still has its old bytes")
    try ask { () throws(ObjectStoreError) in try store.delete(key) }
    try expect(nil, store, key, "an object that was deleted is still there")
  }

  private static func checkList(_ store: any ObjectStore, _ key: String) throws(Failure) {
    let entries = try ask { () throws(ObjectStoreError) in
      try store.list(prefix: key, after: nil)
    }
    guard entries == [ObjectEntry(key: key, byteCount: byteCount)] else {
      throw .unfit(
        StoreCheckFailure(
          cause: "its list lacks an object that was just stored, or says another size"))
    }
    let later = try ask { () throws(ObjectStoreError) in try store.list(prefix: key, after: key) }
    guard later.isEmpty else {
      throw .unfit(
        StoreCheckFailure(cause: "its list does not begin after the key that it was asked for"))
    }
  }

  private static func expect(
    _ bytes: [UInt8]?, _ store: any ObjectStore, _ key: String, _ cause: String
  ) throws(Failure) {
    let read = try ask { () throws(ObjectStoreError) in try store.get(key, byteCountMax: byteCount)
    }
    if read != bytes { throw .unfit(StoreCheckFailure(cause: cause)) }
  }

  private static func ask<Value>(
    _ body: () throws(ObjectStoreError) -> Value
  ) throws(Failure) -> Value {
    do throws(ObjectStoreError) { return try body() } catch {
      if error.kind == .tooLarge {
        throw .unfit(
          StoreCheckFailure(cause: "an object that was just stored is larger than it was"))
      }
      throw .unanswered(error)
    }
  }

  private static func randomBytes() -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    return (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
  }
}
