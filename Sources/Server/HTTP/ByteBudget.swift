// Memory that all requests share, counted in bytes.
import Base

/// Bytes in use, and how many may be.
final class ByteBudget: Sendable {
  private struct State {
    var used = 0
    var peak = 0
  }

  private let state = Monitor(State())
  private let limitBytes: Int

  init(limitBytes: Int) { self.limitBytes = limitBytes }

  var usedBytes: Int { state.withLock { $0.used } }

  /// Whether a quarter is free: enough for what is under way.
  var hasRoom: Bool { usedBytes <= limitBytes - limitBytes / 4 }

  /// Reserves a number of bytes; false if they are not available.
  /// - Parameter evenAlone: whether what is larger than the whole budget may have it all to itself.
  func reserve(_ count: Int, evenAlone: Bool = false) -> Bool {
    state.withLock { state in
      guard state.used + count <= limitBytes || evenAlone && state.used == 0 else { return false }
      state.used += count
      state.peak = max(state.peak, state.used)
      return true
    }
  }

  func release(_ count: Int) {
    state.withLock { state in
      precondition(count <= state.used, "more bytes released than reserved")
      state.used -= count
    }
  }

  /// The most that was in use since the last call that found it over: nil unless it was `minBytes`, and all but
  /// a quarter of it has been given back.
  func endedPeak(minBytes: Int) -> Int? {
    state.withLock { state in
      guard state.peak >= minBytes, state.used <= state.peak / 4 else { return nil }
      defer { state.peak = state.used }
      return state.peak
    }
  }
}
