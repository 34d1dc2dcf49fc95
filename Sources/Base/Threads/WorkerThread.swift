// Threads of our own.
import Glibc

/// How a thread shares the processors with others.
package enum ThreadPriority: Sendable, Equatable {
  /// Like any other.
  case usual
  /// From 1 to 19: how much lower its priority is than the starting thread's.
  case niceness(Int32)
  /// It runs only on an idle processor, and any thread that wakes up preempts it. Nothing that is waited
  /// for may be left to it alone, and it may hold no lock that others need: while the processors are busy it stands
  /// almost still. The end of the process waits for it too, so a short-lived process must not start it.
  case idle

  /// Linux's SCHED_IDLE, which the C library declares for GNU programs only (sched(7)).
  private static let idlePolicy: Int32 = 5

  /// Sets it for the calling thread: in Linux each thread has its own. If the system refuses, the thread stays
  /// as it was.
  fileprivate func adopt() {
    switch self {
    case .usual: break
    case .niceness(let value):
      // Relative to the starting thread's, so that no thread gains priority.
      let which = __priority_which_t(PRIO_PROCESS.rawValue)
      setpriority(which, 0, getpriority(which, 0) + value)
    case .idle:
      var parameter = sched_param()
      sched_setscheduler(0, Self.idlePolicy, &parameter)
    }
  }
}

/// A thread of the operating system.
package struct WorkerThread: @unchecked Sendable {
  private let handle: pthread_t

  private final class Body {
    let run: () -> Void
    let priority: ThreadPriority

    init(_ priority: ThreadPriority, _ run: @escaping () -> Void) {
      self.priority = priority
      self.run = run
    }

    func start() {
      priority.adopt()
      run()
    }
  }

  /// Starts a thread; whoever starts it must join or detach it.
  package init(
    _ priority: ThreadPriority = .usual, _ run: sending @escaping () -> Void
  ) throws(SystemError) {
    let body = Unmanaged.passRetained(Body(priority, run))
    var handle = pthread_t()
    let code = pthread_create(
      &handle, nil,
      { argument in
        if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().start() }
        return nil
      }, body.toOpaque())
    if code != 0 {
      body.release()
      throw SystemError(code: code)
    }
    self.handle = handle
  }

  /// Waits for its end.
  package func join() { pthread_join(handle, nil) }

  /// Lets it end by itself: it keeps alive what it uses.
  package func detach() { pthread_detach(handle) }

  /// Whether the caller runs on it, and so cannot wait for its end.
  package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }
}
