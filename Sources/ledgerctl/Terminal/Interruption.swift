// Signals: a request to stop is a flag that long work looks at.
import Glibc
import Synchronization

/// Whether SIGINT, SIGTERM or SIGHUP arrived. A second SIGINT or SIGTERM ends the process at once.
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
    // Whoever started the program may have blocked them, and children inherit that.
    var awaited = sigset_t()
    sigemptyset(&awaited)
    // Under nohup the end of the terminal is not the end of the program.
    let signals = isIgnored(SIGHUP) ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP]
    for signal in signals {
      // Where a terminal ends, its shell and the kernel both send one.
      if signal == SIGHUP { action.sa_flags = 0 }
      sigaction(signal, &action, nil)
      sigaddset(&awaited, signal)
    }
    sigprocmask(SIG_UNBLOCK, &awaited, nil)
    // A closed pipe and a file size limit are to be errors of write, not deaths.
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    return Interruption()
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var found = sigaction()
    guard sigaction(signal, nil, &found) == 0 else { return false }
    return unsafeBitCast(found.__sigaction_handler.sa_handler, to: Int.self)
      == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  var isRequested: Bool { Self.flag.load(ordering: .relaxed) }

  /// Throws `Interrupted` once a signal asked for the end.
  func check() throws { if isRequested { throw Interrupted() } }
}
