// Whether a running server makes progress: probes that go the way of an upload, and when a supervisor hears of it.
import Base
import Synchronization

/// Counts the steps of a thread, or of several that do the same.
final class StepCount: Sendable {
  private let value = Atomic<UInt64>(0)

  var now: UInt64 { value.load(ordering: .relaxed) }
  func add() { value.wrappingAdd(1, ordering: .relaxed) }
}

/// Shows whether an upload would be answered. A server that only refuses or fails uploads passes too: another start
/// would not help it.
package struct LivenessProbe {
  /// Whether it has passed. Once true, it stays so.
  package let hasPassed: () -> Bool

  package init(hasPassed: @escaping () -> Bool) { self.hasPassed = hasPassed }

  /// - Parameters:
  ///   - latch: opened at the end of an upload's way.
  ///   - folds: steps of the fold, which may be long: its progress counts as well.
  ///   - loops: steps of the threads that serve clients; each must move.
  init(_ latch: Latch, folds: StepCount, loops: [StepCount]) {
    let (foldsBefore, loopsBefore) = (folds.now, loops.map(\.now))
    hasPassed = {
      (latch.wait(limitMs: 0) || folds.now != foldsBefore)
        && zip(loops, loopsBefore).allSatisfy { $0.now != $1 }
    }
  }
}

/// When to tell a supervisor that the server is alive: at half of the supervisor's limit, and only after a probe has
/// passed. A plain value: no clock, no threads.
package struct Heartbeat {
  private let pauseMs: Int64
  private let patienceMs: Int64
  private var dueMs: Int64
  private var probe: (probe: LivenessProbe, beganMs: Int64)?

  /// - Parameters:
  ///   - limitMs: how long the supervisor waits.
  ///   - patienceMs: how long a probe may take without doubt: uploads may have to wait for the copy.
  package init(limitMs: Int64, patienceMs: Int64 = 0, nowMs: Int64) {
    pauseMs = limitMs / 2
    self.patienceMs = patienceMs
    dueMs = nowMs + pauseMs
  }

  /// Whether to tell the supervisor now. Call it often.
  package mutating func isDue(nowMs: Int64, begin: () -> LivenessProbe) -> Bool {
    guard nowMs >= dueMs else { return false }
    let current = probe ?? (begin(), nowMs)
    let hasPassed = current.probe.hasPassed()
    probe = hasPassed ? nil : current
    guard hasPassed || nowMs - current.beganMs < patienceMs else { return false }
    dueMs = nowMs + pauseMs
    return true
  }
}
