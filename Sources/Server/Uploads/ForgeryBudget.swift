// How much evidence of frauds is kept whole in a day, and how much of an upload that leaves.
import Base

/// Counts the bytes of frauds that are stored whole, by app family and day of UTC. A server counts from its start.
final class ForgeryBudget: Sendable {
  private struct State {
    var day = Int.min
    var usedBytes: [UUID16: Int64] = [:]
  }

  /// When an upload is asked for again that can neither be kept whole nor be reduced.
  static let pauseSeconds = 3_600

  private let state = Monitor(State())

  /// Whether so many bytes of an app family fit into the day; counts them if they do.
  func take(_ byteCount: Int, of appFamily: UUID16, bytesMax: Int64, nowMs: Int64) -> Bool {
    let day = Timestamp.utcDay(ms: nowMs)
    return state.withLock { state in
      if state.day != day { state = State(day: day) }
      let used = state.usedBytes[appFamily, default: 0]
      guard Int64(byteCount) <= bytesMax - used else { return false }
      state.usedBytes[appFamily] = used + Int64(byteCount)
      return true
    }
  }
}

extension WorkflowShared {
  /// Counts what is kept of a fraud. Raises an alarm if the day's bound is the reason that it is not all.
  func recordForgery(_ kept: Metrics.ForgeryKept, of appFamily: UUID16, isOverBound: Bool) {
    metrics.count(.forgeries, label: kept.rawValue)
    if isOverBound { notes.alarm(.forgeriesBounded, appFamily: appFamily.description) }
  }

  /// Whether the evidence of a fraud fits into the day.
  func hasRoomForForgery(_ byteCount: Int, of appFamily: UUID16) -> Bool {
    forgeries.take(
      byteCount, of: appFamily, bytesMax: settings.forgedBytesDailyMax, nowMs: clock.nowMs())
  }
}
