// The circuit breaker for calls to the App Store; and the daily budget of evidence of frauds.
import Base

/// Opens after several failures in a row, then lets single calls through at intervals, and closes when one succeeds.
/// Times are milliseconds of a monotonic clock.
package struct CircuitBreaker: Sendable {
  private enum State {
    case closed(failures: Int)
    case open(untilMs: Int64, pauseMs: Int64)
    /// One call is in progress, and its result decides.
    case probing(pauseMs: Int64)
  }

  /// The number of failures in a row that opens it.
  package static let failuresMax = 8
  /// How long it stays open at first; doubled after each failed probe, up to the longest pause.
  package static let firstPauseMs: Int64 = 2_000
  package static let longestPauseMs: Int64 = 30_000

  private var state = State.closed(failures: 0)

  package init() {}

  package var isClosed: Bool { if case .closed = state { true } else { false } }

  /// When a probe may be made; nil while it is closed or a probe is in progress.
  package var probeAtMs: Int64? { if case .open(let untilMs, _) = state { untilMs } else { nil } }

  /// What a call may do.
  package enum Admission: Sendable, Equatable {
    case allowed
    /// Allowed as the probe, whose result decides.
    case probe
    case denied
  }

  /// Requests permission to call. A probe that is not made must be returned.
  package mutating func admit(nowMs: Int64) -> Admission {
    switch state {
    case .closed: return .allowed
    case .probing: return .denied
    case .open(let untilMs, let pauseMs):
      guard nowMs >= untilMs else { return .denied }
      state = .probing(pauseMs: pauseMs)
      return .probe
    }
  }

  /// Returns a probe that was not made.
  package mutating func giveBackProbe(nowMs: Int64) {
    if case .probing(let pauseMs) = state { state = .open(untilMs: nowMs, pauseMs: pauseMs) }
  }

  package mutating func recordSuccess() { state = .closed(failures: 0) }

  package mutating func recordFailure(isProbe: Bool, nowMs: Int64) {
    switch state {
    case .closed(let failures):
      state =
        failures + 1 < Self.failuresMax
        ? .closed(failures: failures + 1)
        : .open(untilMs: nowMs + Self.firstPauseMs, pauseMs: Self.firstPauseMs)
    case .probing(let pauseMs) where isProbe:
      let nextMs = min(pauseMs * 2, Self.longestPauseMs)
      state = .open(untilMs: nowMs + nextMs, pauseMs: nextMs)
    // Calls that were in flight when it opened are no news.
    case .probing, .open: break
    }
  }

  /// Lets the next call through at once.
  package mutating func probeNow(nowMs: Int64) {
    if case .open(_, let pauseMs) = state { state = .open(untilMs: nowMs, pauseMs: pauseMs) }
  }
}

// MARK: - Budget for evidence of frauds

/// Counts the bytes of frauds that are stored whole, by app family and day in UTC. A server counts from its start.
final class ForgeryBudget: Sendable {
  private struct State {
    var day = Int.min
    var usedBytes: [UUID16: Int64] = [:]
  }

  /// When a client should retry an upload that can neither be kept whole nor be reduced.
  static let pauseSeconds = 3_600

  private let state = Monitor(State())

  /// Whether this many bytes of an app family fit into the day; counts them if they do.
  func consume(_ byteCount: Int, of appFamily: UUID16, bytesMax: Int64, nowMs: Int64) -> Bool {
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
  /// Counts what is kept of a fraud. Raises an alarm if the day's limit is why not all of it is kept.
  func recordForgery(_ kept: Metrics.ForgeryKept, of appFamily: UUID16, isOverBound: Bool) {
    metrics.count(.forgeries, label: kept.rawValue)
    if isOverBound { notes.alarm(.forgeriesBounded, appFamily: appFamily.description) }
  }

  /// Whether the evidence of a fraud fits into the day.
  func hasRoomForForgery(_ byteCount: Int, of appFamily: UUID16) -> Bool {
    forgeries.consume(
      byteCount, of: appFamily, bytesMax: settings.forgedBytesDailyMax, nowMs: clock.nowMs())
  }
}
