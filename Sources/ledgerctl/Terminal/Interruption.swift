// Signals: a request to stop sets a flag that long operations check.
import Glibc
import Synchronization

/// Whether SIGINT, SIGTERM or SIGHUP arrived. A second SIGINT or SIGTERM ends the process at once.
struct Interruption: Sendable {
  private static let flag = Atomic<Bool>(false)

  /// Installs the signal handlers. Call once, before other threads exist.
  static func install() -> Interruption {
    // Initialized here, so that no signal handler has to.
    flag.store(false, ordering: .relaxed)
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in
      Interruption.flag.store(true, ordering: .relaxed)
    }
    action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
    // The parent may have blocked them, and children inherit that.
    var awaited = sigset_t()
    sigemptyset(&awaited)
    // Under nohup the program continues when the terminal closes.
    let signals = isIgnored(SIGHUP) ? [SIGINT, SIGTERM] : [SIGINT, SIGTERM, SIGHUP]
    for signal in signals {
      // When a terminal closes, both its shell and the kernel send SIGHUP.
      if signal == SIGHUP { action.sa_flags = 0 }
      sigaction(signal, &action, nil)
      sigaddset(&awaited, signal)
    }
    sigprocmask(SIG_UNBLOCK, &awaited, nil)
    // A closed pipe or a file size limit is to be an error of write, not the end of the process.
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

  /// Throws `Interrupted` if a signal asked the command to stop.
  func check() throws { if isRequested { throw Interrupted() } }
}
