// The clock for deadlines and durations; `Timestamp.now()` is the wall clock.
import Glibc

/// The time since some fixed point. It never goes back, even if the wall clock is set.
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
