// The circuit breaker: whether to call the App Store at all.

/// Opens after failures in a row, then lets one call through now and then, and closes when one succeeds.
/// Times are milliseconds of a clock that never goes back.
package struct CircuitBreaker: Sendable {
  private enum State {
    case closed(failures: Int)
    case open(untilMs: Int64, pauseMs: Int64)
    /// One call is in progress, and its result decides.
    case probing(pauseMs: Int64)
  }

  /// The number of failures in a row that opens it.
  package static let failuresMax = 8
  /// How long it stays open at first; doubled with each probe that fails, up to the longest pause.
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
    // Calls that were in flight when it opened tell nothing new.
    case .probing, .open: break
    }
  }

  /// Lets the next call through at once.
  package mutating func hurry(nowMs: Int64) {
    if case .open(_, let pauseMs) = state { state = .open(untilMs: nowMs, pauseMs: pauseMs) }
  }
}
