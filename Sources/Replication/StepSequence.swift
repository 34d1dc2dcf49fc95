// Reads a copy's steps: finds the newest, and the state that follows from them.
import Base
package import Ledger
package import ObjectStore

/// Why a copy can't be read.
package enum CopyError: Error, Sendable, CustomStringConvertible {
  case store(ObjectStoreError)
  /// What the copy holds can't be right: an object is missing, damaged, or not what a step says.
  case fault(CopyFault)
  case ledger(LedgerError)

  package var description: String {
    switch self {
    case .store(let error): error.description
    case .fault(let fault): fault.description
    case .ledger(let error): error.description
    }
  }
}

/// The sequence of steps in a store. Each call makes several requests and repeats none.
package struct StepSequence: Sendable {
  package let store: any ObjectStore

  package init(_ store: any ObjectStore) { self.store = store }

  /// A step; nil if there is none of this number.
  package func step(_ number: Int) throws(CopyError) -> Step.Stored? {
    let key = CopyLayout.stepKey(number)
    guard
      let bytes = try requested({ () throws(ObjectStoreError) in
        try store.get(key, byteCountMax: CopyLayout.stepByteCountMax)
      })
    else { return nil }
    guard let stored = Step.parse(bytes) else {
      throw fault(
        key,
        Step.isNewer(bytes)
          ? "a later version of this program wrote it" : "it does not have the form of a step")
    }
    guard stored.step.number == number else {
      throw fault(key, "it holds step \(stored.step.number)")
    }
    return stored
  }

  /// The number of the newest step; nil if there is none.
  /// - Parameter known: a step that exists.
  package func newest(after known: Int? = nil) throws(CopyError) -> Int? {
    func exists(_ number: Int) throws(CopyError) -> Bool {
      try requested { () throws(ObjectStoreError) in
        try store.contains(CopyLayout.stepKey(number))
      }
    }
    var low: Int
    if let known {
      low = known
    } else {
      guard try exists(0) else { return nil }
      low = 0
    }
    var distance = 1
    while try exists(low + distance) {
      low += distance
      guard distance < 1 << 40 else {
        throw fault(CopyLayout.stepKey(low), "there are more steps than can be")
      }
      distance *= 2
    }
    var high = low + distance
    while high - low > 1 {
      let middle = low + (high - low) / 2
      if try exists(middle) { low = middle } else { high = middle }
    }
    return low
  }

  /// The state of the copy at its newest step; nil if there is no step.
  /// - Parameters:
  ///   - known: a step that exists.
  ///   - last: the step whose state is wanted; by default, the newest.
  package func state(knowing known: Int? = nil, at last: Int? = nil) throws(CopyError) -> CopyState?
  {
    var found = last
    if found == nil { found = try newest(after: known) }
    guard let number = found else { return nil }
    // Back to the newest complete step, then forward again.
    var later: [Step.Stored] = []
    var objectCount = 0
    var current = number
    while true {
      guard var stored = try step(current) else {
        throw fault(CopyLayout.stepKey(current), "it is missing")
      }
      if stored.step.isComplete {
        var state = try checked { () throws(CopyFault) in
          try CopyState(complete: stored.step, sha256: stored.sha256)
        }
        for next in later.reversed() { _ = try apply(next, to: &state) }
        return state
      }
      guard later.count <= 2 * CopyLayout.stepsBetweenCompleteMax, current > 0 else {
        throw fault(CopyLayout.stepKey(current), "no complete step comes before it")
      }
      objectCount += stored.step.objectCount
      guard objectCount <= CopyLayout.objectCountMax else {
        throw fault(
          CopyLayout.stepKey(current), "steps after the newest complete one name too many objects")
      }
      stored.frames = nil
      later.append(stored)
      current -= 1
    }
  }

  /// Brings a state up to the newest step; false if it was.
  package func catchUp(_ state: inout CopyState) throws(CopyError) -> Bool {
    let first = state.newest.number
    while let stored = try step(state.newest.number + 1) { _ = try apply(stored, to: &state) }
    return state.newest.number > first
  }

  /// Adds a step to a state.
  package func apply(
    _ stored: Step.Stored, to state: inout CopyState
  ) throws(CopyError) -> CopyState.Replaced {
    do { return try state.apply(stored.step, sha256: stored.sha256) } catch { throw .fault(error) }
  }

  // MARK: Errors

  private func fault(_ object: String, _ cause: String) -> CopyError {
    .fault(CopyFault(object: object, cause: cause))
  }

  private func requested<Result>(
    _ body: () throws(ObjectStoreError) -> Result
  ) throws(CopyError) -> Result {
    do { return try body() } catch { throw .store(error) }
  }

  private func checked<Result>(
    _ body: () throws(CopyFault) -> Result
  ) throws(CopyError) -> Result {
    do { return try body() } catch { throw .fault(error) }
  }
}
