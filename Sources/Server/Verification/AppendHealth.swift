// Whether events can be appended and folded, from the last attempts.
import Base
import Ledger

/// Watches the results of all appends and folds.
final class AppendHealth: Sendable {
  /// After this long without an attempt the server makes one itself: a full disk may have space again.
  static let retryMs: Int64 = 5_000

  private struct State {
    var isFatal = false
    /// When the last append failed; nil once one has succeeded.
    var refusedAtMs: Int64?
    /// When the last fold failed; nil once one has succeeded.
    var unfoldedAtMs: Int64?
  }

  private let state = Monitor(State())
  private let clock: WorkflowClock
  private let notes: OperatorNotes
  private let onFatal: @Sendable () -> Void

  init(_ clock: WorkflowClock, _ notes: OperatorNotes, onFatal: @escaping @Sendable () -> Void) {
    self.clock = clock
    self.notes = notes
    self.onFatal = onFatal
  }

  /// Whether the last append, or the last test of one, succeeded.
  var canAppend: Bool { state.withLock { !$0.isFatal && $0.refusedAtMs == nil } }

  /// Whether the last fold succeeded: without one no client gets a response.
  var canFold: Bool { state.withLock { $0.unfoldedAtMs == nil } }

  var isFatal: Bool { state.withLock { $0.isFatal } }

  /// Whether an append may be tried that no upload needs, to see whether appends succeed again. True once.
  func takeAppendRetry() -> Bool { !isFatal && takeRetry(after: \.refusedAtMs) }

  /// Whether a fold may be tried, to see whether folds succeed again. True once.
  func takeFoldRetry() -> Bool { takeRetry(after: \.unfoldedAtMs) }

  private func takeRetry(after failure: WritableKeyPath<State, Int64?>) -> Bool {
    let nowMs = clock.monotonicMs()
    return state.withLock { state in
      guard let failedAtMs = state[keyPath: failure], nowMs - failedAtMs >= Self.retryMs
      else { return false }
      state[keyPath: failure] = nowMs
      return true
    }
  }

  func noteSuccess() { state.withLock { $0.refusedAtMs = nil } }

  /// - Parameter isFatal: whether the writer refuses everything from now on.
  func noteFailure(_ error: LedgerError, isFatal: Bool) {
    let isFirst = state.withLock { state in
      defer { if isFatal { state.isFatal = true } }
      state.refusedAtMs = clock.monotonicMs()
      return isFatal && !state.isFatal
    }
    notes.fault("append", error)
    if isFirst { onFatal() }
  }

  /// Records the result of a fold.
  func noteFold(isGood: Bool) {
    let nowMs = isGood ? nil : clock.monotonicMs()
    state.withLock { $0.unfoldedAtMs = nowMs }
  }
}
