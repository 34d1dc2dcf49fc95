// How many files a process may have open: a reader of a log has all its tails open.
import Glibc

/// The limit that the system sets this process.
package enum OpenFileLimit {
  /// How many files may be open now.
  package static var current: Int {
    // The call can't fail; with the usual limit everything works, too.
    limits.map { Int(clamping: $0.rlim_cur) } ?? 1024
  }

  /// How many tails may wait to be sealed with this limit of open files: a server has several readers,
  /// and one that looks at everything again opens all tails a second time.
  package static func tailCountMax(limit: Int) -> Int {
    min(WriterOptions().unsealedTailCountMax, limit / 8)
  }

  /// Raises the limit as far as is wanted and the system allows. Where it is refused everything works with fewer
  /// files.
  /// - Parameter wanted: enough for all tails that can wait, and for the connections of a server, unless told.
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
