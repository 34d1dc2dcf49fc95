// When a running server carries out requests to erase. A plain value: no clock, no files.
package import Erasure

/// Decides when a pass is due: at once for an urgent request, else once a day.
package struct ErasureSchedule: Sendable {
  /// What is to be done in one pass.
  package enum Pass: Equatable, Sendable {
    /// Requests alone.
    case requests
    /// Requests, and what retention asks for.
    case daily
  }

  private static let dayMs: Int64 = 86_400_000

  /// The day's pass is due at the next time of the day after this, in epoch milliseconds.
  private var sinceMs: Int64
  private var isFirstLook = true

  /// - Parameter startMs: when the server started, in epoch milliseconds.
  package init(startMs: Int64) { sinceMs = startMs }

  /// What is due now.
  /// - Parameters:
  ///   - open: the requests that are not done.
  ///   - hasRetention: whether anything is kept for a limited time alone.
  package mutating func due(
    _ open: [ErasureRecord], hasRetention: Bool, dailyAt: TimeOfDay, nowMs: Int64
  ) -> Pass? {
    // A clock that ran ahead must not put off the next pass.
    sinceMs = min(sinceMs, nowMs)
    // After a start a request that has waited for more than a day tells that a pass was missed.
    let isMissed = isFirstLook && open.contains { nowMs - $0.requestedAtMs > Self.dayMs }
    isFirstLook = false
    if isMissed { sinceMs = nowMs - Self.dayMs }
    if lastTime(dailyAt, nowMs) > sinceMs {
      if !open.isEmpty || hasRetention { return .daily }
      end(.daily, nowMs: nowMs)
      return nil
    }
    return open.contains { $0.isUrgent } ? .requests : nil
  }

  /// Notes that a pass was carried out; one that failed stays due.
  package mutating func end(_ pass: Pass, nowMs: Int64) {
    if pass == .daily { sinceMs = nowMs }
  }

  /// The last moment with this time of the day.
  private func lastTime(_ time: TimeOfDay, _ nowMs: Int64) -> Int64 {
    let sinceTimeMs = (nowMs - time.milliseconds) % Self.dayMs
    return nowMs - (sinceTimeMs < 0 ? sinceTimeMs + Self.dayMs : sinceTimeMs)
  }
}
