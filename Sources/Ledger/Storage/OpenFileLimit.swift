// The limit of open files per process: a log reader keeps its tails open.
import Glibc

/// The system's limit for this process.
package enum OpenFileLimit {
  /// How many files the process may have open now.
  package static var current: Int {
    // The call cannot fail; with the usual limit, everything works.
    limits.map { Int(clamping: $0.rlim_cur) } ?? 1024
  }

  /// How many tails may wait to be sealed under this limit of open files: a server has several readers, and a reader
  /// that reads everything again opens all tails a second time.
  package static func tailCountMax(limit: Int) -> Int {
    min(WriterOptions().unsealedTailCountMax, limit / 8)
  }

  /// Raises the limit as far as requested and allowed. If the system refuses, everything works with fewer files.
  /// - Parameter wanted: the default is enough for all tails that can wait and for a server's connections.
  package static func raise(to wanted: Int = 65_536) {
    guard var limit = limits else { return }
    let reachable = min(limit.rlim_max, rlim_t(wanted))
    guard limit.rlim_cur < reachable else { return }
    limit.rlim_cur = reachable
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  private static var limits: rlimit? {
    var limit = rlimit()
    let status = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return status == 0 ? limit : nil
  }
}
