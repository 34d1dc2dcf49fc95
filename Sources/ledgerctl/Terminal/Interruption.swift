// Signals: a request to stop is a flag that long work looks at.
import Glibc
import Synchronization

/// Whether SIGINT or SIGTERM arrived. A second one ends the process at once.
struct Interruption: Sendable {
  private static let flag = Atomic<Bool>(false)

  /// Takes over the signals. Call once, before other threads exist.
  static func install() -> Interruption {
    // Named here so that no signal handler has to initialise it.
    flag.store(false, ordering: .relaxed)
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in
      Interruption.flag.store(true, ordering: .relaxed)
    }
    action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
    sigaction(SIGINT, &action, nil)
    sigaction(SIGTERM, &action, nil)
    // Whoever started the program may have blocked them, and children inherit that.
    var awaited = sigset_t()
    sigemptyset(&awaited)
    sigaddset(&awaited, SIGINT)
    sigaddset(&awaited, SIGTERM)
    sigprocmask(SIG_UNBLOCK, &awaited, nil)
    // A closed pipe and a file size limit are to be errors of write, not deaths.
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    return Interruption()
  }

  var isRequested: Bool { Self.flag.load(ordering: .relaxed) }

  /// Throws `Interrupted` once a signal asked for the end.
  func check() throws { if isRequested { throw Interrupted() } }
}
