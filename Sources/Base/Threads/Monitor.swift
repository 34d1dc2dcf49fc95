// State that threads share (a value behind a mutex, with condition variables), and the monotonic clock.
import Glibc

/// A value behind a mutex, with numbered condition variables. It uses the system's mutex, because the thread
/// sanitizer does not see how the standard library's mutex waits.
///
/// Sendable because only the holder of the mutex reads or changes the value.
package final class Monitor<State>: @unchecked Sendable {
  // On the heap, where they do not move and where only the lock controls access.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let conditions: UnsafeMutableBufferPointer<pthread_cond_t>
  private let state: UnsafeMutablePointer<State>

  package init(_ initial: State, conditionCount: Int = 0) {
    // One allocation for all three: a server creates a monitor for each request.
    let conditionsOffset = Self.aligned(
      MemoryLayout<pthread_mutex_t>.size, to: MemoryLayout<pthread_cond_t>.alignment)
    let stateOffset = Self.aligned(
      conditionsOffset + conditionCount * MemoryLayout<pthread_cond_t>.stride,
      to: MemoryLayout<State>.alignment)
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: stateOffset + MemoryLayout<State>.size,
      alignment: max(
        MemoryLayout<pthread_mutex_t>.alignment, MemoryLayout<pthread_cond_t>.alignment,
        MemoryLayout<State>.alignment))
    mutex = memory.initializeMemory(as: pthread_mutex_t.self, to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    conditions = UnsafeMutableBufferPointer(
      start: (memory + conditionsOffset).initializeMemory(
        as: pthread_cond_t.self, repeating: pthread_cond_t(), count: conditionCount),
      count: conditionCount)
    state = (memory + stateOffset).initializeMemory(as: State.self, to: initial)
    if conditionCount > 0 { initializeConditions() }
  }

  deinit {
    state.deinitialize(count: 1)
    for index in conditions.indices { pthread_cond_destroy(&conditions[index]) }
    pthread_mutex_destroy(mutex)
    // The allocation starts with the mutex.
    UnsafeMutableRawPointer(mutex).deallocate()
  }

  private static func aligned(_ offset: Int, to alignment: Int) -> Int {
    (offset + alignment - 1) / alignment * alignment
  }

  private func initializeConditions() {
    // Setting the wall clock back must not make a wait longer.
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    for index in conditions.indices { pthread_cond_init(&conditions[index], &attributes) }
    pthread_condattr_destroy(&attributes)
  }

  /// Calls `body` with the state, under the lock.
  package func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&state.pointee)
  }

  /// Calls `body` with the state, under the lock; nil if another thread holds it.
  package func withLockIfFree<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard pthread_mutex_trylock(mutex) == 0 else { return nil }
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

  /// Waits on a condition until the body returns something; returns nil when the time is up.
  /// - Parameter limitMs: the longest wait, in milliseconds.
  package func wait<Result, Failure: Error>(
    on condition: Int, limitMs: Int64, until body: (inout State) throws(Failure) -> Result?
  ) throws(Failure) -> Result? {
    var end = MonotonicClock.now()
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

  /// Wakes one thread that waits on a condition.
  package func signal(_ condition: Int) { pthread_cond_signal(&conditions[condition]) }
  /// Wakes all threads that wait on a condition.
  package func broadcast(_ condition: Int) { pthread_cond_broadcast(&conditions[condition]) }
}

// MARK: - Monotonic clock

/// The time since some fixed point, for deadlines and durations. It never goes back, even if the wall clock
/// (`Timestamp.now()`) is set.
package enum MonotonicClock {
  /// In milliseconds.
  package static func nowMs() -> Int64 {
    let time = now()
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// In microseconds.
  package static func nowMicroseconds() -> Int64 {
    let time = now()
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  /// The time as the system's wait functions expect it.
  static func now() -> timespec {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time
  }
}
