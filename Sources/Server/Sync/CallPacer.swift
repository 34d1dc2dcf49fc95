// How fast calls of one environment may follow each other.

/// Spreads calls evenly. What was missed for a moment may be made up for. Times are of a clock that never goes back.
struct CallPacer {
  private let intervalMicros: Int64
  private var nextMicros: Int64 = 0

  /// How much of what was missed may be made up for.
  private static let slackMicros: Int64 = 100_000

  init(callsPerSecond: Int) { intervalMicros = 1_000_000 / Int64(max(callsPerSecond, 1)) }

  /// When the next call may be made, in milliseconds.
  var nextMs: Int64 { (nextMicros + 999) / 1000 }

  /// Whether a call may be made now; counts it if so.
  mutating func take(nowMs: Int64) -> Bool {
    guard nowMs >= nextMs else { return false }
    nextMicros = max(nextMicros, nowMs * 1000 - Self.slackMicros) + intervalMicros
    return true
  }

  /// Makes no call before a time.
  mutating func hold(untilMs: Int64) { nextMicros = max(nextMicros, untilMs * 1000) }
}
