// A store of objects in memory, which fails, delays and misreports on demand.
import Base
package import Replication

/// Objects in memory. Several stores may share them, each with faults of its own: for example two writers, one of which
/// is cut off, or has a put in progress that arrives late.
package final class MemoryStore: ObjectStore {
  package enum Operation: String, Sendable {
    case put, create, get, read, contains, delete, list
  }

  /// A call as it came. The key of a list is its prefix.
  package struct Call: Sendable, Equatable {
    package let operation: Operation
    package let key: String
    /// How many calls through this store came before it.
    package let index: Int
  }

  /// The fate of a call.
  package enum Fate: Sendable {
    case happens
    /// Nothing is changed.
    case fails(ObjectStoreError.Kind, retryAfterMs: Int? = nil)
    /// It is carried out, but the caller gets an error: the response was lost.
    case happensButFails(ObjectStoreError.Kind)
    /// The caller waits until `release()`, then the call is carried out.
    case waits
    /// The caller gets `unavailable` at once. A put or create is still in progress: `release()` carries it out.
    case isLate
    /// A get or read returns only this many of the object's bytes, without an error.
    case cutsOff(afterBytes: Int)
  }

  package typealias Script = @Sendable (Call) -> Fate

  /// The content that stores share.
  private struct Content {
    var objects: [String: [UInt8]] = [:]
    var byteCountMax = Int.max
    var ignoresConditions = false
  }

  private struct State {
    var script: Script = { _ in .happens }
    var calls: [Call] = []
    var late: [@Sendable () -> PutOutcome?] = []
    var waitingCount = 0
    var releaseCount = 0
    var isCancelled = false
  }

  private static let changed = 0

  package let name: String
  private let content: Monitor<Content>
  private let state = Monitor(State(), conditionCount: 1)

  package init(name: String = "memory://test") {
    self.name = name
    content = Monitor(Content())
  }

  /// Another store with the same objects.
  package init(sharing other: MemoryStore, name: String? = nil) {
    self.name = name ?? other.name
    content = other.content
  }

  // MARK: Control by tests

  /// Decides every call from now on.
  package func setScript(_ script: @escaping Script) { state.withLock { $0.script = script } }

  /// Carries out all calls from now on.
  package func clearScript() { setScript { _ in .happens } }

  /// Puts beyond this fail with `full`; for all stores that share the objects.
  package var byteCountMax: Int {
    get { content.withLock { $0.byteCountMax } }
    set { content.withLock { $0.byteCountMax = newValue } }
  }

  /// A store that ignores `If-None-Match`: a create replaces what is there.
  package var ignoresConditions: Bool {
    get { content.withLock { $0.ignoresConditions } }
    set { content.withLock { $0.ignoresConditions = newValue } }
  }

  /// All objects, by key. Changes by a test are not recorded as calls.
  package var objects: [String: [UInt8]] {
    get { content.withLock { $0.objects } }
    set { content.withLock { $0.objects = newValue } }
  }

  package var keys: [String] { objects.keys.sorted(by: ObjectKey.precedes) }
  package var byteCount: Int { content.withLock { Self.byteCount($0) } }
  package var calls: [Call] { state.withLock { $0.calls } }
  package func forgetCalls() { state.withLock { $0.calls = [] } }

  /// The number of waiting callers, and of late puts, for which no caller waits.
  package var heldCount: Int { state.withLock { $0.waitingCount + $0.late.count } }

  /// Waits until this many calls are held; false if that takes longer than ten seconds.
  package func waitForHeld(_ count: Int) -> Bool {
    state.wait(on: Self.changed, limitMs: 10_000) { state in
      state.waitingCount + state.late.count >= count ? true : nil
    } ?? false
  }

  /// Carries out the held calls: first the late ones, in the order in which they came, then those with a waiting
  /// caller.
  /// - Returns: the outcomes of the late puts and creates; nil for one without room.
  @discardableResult
  package func release() -> [PutOutcome?] {
    let late = state.withLock { state in
      defer { state.late = [] }
      return state.late
    }
    let outcomes = late.map { $0() }
    state.withLock { $0.releaseCount += 1 }
    state.broadcast(Self.changed)
    return outcomes
  }

  // MARK: ObjectStore

  package func put(_ key: String, _ body: ObjectBody) throws(ObjectStoreError) {
    let bytes = try Self.bytes(of: body, operation: .put, key: key)
    let content = content
    _ = try call(.put, key) { () throws(ObjectStoreError) in
      try Self.store(bytes, under: key, ifFree: false, .put, content)
    }
  }

  package func create(
    _ key: String, _ body: ObjectBody
  ) throws(ObjectStoreError) -> PutOutcome {
    let bytes = try Self.bytes(of: body, operation: .create, key: key)
    let content = content
    return try call(.create, key) { () throws(ObjectStoreError) in
      try Self.store(bytes, under: key, ifFree: true, .create, content)
    }
  }

  package func get(_ key: String, byteCountMax: Int) throws(ObjectStoreError) -> [UInt8]? {
    try object(key, .get, byteCountMax: byteCountMax)
  }

  /// Passes on a few bytes at a time, to expose a caller that takes them for the whole object.
  package func read(
    _ key: String, byteCountMax: Int,
    _ body: (UnsafeRawBufferPointer) throws(ObjectStoreError) -> Void
  ) throws(ObjectStoreError) -> Bool {
    guard let bytes = try object(key, .read, byteCountMax: byteCountMax) else { return false }
    var place = 0
    while place < bytes.count {
      let end = min(place + 1_000, bytes.count)
      let result = bytes.withUnsafeBytes { whole in
        Result { () throws(ObjectStoreError) in
          try body(UnsafeRawBufferPointer(rebasing: whole[place..<end]))
        }
      }
      try result.get()
      place = end
    }
    return true
  }

  package func contains(_ key: String) throws(ObjectStoreError) -> Bool {
    try ObjectKey.check(key, operation: Operation.contains.rawValue)
    let content = content
    return try call(.contains, key) { content.withLock { $0.objects[key] != nil } }
  }

  package func delete(_ key: String) throws(ObjectStoreError) {
    try ObjectKey.check(key, operation: Operation.delete.rawValue)
    let content = content
    try call(.delete, key) { content.withLock { $0.objects[key] = nil } }
  }

  package func list(prefix: String, after: String?) throws(ObjectStoreError) -> [ObjectEntry] {
    let content = content
    return try call(.list, prefix) {
      let objects = content.withLock { $0.objects }
      let keys = objects.keys.filter { key in
        key.utf8.starts(with: prefix.utf8) && after.map { ObjectKey.precedes($0, key) } != false
      }
      return keys.sorted(by: ObjectKey.precedes).prefix(1_000).map { key in
        ObjectEntry(key: key, byteCount: objects[key]?.count ?? 0)
      }
    }
  }

  package func cancel() {
    state.withLock { $0.isCancelled = true }
    state.broadcast(Self.changed)
  }

  // MARK: Execution

  private static func error(
    _ kind: ObjectStoreError.Kind, _ operation: Operation, _ key: String, retryAfterMs: Int? = nil
  ) -> ObjectStoreError {
    ObjectStoreError(
      kind, operation: operation.rawValue, object: key, cause: "scripted (\(kind))",
      retryAfterMs: retryAfterMs)
  }

  private static func byteCount(_ content: Content) -> Int {
    content.objects.values.reduce(0) { $0 + $1.count }
  }

  /// The bytes as they are when the call is made, which a late put sends.
  private static func bytes(
    of body: ObjectBody, operation: Operation, key: String
  ) throws(ObjectStoreError) -> [UInt8] {
    try ObjectKey.check(key, operation: operation.rawValue)
    var bytes = [UInt8](repeating: 0, count: body.byteCount)
    let result = bytes.withUnsafeMutableBytes { buffer in
      Result { () throws(SystemError) in try body.copy(to: buffer, fromOffset: 0) }
    }
    guard case .success(body.byteCount) = result,
      bytes.withUnsafeBytes({ SHA256.hash($0) }) == body.sha256
    else { throw error(.unexpected, operation, key) }
    return bytes
  }

  private static func store(
    _ bytes: [UInt8], under key: String, ifFree: Bool, _ operation: Operation,
    _ content: Monitor<Content>
  ) throws(ObjectStoreError) -> PutOutcome {
    try content.withLock { content throws(ObjectStoreError) in
      if ifFree, !content.ignoresConditions, content.objects[key] != nil { return .exists }
      // Counting is slow with many objects.
      if content.byteCountMax < Int.max {
        let others = byteCount(content) - (content.objects[key]?.count ?? 0)
        if bytes.count > content.byteCountMax - others { throw error(.full, operation, key) }
      }
      content.objects[key] = bytes
      return .stored
    }
  }

  private func object(
    _ key: String, _ operation: Operation, byteCountMax: Int
  ) throws(ObjectStoreError) -> [UInt8]? {
    try ObjectKey.check(key, operation: operation.rawValue)
    let content = content
    var shown = Int.max
    let bytes = try call(operation, key, cutOff: { shown = $0 }) {
      content.withLock { $0.objects[key] }
    }
    guard let bytes else { return nil }
    if bytes.count > byteCountMax { throw Self.error(.tooLarge, operation, key) }
    return Array(bytes.prefix(shown))
  }

  private func call<Value>(
    _ operation: Operation, _ key: String, cutOff: (Int) -> Void = { _ in },
    _ body: @escaping @Sendable () throws(ObjectStoreError) -> Value
  ) throws(ObjectStoreError) -> Value {
    let (script, call) = try state.withLock { state throws(ObjectStoreError) in
      if state.isCancelled { throw Self.error(.cancelled, operation, key) }
      let call = Call(operation: operation, key: key, index: state.calls.count)
      state.calls.append(call)
      return (state.script, call)
    }
    switch script(call) {
    case .happens: return try body()
    case .fails(let kind, let retryAfterMs):
      throw Self.error(kind, operation, key, retryAfterMs: retryAfterMs)
    case .happensButFails(let kind):
      _ = try body()
      throw Self.error(kind, operation, key)
    case .waits:
      try waitForRelease(operation, key)
      return try body()
    case .isLate:
      if operation == .put || operation == .create {
        state.withLock { $0.late.append { (try? body()) as? PutOutcome } }
        state.broadcast(Self.changed)
      }
      throw Self.error(.unavailable, operation, key)
    case .cutsOff(let byteCount):
      cutOff(byteCount)
      return try body()
    }
  }

  private func waitForRelease(
    _ operation: Operation, _ key: String
  ) throws(ObjectStoreError) {
    let before = state.withLock { state in
      state.waitingCount += 1
      return state.releaseCount
    }
    state.broadcast(Self.changed)
    try state.wait(on: Self.changed) { state throws(ObjectStoreError) -> Void? in
      guard state.isCancelled || state.releaseCount > before else { return nil }
      state.waitingCount -= 1
      if state.isCancelled { throw Self.error(.cancelled, operation, key) }
      return ()
    }
  }
}
