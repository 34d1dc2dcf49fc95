// A store that retries calls while it is unavailable, for commands that read a copy.
import Base
import Glibc

/// Retries calls after transient failures, until none has succeeded for a while. Reads that pass bytes on are not
/// retried: the caller must begin again (`wait(after:)`).
package final class RetryingStore: ObjectStore {
  private struct State {
    var progressAtMs: Int64
    var isCancelled = false
  }

  private static let changed = 0

  private let store: any ObjectStore
  private let limitMs: Int64
  private let state: Monitor<State>

  /// - Parameter limitMs: how long nothing may succeed before an error is passed on.
  package init(_ store: any ObjectStore, limitMs: Int64 = 300_000) {
    self.store = store
    self.limitMs = limitMs
    state = Monitor(State(progressAtMs: MonotonicClock.nowMs()), conditionCount: 1)
  }

  package var name: String { store.name }
  /// The store as a marked one; nil if it does not bear marks.
  var marked: (any MarkedStore)? { store as? any MarkedStore }

  /// Records that something was received.
  func recordProgress() { state.withLock { $0.progressAtMs = MonotonicClock.nowMs() } }

  /// Waits before a call is retried. Throws the error if it is not transient, if nothing has succeeded for too long, or
  /// after `cancel`.
  func wait(
    after error: ObjectStoreError, _ backoff: inout Backoff
  ) throws(ObjectStoreError) {
    guard error.isTransient else { throw error }
    let waitMs = Int64(backoff.next(retryAfterMs: error.retryAfterMs))
    let nowMs = MonotonicClock.nowMs()
    let isCancelled =
      try state.wait(
        on: Self.changed, limitMs: waitMs
      ) { state throws(ObjectStoreError) -> Bool? in
        if nowMs - state.progressAtMs >= limitMs { throw error }
        return state.isCancelled ? true : nil
      } ?? false
    if isCancelled {
      throw ObjectStoreError(
        .cancelled, operation: error.operation, object: error.object, cause: "it was cancelled")
    }
  }

  private func repeated<Result>(
    _ body: () throws(ObjectStoreError) -> Result
  ) throws(ObjectStoreError) -> Result {
    var backoff = Backoff()
    while true {
      do throws(ObjectStoreError) {
        let result = try body()
        recordProgress()
        return result
      } catch { try wait(after: error, &backoff) }
    }
  }

  // MARK: ObjectStore

  package func put(_ key: String, _ body: ObjectBody) throws(ObjectStoreError) {
    try repeated { () throws(ObjectStoreError) in try store.put(key, body) }
  }

  /// `exists` may mean that an earlier attempt of this call succeeded.
  package func create(
    _ key: String, _ body: ObjectBody
  ) throws(ObjectStoreError) -> PutOutcome {
    try repeated { () throws(ObjectStoreError) in try store.create(key, body) }
  }

  package func get(_ key: String, byteCountMax: Int) throws(ObjectStoreError) -> [UInt8]? {
    try repeated { () throws(ObjectStoreError) in
      try store.get(key, byteCountMax: byteCountMax)
    }
  }

  package func read(
    _ key: String, byteCountMax: Int,
    _ body: (UnsafeRawBufferPointer) throws(ObjectStoreError) -> Void
  ) throws(ObjectStoreError) -> Bool {
    let isThere = try store.read(key, byteCountMax: byteCountMax) {
      bytes throws(ObjectStoreError) in
      recordProgress()
      try body(bytes)
    }
    recordProgress()
    return isThere
  }

  package func contains(_ key: String) throws(ObjectStoreError) -> Bool {
    try repeated { () throws(ObjectStoreError) in try store.contains(key) }
  }

  package func delete(_ key: String) throws(ObjectStoreError) {
    try repeated { () throws(ObjectStoreError) in try store.delete(key) }
  }

  package func list(prefix: String, after: String?) throws(ObjectStoreError) -> [ObjectEntry] {
    try repeated { () throws(ObjectStoreError) in try store.list(prefix: prefix, after: after) }
  }

  package func cancel() {
    state.withLock { $0.isCancelled = true }
    state.broadcast(Self.changed)
    store.cancel()
  }
}
