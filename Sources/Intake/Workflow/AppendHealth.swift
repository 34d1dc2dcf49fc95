// Whether events can be appended, as the last attempts show.
import Ledger
import Threads

/// Watches the results of appends.
final class AppendHealth: Sendable {
  /// A full disk may have room again: after so long another attempt decides.
  private static let refusalMs: Int64 = 5_000

  private struct State {
    var isFatal = false
    var refusedAtMs: Int64?
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

  var canAppend: Bool {
    state.withLock { state in
      guard !state.isFatal else { return false }
      guard let refusedAtMs = state.refusedAtMs else { return true }
      return clock.monotonicMs() - refusedAtMs > Self.refusalMs
    }
  }

  var isFatal: Bool { state.withLock { $0.isFatal } }

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
}
