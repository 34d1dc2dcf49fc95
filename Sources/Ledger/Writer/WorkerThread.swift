// Threads of our own, and the clock by which they wait.
import Glibc

/// The clock that never goes back.
enum MonotonicTime {
  static func nowMs() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

/// A thread of the operating system.
package struct WorkerThread: @unchecked Sendable {
  private let handle: pthread_t

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    let niceness: Int32

    init(niceness: Int32, _ run: @escaping @Sendable () -> Void) {
      self.niceness = niceness
      self.run = run
    }

    func start() {
      // In Linux a thread has a niceness of its own; without the right to change it, it stays as it was.
      if niceness > 0 { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness) }
      run()
    }
  }

  /// Starts a thread; whoever starts it must join it.
  /// - Parameter niceness: above 0 for work beside others that someone waits for.
  package init(
    niceness: Int32 = 0, _ run: @escaping @Sendable () -> Void
  ) throws(LedgerError) {
    let body = Unmanaged.passRetained(Body(niceness: niceness, run))
    var handle = pthread_t()
    let code = pthread_create(
      &handle, nil,
      { argument in
        if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().start() }
        return nil
      }, body.toOpaque())
    if code != 0 {
      body.release()
      throw .system(code, "start", "thread")
    }
    self.handle = handle
  }

  /// Waits for its end.
  package func join() { pthread_join(handle, nil) }
}
