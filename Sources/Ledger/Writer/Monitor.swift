// State that threads share: a mutex with condition variables, and threads of our own.
import Glibc

/// A value behind a mutex, with numbered conditions to wait on.
package final class Monitor<State>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let conditions: UnsafeMutableBufferPointer<pthread_cond_t>
  private let state: UnsafeMutablePointer<State>

  package init(_ initial: State, conditionCount: Int) {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    conditions = .allocate(capacity: conditionCount)
    conditions.initialize(repeating: pthread_cond_t())
    // A wall clock that is put back must not make anyone wait longer.
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    for index in 0..<conditionCount { pthread_cond_init(&conditions[index], &attributes) }
    pthread_condattr_destroy(&attributes)
    state = .allocate(capacity: 1)
    state.initialize(to: initial)
  }

  deinit {
    for index in conditions.indices { pthread_cond_destroy(&conditions[index]) }
    conditions.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// Calls `body` with the state, under the lock.
  package func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state.pointee)
  }

  /// Waits on a condition until the body returns something; the body runs under the lock.
  package func wait<Result, Failure: Error>(
    on condition: Int, until body: (inout State) throws(Failure) -> Result?
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = try body(&state.pointee) { return result }
      pthread_cond_wait(&conditions[condition], mutex)
    }
  }

  /// Waits on a condition until the body returns something, or the time is over: nil then.
  /// - Parameter limitMs: at most so many milliseconds.
  package func wait<Result, Failure: Error>(
    on condition: Int, limitMs: Int64, until body: (inout State) throws(Failure) -> Result?
  ) throws(Failure) -> Result? {
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let nanoseconds = end.tv_nsec + Int(limitMs % 1000) * 1_000_000
    end.tv_sec += Int(limitMs / 1000) + nanoseconds / 1_000_000_000
    end.tv_nsec = nanoseconds % 1_000_000_000
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = try body(&state.pointee) { return result }
      if pthread_cond_timedwait(&conditions[condition], mutex, &end) != 0 { break }
    }
    return try body(&state.pointee)
  }

  /// Wakes one who waits on a condition.
  package func signal(_ condition: Int) { pthread_cond_signal(&conditions[condition]) }
  /// Wakes all who wait on a condition.
  package func broadcast(_ condition: Int) { pthread_cond_broadcast(&conditions[condition]) }
}

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
