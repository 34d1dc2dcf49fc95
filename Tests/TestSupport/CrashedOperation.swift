// An operation on files that crashes at every call: afterwards the old or the new state is there, whole.

/// One row of a table of operations that must be atomic and durable.
package struct CrashedOperation: Sendable {
  /// The operation's name.
  package let name: String
  /// Makes the old state.
  private let prepare: @Sendable () throws -> FaultyStorage
  /// Makes the new state from the old one.
  private let run: @Sendable (FaultyStorage) throws -> Void
  /// Describes the present state; throws if it is incomplete.
  private let state: @Sendable (FaultyStorage) throws -> String

  package init(
    _ name: String, prepare: @escaping @Sendable () throws -> FaultyStorage,
    run: @escaping @Sendable (FaultyStorage) throws -> Void,
    state: @escaping @Sendable (FaultyStorage) throws -> String
  ) {
    (self.name, self.prepare, self.run, self.state) = (name, prepare, run, state)
  }

  /// Crashes the operation at each of its calls, and makes each of them fail once.
  /// - Returns: the violations, and how many crash points were tried.
  package func problems(seeds: UInt64 = 4) throws -> (problems: [String], pointCount: Int) {
    let whole = try prepare()
    let old = try state(whole)
    whole.setFaults(.init())
    try run(whole)
    let callCount = whole.callCount
    let new = try state(whole)
    var problems: [String] = []
    if old == new { problems.append("it changes nothing") }
    var pointCount = 0
    for call in 1...callCount + 1 {
      for seed in 1...seeds {
        let storage = try prepare()
        storage.setFaults(.init(crashAtCall: call))
        let isDone = (try? run(storage)) != nil
        let after = storage.afterCrash(seed: seed &+ UInt64(call) << 8)
        problems += violations("crash at call \(call)", after, isDone: isDone, old: old, new: new)
        pointCount += 1
      }
      let storage = try prepare()
      storage.setFaults(.init(failCall: .init(ordinal: call, code: 5)))
      let isDone = (try? run(storage)) != nil
      storage.setFaults(.init())
      problems += violations("failure of call \(call)", storage, isDone: isDone, old: old, new: new)
    }
    return (problems, pointCount)
  }

  /// The violations after a fault; then the operation runs again, which must give the new state.
  private func violations(
    _ fault: String, _ storage: FaultyStorage, isDone: Bool, old: String, new: String
  ) -> [String] {
    do {
      let found = try state(storage)
      guard found == new || found == old && !isDone else {
        return ["\(name), \(fault): found \(found), done \(isDone)"]
      }
      if found == new { return [] }
      try run(storage)
      let final = try state(storage)
      return final == new ? [] : ["\(name), \(fault): run again it gives \(final)"]
    } catch { return ["\(name), \(fault): \(error)"] }
  }
}
