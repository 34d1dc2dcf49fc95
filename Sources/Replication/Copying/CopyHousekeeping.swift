// Decides what to delete from a copy and when to sweep it: a value without I/O.
import Base
import Ledger

/// Tracks what steps have replaced and sweeps have found until it is deleted, and what a sweep has found missing. Only
/// the replication thread uses it.
struct CopyHousekeeping {
  private enum Limit {
    static let cleanupCount = 200
    /// Anything beyond this is left to the sweep.
    static let wasteCount = 20_000
    /// How soon something is tried again that had to wait for something else.
    static let damagePauseMs: Int64 = 1_000
    /// The same loss is repaired at once this often; after that, only at intervals.
    static let mendingCount = 3
  }

  /// What a step replaced. It is kept until a later step is confirmed: a copy that loses its newest step is then the copy
  /// before that step.
  private struct Replaced {
    var keys: Set<String> = []
    var steps: [SupersededStep] = []
    let sinceMs: Int64

    var count: Int { keys.count + steps.count }
  }

  private let deletionPauseMs: Int64
  private let sweepMs: Int64
  /// How long replaced things wait for a step that is due anyway.
  private let replacedPauseMs: Int64

  private var replaced: Replaced?
  private var wasteKeys: Set<String> = []
  private var wasteSteps: [Int: SupersededStep] = [:]
  private(set) var cleanup: Cleanup?
  private var cleanupAtMs: Int64 = 0
  /// The short headers of steps whose superseded frames are still stored.
  private var headers: [Int: [UInt8]] = [:]

  private var sweep: Sweep?
  private var sweepAtMs: Int64 = 0
  /// Whether a sweep is wanted at once; a sweep that is already running does not count.
  private var isSweepWanted = false
  private var hasSwept = false
  /// The result of a sweep. It may be deleted after the next step: no other writer has stored any of it then.
  private var finding: (SweepFinding, newest: Int)?

  /// Keys that were stored again and must be read back.
  private var mended: Set<String> = []
  /// How many sweeps in a row have found something missing.
  private(set) var lossCount = 0
  /// The part of the contents that the next sweep reads back; nil if none was requested.
  private var sample: Double?

  init(deletionPauseMs: Int64, sweepMs: Int64, replacedPauseMs: Int64) {
    (self.deletionPauseMs, self.sweepMs) = (deletionPauseMs, sweepMs)
    self.replacedPauseMs = replacedPauseMs
  }

  /// How many replaced objects and frames are not deleted yet.
  var replacedCount: Int {
    wasteKeys.count + wasteSteps.count + (cleanup?.count ?? 0) + (replaced?.count ?? 0)
  }
  /// Whether a step must be created before what was found or replaced may be deleted.
  func needsStep(isAwaited: Bool, _ nowMs: Int64) -> Bool {
    if finding != nil { return true }
    guard let replaced else { return false }
    return isAwaited || nowMs >= replaced.sinceMs + replacedPauseMs
  }
  /// Whether nothing is running or due; what could not be deleted may remain.
  func isIdle(_ nowMs: Int64) -> Bool {
    sweep == nil && finding == nil && cleanup == nil && sample == nil && !isSweepWanted
      && nowMs < sweepAtMs
  }
  /// Whether the store repeatedly fails to keep what is stored.
  var isHopeless: Bool { lossCount >= Limit.mendingCount }

  // MARK: Events

  /// The copy was opened: what the steps of earlier processes have replaced is unknown.
  mutating func opened(_ nowMs: Int64) {
    hasSwept = false
    sweepAtMs = nowMs
  }

  /// Starts the next sweep at once.
  mutating func sweepSoon() { isSweepWanted = true }

  /// Makes the next sweep read contents back.
  mutating func verify(sample: Double) {
    self.sample = sample
    isSweepWanted = true
  }

  /// A step was confirmed. Deletes what the steps before it have replaced, and what a sweep found before it: another
  /// writer that had taken over and stored some of it would have fenced this one.
  mutating func confirmed(
    _ step: Step, _ replaced: CopyState.Replaced, framesBefore: [EarlierFrames],
    _ state: CopyState, _ nowMs: Int64
  ) {
    if let earlier = self.replaced {
      wasteKeys.formUnion(earlier.keys)
      for step in earlier.steps { wasteSteps[step.number] = step }
    }
    if step.frames != nil, let header = step.shortHeader { headers[step.number] = header }
    var next = Replaced(keys: Set(replaced.keys), sinceMs: nowMs)
    let dropped = Set(replaced.steps)
    for frames in framesBefore where dropped.contains(frames.step) {
      next.steps.append(
        SupersededStep(
          number: frames.step, positions: frames.frames.first..<frames.frames.end,
          header: headers.removeValue(forKey: frames.step)))
    }
    self.replaced = next.count > 0 ? next : nil
    guard let (found, newest) = finding, step.number > newest else { return }
    finding = nil
    hasSwept = hasSwept || !found.isPartial
    let needed = Set(state.frames.map(\.step))
    wasteKeys.formUnion(found.keys)
    for step in found.steps where !needed.contains(step.number) { wasteSteps[step.number] = step }
  }

