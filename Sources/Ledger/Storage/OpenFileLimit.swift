// How many files a process may have open: whoever reads a log has all its tails open.
import Glibc

/// The limit that the system sets this process.
package enum OpenFileLimit {
  /// Enough for all tails that can wait, and for the connections of a server.
  private static let wanted: rlim_t = 65_536

  /// How many tails may wait to be sealed where a process may have so many files open: a server has several readers,
  /// and one that looks at everything again opens all tails a second time.
  package static func tailCountMax(limit: Int) -> Int { min(3072, limit / 8) }

  /// How many files may be open now.
  static var current: Int {
    guard let limit = limits else { return 1024 }
    return Int(min(limit.rlim_cur, wanted))
  }

  /// Raises the limit as far as is wanted and the system allows. To be called once, before there are threads.
  package static func raise() {
    guard var limit = limits else { return }
    let reachable = min(limit.rlim_max, wanted)
    guard limit.rlim_cur < reachable else { return }
    limit.rlim_cur = reachable
    // Where it is refused everything works with fewer files.
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  private static var limits: rlimit? {
    var limit = rlimit()
    let status = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return status == 0 ? limit : nil
  }
}
