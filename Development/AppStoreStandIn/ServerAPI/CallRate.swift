// How many calls a second the App Store Server API takes.

/// A bucket that holds the calls of a second, for one environment.
struct CallRate: Sendable {
  let callsPerSecond: Int
  /// Thousandths of a call.
  private var held: Int64
  private var lastMs: Int64

  init(callsPerSecond: Int, nowMs: Int64) {
    self.callsPerSecond = callsPerSecond
    held = Int64(callsPerSecond) * 1000
    lastMs = nowMs
  }

  /// Takes a call out; nil if there was one, else the time from which on there is, in epoch milliseconds.
  mutating func take(nowMs: Int64) -> Int64? {
    let rate = Int64(callsPerSecond)
    held = min(rate * 1000, held + min(max(0, nowMs - lastMs), 1000) * rate)
    lastMs = nowMs
    guard held < 1000 else {
      held -= 1000
      return nil
    }
    return nowMs + (1000 - held + rate - 1) / rate
  }
}
