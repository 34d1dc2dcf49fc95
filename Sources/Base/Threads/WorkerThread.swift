// Threads that this program starts.
import Glibc

/// How a thread competes with others for the processors.
package enum ThreadPriority: Sendable, Equatable {
  /// The default priority.
  case usual
  /// From 1 to 19: how much lower the priority is than that of the starting thread.
  case niceness(Int32)
  /// Runs only on an idle processor; any thread that wakes up preempts it. While the processors are busy it
  /// makes almost no progress, so it must not be the only thread to do work that others wait for, and must not hold a
  /// lock that others need. The process also waits for it at exit, so a short-lived process must not start one.
  case idle

  /// Linux's SCHED_IDLE. The C library declares it only for GNU programs (sched(7)).
  private static let idlePolicy: Int32 = 5

  /// Applies the priority to the calling thread; in Linux each thread has its own. If the system rejects it, the thread
  /// keeps its priority.
  fileprivate func adopt() {
    switch self {
    case .usual: break
    case .niceness(let value):
      // Relative to the starting thread, so that no thread gains priority.
      let which = __priority_which_t(PRIO_PROCESS.rawValue)
      setpriority(which, 0, getpriority(which, 0) + value)
    case .idle:
      var parameter = sched_param()
      sched_setscheduler(0, Self.idlePolicy, &parameter)
    }
  }
}

/// A thread of the operating system. Sendable because its handle is a number that never changes.
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

  /// Starts a thread. The caller must join or detach it.
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

  /// Waits until the thread ends.
  package func join() { pthread_join(handle, nil) }

  /// Lets the thread end by itself; it keeps alive what it uses.
  package func detach() { pthread_detach(handle) }

  /// Whether the caller is this thread and so cannot join it.
  package var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }
}

/// How many processors run threads; at least 1.
package let processorCount = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
