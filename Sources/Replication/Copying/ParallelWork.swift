// Runs numbered pieces of work on a few threads.
import Base
import Ledger

enum ParallelWork {
  private struct State {
    var next = 0
    var error: CopyError?
  }

  /// Calls the body with each number once, in ascending order as threads become free. After an error no further work
  /// is begun, and the first error is thrown once all threads have ended.
  static func run(
    _ count: Int, threads: Int, _ body: @escaping @Sendable (Int) throws(CopyError) -> Void
  ) throws(CopyError) {
    let state = Monitor(State())
    let work: @Sendable () -> Void = {
      while true {
        let index = state.withLock { state -> Int? in
          guard state.error == nil, state.next < count else { return nil }
          defer { state.next += 1 }
          return state.next
        }
        guard let index else { return }
        do throws(CopyError) { try body(index) } catch {
          state.withLock { if $0.error == nil { $0.error = error } }
        }
      }
    }
    var workers: [WorkerThread] = []
    for _ in 0..<max(0, min(threads, count) - 1) {
      // Fewer threads do the same work.
      if let worker = try? WorkerThread(.usual, work) { workers.append(worker) }
    }
    work()
    for worker in workers { worker.join() }
    if let error = state.withLock({ $0.error }) { throw error }
  }
}
