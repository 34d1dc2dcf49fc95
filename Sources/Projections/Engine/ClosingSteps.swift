// What a fold from nothing does during its last events: after them a single thread would do it.

/// When a fold from nothing writes rows that may still change.
struct WritingPace: Sendable {
  /// What has not changed for this many events will hardly change again.
  var settledEventCount = 4096
  /// The closing steps run while the last events are folded: this fraction of them, up to this number.
  var closingFraction = 5
  var closingEventCountMax = 65_536

  /// The last of a number of events.
  func closingEventCount(of total: Int) -> Int {
    min(total / closingFraction, closingEventCountMax)
  }
}

/// What is done once, when most events are folded.
enum ClosingStep: Equatable {
  /// Writes the users, most of whom are known by then.
  case users
  /// Writes again what has changed since it was written.
  case sales, receipts
  /// Makes an index; what comes after it costs more.
  case index(String)
}

/// The steps that are left, in their order: what is written again should have no indexes yet.
struct ClosingSteps {
  private static let all =
    [.users, .sales, .receipts] + Schema.earlyIndexes.map { ClosingStep.index($0) }

  private var left = all[...]
  private let pace: WritingPace

  init(_ pace: WritingPace) { self.pace = pace }

  /// The next step, if it is its turn: they are spread over the last events. After the very last one nothing runs
  /// in parallel: the rest is done when all rows are written.
  mutating func next(after foldedCount: Int, of total: Int) -> ClosingStep? {
    let closingCount = pace.closingEventCount(of: total)
    guard foldedCount < total, (total - foldedCount) * Self.all.count < closingCount * left.count
    else { return nil }
    return left.popFirst()
  }

  /// The next step, whether it is its turn or not.
  mutating func next() -> ClosingStep? { left.popFirst() }
}
