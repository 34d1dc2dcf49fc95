// Reads a copy's steps: finds the newest one and the resulting state.
import Base
import Ledger

/// The sequence of steps in a store. A call makes several requests and retries none.
package struct StepSequence: Sendable {
  package let store: any ObjectStore

  package init(_ store: any ObjectStore) { self.store = store }

  /// A step; nil if none has this number.
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

  // MARK: Newest step

  /// The number of the newest step; nil if there is none. Lost steps before it do not hide it.
  /// - Parameter known: a step that existed.
  package func newest(after known: Int? = nil) throws(CopyError) -> Int? {
    if let known, let last = try lastListed(after: known - 1) { return last }
    // Single requests come close to the end sooner than lists do; a list finds what they miss.
    func exists(_ number: Int) throws(CopyError) -> Bool {
      try requested { () throws(ObjectStoreError) in
        try store.contains(CopyLayout.stepKey(number))
      }
    }
    var (low, distance) = (-1, 1)
    while low + distance < CopyLayout.stepNumberMax, try exists(low + distance) {
      low += distance
      distance *= 2
    }
    var high = low + distance
    while high - low > 1 {
      let middle = low + (high - low) / 2
      if try exists(middle) { low = middle } else { high = middle }
    }
    return try lastListed(after: low) ?? (low < 0 ? nil : low)
  }

  /// The last step after one that need not exist; nil if there is none. Whether anything follows a number does not
  /// depend on gaps, so a binary search finds the end.
  private func lastListed(after start: Int) throws(CopyError) -> Int? {
    var (last, isWhole) = try listed(after: start)
    guard var low = last, !isWhole else { return last }
    var distance = CopyLayout.listCountMax
    var high: Int?
    while high.map({ $0 - low > CopyLayout.listCountMax }) ?? true {
      let middle =
        high.map { low + ($0 - low) / 2 } ?? min(low + distance, CopyLayout.stepNumberMax)
      (last, isWhole) = try listed(after: middle)
      guard let found = last else {
        high = middle
        continue
      }
      if isWhole { return found }
      (low, distance) = (found, 2 * distance)
    }
    return try listed(after: low).last ?? low
  }

  /// The last step in a list that begins after a number, and whether the list reaches the end.
  private func listed(after number: Int) throws(CopyError) -> (last: Int?, isWhole: Bool) {
    let after = number < 0 ? nil : CopyLayout.stepKey(number)
    let entries = try requested { () throws(ObjectStoreError) in
      try store.list(prefix: CopyLayout.stepsPrefix, after: after)
    }
    let last = entries.last { CopyLayout.stepNumber($0.key) != nil }
    return (
      last.flatMap { CopyLayout.stepNumber($0.key) }, entries.count < CopyLayout.listCountMax
    )
  }

  /// Calls the body with the number of each step in a range that the store lists, in order.
  func forEachListed(
    _ range: Range<Int>, _ body: (Int) throws -> Void
  ) throws {
    var next = range.lowerBound
    while next < range.upperBound {
      let after = next == 0 ? nil : CopyLayout.stepKey(next - 1)
      let entries = try requested { () throws(ObjectStoreError) in
        try store.list(prefix: CopyLayout.stepsPrefix, after: after)
      }
      let numbers = entries.compactMap { CopyLayout.stepNumber($0.key) }
      for number in numbers {
        guard number < range.upperBound else { return }
        try body(number)
      }
      guard entries.count >= CopyLayout.listCountMax, let last = numbers.last, last >= next else {
        return
      }
      next = last + 1
    }
  }

  // MARK: States

  /// What the steps of a copy contain, from the newest readable complete one to the newest.
  package struct Survey: Sendable {
    /// The newest step's number, and its header, if that can be read.
    package var number: Int
    package var newest: Step.Stored?
    /// The first step that was read.
    package var first: Int
    /// The state at the last step before the first fault; nil if no complete step was found.
    package var state: CopyState?
    /// Steps that are missing, damaged, or do not follow their predecessors, by number.
    package var faults: [CopyFault] = []
  }

  /// The state of the copy at its newest step; nil if there is no step.
  ///
  /// Throws all faults, from the newest complete step on.
  /// - Parameters:
  ///   - known: a step that existed.
  ///   - last: the step whose state is wanted; by default, the newest.
  package func state(knowing known: Int? = nil, at last: Int? = nil) throws(CopyError) -> CopyState?
  {
    guard let survey = try survey(knowing: known, at: last) else { return nil }
    guard survey.faults.isEmpty else { throw .faults(survey.faults) }
    return survey.state
  }

  /// Reads the steps from the newest complete one on; nil if there is no step. See `state`.
  package func survey(
    knowing known: Int? = nil, at last: Int? = nil
  ) throws(CopyError) -> Survey? {
    var found = last
    if found == nil { found = try newest(after: known) }
    guard let number = found else { return nil }
    var survey = Survey(number: number, first: number)
    // Read back to the newest complete step, then forward.
    var later: [Step.Stored?] = []
    var missing: [Int] = []
    var objectCount = 0
    while true {
      let current = survey.first
      var stored: Step.Stored?
      do throws(CopyError) {
        stored = try step(current)
        if stored == nil { missing.append(current) }
      } catch {
        guard case .faults(let faults) = error else { throw error }
        survey.faults += faults
      }
      stored?.frames = nil
      if current == number {
        survey.newest = stored
        if stored == nil { survey.newest = try header(of: number) }
      }
      if let complete = stored, complete.step.isComplete {
        do throws(CopyFault) {
          survey.state = try CopyState(complete: complete.step, sha256: complete.sha256)
          break
        } catch {
          survey.faults.append(error)
          stored = nil
        }
      }
      later.append(stored)
      objectCount += stored?.step.objectCount ?? 0
      guard objectCount <= CopyLayout.objectCountMax else {
        survey.faults.append(
          CopyFault(
            object: CopyLayout.stepKey(current),
            cause: "steps after the newest complete one name too many objects"))
        break
      }
      guard later.count <= 2 * CopyLayout.stepsBetweenCompleteMax, current > 0 else {
        // A missing or damaged step may have been complete.
        if survey.faults.isEmpty, missing.isEmpty {
          survey.faults.append(
            CopyFault(
              object: CopyLayout.stepKey(current), cause: "no complete step comes before it"))
        }
        break
      }
      survey.first -= 1
    }
    survey.faults += Self.faults(ofMissing: missing)
    for next in later.reversed() {
      guard let next, survey.state != nil else { break }
      do throws(CopyFault) { _ = try survey.state?.apply(next.step, sha256: next.sha256) } catch {
        survey.faults.append(error)
        break
      }
    }
    survey.faults.sort { $0.object < $1.object }
    return survey
  }

  /// A fault for each run of missing steps.
  static func faults(ofMissing numbers: [Int]) -> [CopyFault] {
    var runs: [ClosedRange<Int>] = []
    for number in numbers.sorted() {
      if let last = runs.last, last.upperBound + 1 == number {
        runs[runs.count - 1] = last.lowerBound...number
      } else {
        runs.append(number...number)
      }
    }
    return runs.map { fault(ofMissing: $0) }
  }

  static func fault(ofMissing run: ClosedRange<Int>) -> CopyFault {
    let further =
      switch run.count {
      case 1: ""
      case 2: ", and so is the next one"
      default: ", and so are the next \(run.count - 1)"
      }
    return CopyFault(
      object: CopyLayout.stepKey(run.lowerBound), cause: "it is missing" + further)
  }

  /// The header of a step whose frames are damaged; nil if it can't be read.
  private func header(of number: Int) throws(CopyError) -> Step.Stored? {
    let bytes = try requested { () throws(ObjectStoreError) in
      try store.get(CopyLayout.stepKey(number), byteCountMax: CopyLayout.stepByteCountMax)
    }
    guard let stored = bytes.flatMap({ Step.parseHeader($0) }), stored.step.number == number else {
      return nil
    }
    return stored
  }

  /// Advances a state to the newest step; false if there was no newer one.
  package func catchUp(_ state: inout CopyState) throws(CopyError) -> Bool {
    guard let last = try newest(after: state.newest.number) else { return false }
    var next = state
    if last <= next.newest.number {
      // A lost step may have been replaced by another one with its number.
      let isSame = try? step(last)?.sha256 == next.newestSHA256 && last == next.newest.number
      guard isSame == false, let found = try self.state(at: last) else { return false }
      state = found
      return true
    }
    while next.newest.number < last {
      let stored: Step.Stored?
      do throws(CopyError) { stored = try step(next.newest.number + 1) } catch {
        guard case .faults = error else { throw error }
        stored = nil
      }
      guard let stored, (try? apply(stored, to: &next)) != nil else {
        // Steps were lost. A complete one may follow them.
        guard let found = try self.state(at: last) else { return false }
        state = found
        return true
      }
    }
    state = next
    return true
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
}
