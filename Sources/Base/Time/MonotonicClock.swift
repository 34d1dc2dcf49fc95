// The clock that deadlines and durations are measured by; `Timestamp.now()` is the wall clock.
import Glibc

/// The time since some fixed point: it never goes back, whoever sets the wall clock.
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

  /// As the waiting functions of the system want it.
  static func now() -> timespec {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time
  }
}
