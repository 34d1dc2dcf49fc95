// What can be restored from a copy: its newest state, and one state of each day.
import Base
import Ledger

/// States of a copy that a restore can name.
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
  /// The newest first; that of the newest step is the first of all.
  package private(set) var points: [Point]
  /// The sizes of the signed heads.
  package let checkpointSizes: [Int]

  /// Nil if there is no copy.
  /// - Parameter checkCancelled: throws to cancel.
  package init?(_ store: PatientStore, checkCancelled: () throws -> Void = {}) throws {
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

  /// The last step that was made before a time, by halving: steps are made one after another.
  private static func last(
    before timeMs: Int64, _ end: Int, _ sequence: StepSequence
  ) throws -> Step? {
    var (low, high) = (0, end)
    var found: Step?
    while low < high {
      let middle = low + (high - low) / 2
      // A step that is missing or damaged hides itself alone.
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
