// Reads single objects of a copy and checks them; lists what can be restored.
import Base
import Ledger

/// Reads objects of a copy.
struct CopyReader: Sendable {
  /// Receives an object's bytes and their offset in the object. After a failed attempt they are passed again.
  typealias Sink = (UnsafeRawBufferPointer, _ offsetBytes: Int) throws(LedgerError) -> Void

  /// The size limit of an object whose size the steps do not record: a signed head.
  private static let smallByteCountMax = 1 << 20
  /// How often an object may be wrong: one wrong read may be the network's fault.
  private static let wrongCountMax = 2

  private enum Reading {
    case whole
    case wrong(String)
    case missing
    case failed(ObjectStoreError)
  }

  private let store: RetryingStore

  init(_ store: RetryingStore) { self.store = store }

  /// Reads an object, or the frames of a step; returns what is wrong with it. Waits and retries after transient
  /// failures.
  ///
  /// Throws what the store rejects, and what the sink throws.
  func read(_ piece: CopyPiece, _ sink: Sink) throws(CopyError) -> CopyFault? {
    switch piece.source {
    case .object(let key): try readObject(key, piece, sink)
    case .step(let number, let frames): try readFrames(number, frames, sink)
    }
  }

  private func readFrames(
    _ number: Int, _ frames: CopiedFrames, _ sink: Sink
  ) throws(CopyError) -> CopyFault? {
    let key = CopyLayout.stepKey(number)
    let stored: Step.Stored?
    do throws(CopyError) { stored = try StepSequence(store).step(number) } catch {
      guard case .faults(let faults) = error, let fault = faults.first else { throw error }
      return fault
    }
    guard let stored else { return CopyFault(object: key, cause: "it is missing") }
    guard stored.step.frames == frames else {
      return CopyFault(object: key, cause: "its frames are not those that a later step names")
    }
    guard let bytes = stored.frames else {
      return CopyFault(object: key, cause: "its frames are missing")
    }
    do throws(LedgerError) {
      try bytes.withUnsafeBufferPointer { (bytes) throws(LedgerError) in
        try sink(UnsafeRawBufferPointer(bytes), 0)
      }
    } catch { throw .ledger(error) }
    return nil
  }

  private func readObject(
    _ key: String, _ piece: CopyPiece, _ sink: Sink
  ) throws(CopyError) -> CopyFault? {
    var backoff = Backoff()
    var wrongCount = 0
    while true {
      switch try readOnce(key, piece, sink) {
      case .whole: return nil
      case .missing: return CopyFault(object: key, cause: "it is missing")
      case .wrong(let cause):
        wrongCount += 1
        if wrongCount == Self.wrongCountMax { return CopyFault(object: key, cause: cause) }
      case .failed(let error):
        do throws(ObjectStoreError) {
          try store.wait(after: error, &backoff)
        } catch { throw .store(error) }
      }
    }
  }

  private func readOnce(
    _ key: String, _ piece: CopyPiece, _ sink: Sink
  ) throws(CopyError) -> Reading {
    let byteCountMax = piece.byteCount ?? Self.smallByteCountMax
    let hasher = SHA256()
    var received = 0
    var sinkError: LedgerError?
    let isThere: Bool
    do throws(ObjectStoreError) {
      isThere = try store.read(key, byteCountMax: byteCountMax) {
        bytes throws(ObjectStoreError) in
        guard bytes.count <= byteCountMax - received else {
          throw ObjectStoreError(.tooLarge, operation: "get", object: key, cause: "it is too large")
        }
        hasher.update(bytes)
        do throws(LedgerError) { try sink(bytes, received) } catch {
          sinkError = error
          throw ObjectStoreError(
            .cancelled, operation: "get", object: key, cause: "the bytes could not be written")
        }
        received += bytes.count
      }
    } catch {
      if let sinkError { throw .ledger(sinkError) }
      return error.kind == .tooLarge
        ? .wrong("it has more than \(byteCountMax) bytes") : .failed(error)
    }
    if !isThere { return .missing }
    if let byteCount = piece.byteCount, received < byteCount {
      return .wrong("it has \(received) bytes instead of \(byteCount)")
    }
    return hasher.finish() == piece.sha256
      ? .whole : .wrong("its SHA-256 is not the one in its key")
  }
}

// MARK: - Listing of restore points

/// The states of a copy that a restore can name: the newest, and one of each day.
package struct CopyListing: Sendable {
  /// The last step of a day.
  package struct Point: Sendable, Equatable {
    package let step: Int
    package let epoch: Int
    /// Epoch milliseconds.
    package let atMs: Int64
    /// How many events the copy held.
    package let size: Int

    init(_ step: Step) {
      (self.step, epoch, atMs, size) = (step.number, step.epoch, step.atMs, step.size)
    }
  }

  /// How many days are shown.
  package static let dayCountMax = 31

  package let newest: Step
  /// Newest first, beginning with the newest step.
  package private(set) var points: [Point]
  /// The sizes of the signed heads.
  package let checkpointSizes: [Int]

  /// Nil if there is no copy.
  /// - Parameter checkCancelled: throws to cancel.
  package init?(_ store: RetryingStore, checkCancelled: () throws -> Void = {}) throws {
    guard let source = try CopySource(store) else { return nil }
    newest = source.state.newest
    points = [Point(newest)]
    checkpointSizes = source.state.checkpoints.map(\.size)
    while points.count < Self.dayCountMax, let last = points.last {
      try checkCancelled()
      let day = last.atMs - Self.sinceMidnight(last.atMs)
      guard let step = try Self.last(before: day, last.step, source.sequence) else { return }
      points.append(Point(step))
    }
  }

  private static func sinceMidnight(_ ms: Int64) -> Int64 {
    let rest = ms % Timestamp.dayMs
    return rest < 0 ? rest + Timestamp.dayMs : rest
  }

  /// The last step that was created before a time, by binary search: steps are in the order of time.
  private static func last(
    before timeMs: Int64, _ end: Int, _ sequence: StepSequence
  ) throws -> Step? {
    var (low, high) = (0, end)
    var found: Step?
    while low < high {
      let middle = low + (high - low) / 2
      // A missing or damaged step hides only itself.
      guard let step = try? sequence.step(middle)?.step else {
        low = middle + 1
        continue
      }
      if step.atMs < timeMs {
        found = step
        low = middle + 1
      } else {
        high = middle
      }
    }
    return found
  }
}
