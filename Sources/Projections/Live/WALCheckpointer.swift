// Writes SQLite's write-ahead log back into the database, on its own thread.
import Base
import Ledger

/// Bounds the write-ahead log of a database that is written continuously.
///
/// Writing back in parallel with the writer leaves what the writer adds meanwhile, and SQLite restarts its log only
/// when nothing is left: a second, short pass writes the rest while the writer waits.
final class WALCheckpointer: Sendable {
  private struct State {
    /// The database whose log is long.
    var path: String?
    /// The only database to which a connection may stay open; nil for any.
    var onlyPath: String?
    var isStopped = false
  }

  private enum Order {
    case writeBack(String)
    case closeOthers(than: String)
    case stop
  }

  /// Pages of 8 KiB.
  static let logPagesMax = 1024
  private let monitor: Monitor<State>
  private let thread: WorkerThread

  /// - Parameter withoutWriter: calls its argument while the writer of the database waits.
  init(withoutWriter: @escaping @Sendable (() -> Void) -> Void) throws(LedgerError) {
    let monitor = Monitor(State(), conditionCount: 1)
    self.monitor = monitor
    thread = try WorkerThread.start {
      var known: Database?
      while true {
        let order: Order = monitor.wait(on: 0) { state in
          if state.isStopped { return .stop }
          if let path = state.onlyPath.take() { return .closeOthers(than: path) }
          return state.path.map { .writeBack($0) }
        }
        switch order {
        case .stop: return
        case .closeOthers(let path): if known?.path != path { known = nil }
        case .writeBack(let path):
          Self.writeBack(path, &known, withoutWriter)
          monitor.withLock { $0.path = nil }
        }
      }
    }
  }

  /// A failed attempt is repeated with the next batch; until then the log grows, and nothing is lost.
  private static func writeBack(
    _ path: String, _ known: inout Database?, _ withoutWriter: (() -> Void) -> Void
  ) {
    if known?.path != path {
      known = try? Database(path: path, mode: .write)
      try? known?.execute("PRAGMA synchronous = NORMAL")
    }
    guard let database = known else { return }
    try? database.execute("PRAGMA wal_checkpoint(PASSIVE)")
    withoutWriter { try? database.execute("PRAGMA wal_checkpoint(PASSIVE)") }
  }

  /// Has the log written back if it has grown long.
  func look(at database: Database) {
    database.leaveLogAlone()
    guard database.logPageCount >= Self.logPagesMax else { return }
    monitor.withLock { $0.path = database.path }
    monitor.signal(0)
  }

  /// Closes a connection to any database other than the one at a path.
  func closeOthers(than path: String) {
    monitor.withLock { $0.onlyPath = path }
    monitor.signal(0)
  }

  /// Stops the thread. The checkpointer can't be used afterwards.
  func stop() {
    monitor.withLock { $0.isStopped = true }
    monitor.signal(0)
    thread.join()
  }
}
