// The stand-in's time: the machine's, and as much later as someone asked for.
private import Glibc

/// A clock that can be put forward.
struct Clock: Sendable {
  /// Milliseconds.
  var aheadMs: Int64 = 0

  /// Epoch milliseconds.
  var nowMs: Int64 { Self.machineMs + aheadMs }

  /// The machine's time, in epoch milliseconds.
  static var machineMs: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
