// How long SQLite works on a user's statement.
import Base
import Synchronization

/// Measures the time inside SQLite; what the reader of the rows takes does not count. Another thread may read it.
package final class SQLStopwatch: Sendable {
  /// In milliseconds.
  package let limitMs: Int64
  private let usedMicroseconds = Atomic<Int64>(0)
  /// 0 while SQLite does not work.
  private let startedMicroseconds = Atomic<Int64>(0)

  package init(limitMs: Int64) { self.limitMs = limitMs }

  func start() {
    startedMicroseconds.store(MonotonicClock.nowMicroseconds(), ordering: .relaxed)
  }

  func stop() {
    usedMicroseconds.store(workedMicroseconds, ordering: .relaxed)
    startedMicroseconds.store(0, ordering: .relaxed)
  }

  private var workedMicroseconds: Int64 {
    let started = startedMicroseconds.load(ordering: .relaxed)
    let running = started == 0 ? 0 : MonotonicClock.nowMicroseconds() - started
    return usedMicroseconds.load(ordering: .relaxed) + running
  }

  /// The time worked so far, in milliseconds.
  package var workedMs: Int64 { workedMicroseconds / 1000 }

  /// Whether it has worked for longer than it may.
  package var isLate: Bool { workedMs > limitMs }

  /// The error of a statement that is late.
  package var error: SQLError { SQLError(.time, "it took longer than \(limitMs / 1000) s") }

  /// Whether SQLite works right now.
  package var isWorking: Bool { startedMicroseconds.load(ordering: .relaxed) != 0 }
}