  /// A cleanup has ended; returns the cleanup as it was started.
  mutating func finishCleanup(_ left: Cleanup, _ nowMs: Int64) -> Cleanup? {
    guard let begun = cleanup else { return nil }
    cleanup = nil
    wasteKeys.formUnion(left.keys)
    for step in left.steps { wasteSteps[step.number] = step }
    if !left.damaged.isEmpty {
      cleanupAtMs = nowMs + Limit.damagePauseMs
    } else if !left.isDone {
      cleanupAtMs = nowMs + deletionPauseMs
    }
    return begun
  }

  /// A sweep has ended.
  /// - Parameters:
  ///   - found: nil if the objects could not be listed.
  ///   - hasLosses: whether something was missing that is still needed.
  mutating func finishSweep(
    _ ended: Sweep, _ found: SweepFinding?, hasLosses: Bool, newest: Int, _ nowMs: Int64
  ) {
    sweep = nil
    guard let found else {
      // The next sweep reads it back.
      if case .sample(let sample) = ended.reading { self.sample = sample }
      sweepAtMs = nowMs + deletionPauseMs
      return
    }
    lossCount = hasLosses ? lossCount + 1 : 0
    if !hasLosses { mended = [] }
    sweepAtMs = nowMs + (found.isPartial || isHopeless ? deletionPauseMs : sweepMs)
    if found.keys.isEmpty, found.steps.isEmpty {
      hasSwept = hasSwept || !found.isPartial
    } else {
      finding = (found, newest)
    }
  }

  /// Something missing was stored again: the next sweep reads it back.
  mutating func mended(_ keys: Set<String>) {
    mended.formUnion(keys)
    if !isHopeless { isSweepWanted = true }
  }

  // MARK: Due work

  /// The sweep that is due.
  mutating func nextSweep(
    _ state: CopyState, emptiedBefore: Int?, sizes: [String: Int], _ nowMs: Int64
  ) -> Sweep? {
    if replacedCount > Limit.wasteCount {
      replaced = nil
      wasteKeys = []
      wasteSteps = [:]
      headers = [:]
      sweepAtMs = nowMs + deletionPauseMs
      hasSwept = false
    }
    guard sweep == nil, finding == nil, isSweepWanted || nowMs >= sweepAtMs else { return nil }
    // Superseded frames may remain from this step on.
    let first =
      emptiedBefore
      ?? max(
        0,
        state.newest.number - state.stepsSinceComplete - CopyLayout.stepsBetweenCompleteMax)
    let next = Sweep(
      state: state, firstStep: first, sizes: sizes,
      reading: sample.map { .sample($0) } ?? .keys(mended), startedAtMs: Timestamp.now())
    (sample, isSweepWanted) = (nil, false)
    sweep = next
    return next
  }

  /// The next deletions.
  mutating func nextCleanup(
    _ state: CopyState, orphans: [String], _ nowMs: Int64, mayDelete: (String) -> Bool
  ) -> Cleanup? {
    wasteKeys.formUnion(orphans)
    guard cleanup == nil, nowMs >= cleanupAtMs, !wasteKeys.isEmpty || !wasteSteps.isEmpty else {
      return nil
    }
    var next = Cleanup()
    for key in wasteKeys.sorted().prefix(Limit.cleanupCount) {
      wasteKeys.remove(key)
      if mayDelete(key) { next.keys.append(key) }
    }
    let needed = Set(state.frames.map(\.step))
    for number in wasteSteps.keys.sorted().prefix(Limit.cleanupCount) {
      guard let step = wasteSteps.removeValue(forKey: number), !needed.contains(number) else {
        continue
      }
      next.steps.append(step)
    }
    return next.isDone ? nil : next
  }

  mutating func started(_ cleanup: Cleanup) { self.cleanup = cleanup }

  /// The step before which no superseded frames remain; nil if that is not known.
  func emptiedBefore(_ state: CopyState) -> Int? {
    guard hasSwept else { return nil }
    var first = state.frames.first?.step ?? state.newest.number + 1
    first = min(first, replaced?.steps.map(\.number).min() ?? first)
    first = min(first, wasteSteps.keys.min() ?? first)
    return min(first, cleanup?.steps.map(\.number).min() ?? first)
  }
}
