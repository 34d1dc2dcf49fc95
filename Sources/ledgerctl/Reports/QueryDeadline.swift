// Ends the process if SQLite does not return in time.
import Base
import Glibc
import Projections

/// SQLite asks between its steps whether to go on. One step can take hours: `instr` of two long blobs, for example.
/// So a thread ends the process once a query has worked for longer than it may, or was interrupted, and has not noticed
/// for a while. An output file that was begun stays hidden beside its target, as after a kill.
final class QueryDeadline {
  /// What the thread uses.
  private struct Watch: Sendable {
    static let graceMs: Int64 = 2000
    static let pauseMs: Int64 = 200
    let isOver: Monitor<Bool>
    let stopwatch: SQLStopwatch
    let interruption: Interruption
    let folder: String

    func run() {
      var interruptedMs: Int64 = 0
      while !hasEnded() {
        guard stopwatch.isWorking else { continue }
        if interruption.isRequested { interruptedMs += Self.pauseMs }
        if interruptedMs > Self.graceMs { end(.interrupted, "interrupted") }
        if stopwatch.workedMs > stopwatch.limitMs + Self.graceMs {
          end(.failed, "SQL: \(stopwatch.error.cause) (--time-max)")
        }
      }
    }

    private func end(_ exitCode: ExitCode, _ cause: String) -> Never {
      var text = "ledgerctl: query: \(cause)\n"
      text.withUTF8 { _ = writeAll(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
      rmdir(folder)
      _exit(exitCode.rawValue)
    }

    private func hasEnded() -> Bool {
      let ended = isOver.wait(on: 0, limitMs: Self.pauseMs) { (isOver) -> Bool? in
        isOver ? true : nil
      }
      return ended ?? false
    }
  }

  private let isOver = Monitor(false, conditionCount: 1)
  private let thread: WorkerThread?

  /// - Parameter folder: SQLite's temporary files were in it; they have no names.
  init(_ stopwatch: SQLStopwatch, _ interruption: Interruption, _ folder: String) {
    let watch = Watch(
      isOver: isOver, stopwatch: stopwatch, interruption: interruption, folder: folder)
    thread = try? WorkerThread { watch.run() }
  }

  /// Ends the thread. Call it once the query has ended.
  func end() {
    isOver.withLock { $0 = true }
    isOver.broadcast(0)
    thread?.join()
  }
}
