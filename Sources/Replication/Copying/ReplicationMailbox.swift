// What the threads of replication share: requests, tasks and their results, and the status.
import Base
import Ledger

/// The state that the replication thread, its workers, and callers that wait for the copy share.
final class ReplicationMailbox: Sendable {
  /// The kind of request that fails.
  enum Path { case steps, content, loss, deletions, record }

  struct Failure {
    var error: String
    var kind: ObjectStoreError.Kind?
    /// On the wall clock, and on the monotonic one.
    var sinceMs: Int64
    var sinceMonotonicMs: Int64
  }

  struct State {
    var status: ReplicationStatus
    /// The end of the events that callers wait for.
    var demand: Position = 0
    /// How many callers have asked for open work to be in the copy, and how many of these requests are met.
    var workDemand = 0
    var confirmedWorkDemand = 0
    /// The part of all objects that a caller wants read back; nil once that has begun.
    var sample: Double?
    /// Whether a caller waits until all content is stored and everything replaced is deleted.
    var wantsAll = false
    /// The number of the last read of the log after which no work was left.
    var settledLook = 0
    /// How often the replication thread has read the log; waiting callers compare it.
    var lookCount = 0
    var isWoken = false
    /// The deadline for copying what is on disk before the thread ends, on the monotonic clock; nil while it keeps
    /// running.
    var stopAtMs: Int64?
    var tasks: [CopyTask] = []
    var results: [CopyResult] = []
    var failures: [Path: Failure] = [:]
    /// How many calls have failed that confirmations depend on.
    var failureCount = 0
    var hasEnded = false

    var failure: Failure? {
      failures[.steps] ?? failures[.content] ?? failures[.loss]
    }
  }

  enum Condition {
    /// For the replication thread.
    static let wake = 0
    /// For callers that wait for a confirmation, or for the end.
    static let progress = 1
    /// For the workers.
    static let work = 2
  }

  let monitor: Monitor<State>
  private let notice: @Sendable (String) -> Void

  init(target: String, notice: @escaping @Sendable (String) -> Void) {
    monitor = Monitor(State(status: ReplicationStatus(target: target)), conditionCount: 3)
    self.notice = notice
  }

  var status: ReplicationStatus {
    monitor.withLock { state in
      var status = state.status
      let failure = state.failure ?? state.failures[.deletions] ?? state.failures[.record]
      if let failure { status.error = failure.error }
      status.unreachableSinceMs = state.failure?.sinceMs
      return status
    }
  }

  func change(_ body: (inout ReplicationStatus) -> Void) {
    monitor.withLock { body(&$0.status) }
    monitor.broadcast(Condition.progress)
  }

  func wake() {
    monitor.withLock { $0.isWoken = true }
    monitor.signal(Condition.wake)
  }

  /// Whether the workers and waits between attempts must end.
  var isStopping: Bool {
    monitor.withLock { state in
      if state.hasEnded { return true }
      return state.stopAtMs.map { MonotonicClock.nowMs() >= $0 } ?? false
    }
  }

  // MARK: Failures

  func failed(_ path: Path, _ error: String, _ kind: ObjectStoreError.Kind?) {
    let isNew = monitor.withLock { state in
      let before = state.failures[path]
      // Logged once while the store is unavailable, however many calls fail.
      let isFirst = path.isOfStore ? state.failure == nil : before == nil
      state.failures[path] = Failure(
        error: error, kind: kind, sinceMs: before?.sinceMs ?? Timestamp.now(),
        sinceMonotonicMs: before?.sinceMonotonicMs ?? MonotonicClock.nowMs())
      if path.isOfStore { state.failureCount += 1 }
      return isFirst || before.map { $0.kind != kind } ?? false
    }
    monitor.broadcast(Condition.progress)
    if isNew { notice("\(path.failureText) at the moment: \(error)") }
  }

  func succeeded(_ path: Path) {
    let ended = monitor.withLock { state -> Failure? in
      let before = state.failures.removeValue(forKey: path)
      return path.isOfStore && state.failure != nil ? nil : before
    }
    guard let ended else { return }
    monitor.broadcast(Condition.progress)
    let seconds = (MonotonicClock.nowMs() - ended.sinceMonotonicMs) / 1000
    notice("\(path.successText) again, after \(seconds) s")
  }

  // MARK: Tasks

  func add(_ task: CopyTask) {
    monitor.withLock { $0.tasks.append(task) }
    monitor.signal(Condition.work)
  }

  /// The next task; nil when the workers must end.
  func nextTask() -> CopyTask? {
    monitor.wait(on: Condition.work) { state -> CopyTask?? in
      if state.hasEnded || state.stopAtMs.map({ MonotonicClock.nowMs() >= $0 }) == true {
        return .some(nil)
      }
      return state.tasks.isEmpty ? nil : .some(state.tasks.removeFirst())
    }
  }

  func finish(_ result: CopyResult) {
    monitor.withLock { state in
      state.results.append(result)
      state.isWoken = true
    }
    monitor.signal(Condition.wake)
  }

  /// Waits between two attempts of a worker; false if it must end.
  func pause(_ milliseconds: Int) -> Bool {
    let end = MonotonicClock.nowMs() + Int64(milliseconds)
    while true {
      let rest = end - MonotonicClock.nowMs()
      if rest <= 0 { return !isStopping }
      // A new task wakes the worker too; it keeps waiting.
      let hasEnded =
        monitor.wait(on: Condition.progress, limitMs: min(rest, 500)) { state -> Bool? in
          state.hasEnded || state.stopAtMs != nil ? true : nil
        } ?? false
      if hasEnded { return false }
    }
  }
}

extension ReplicationMailbox.Path {
  /// Whether nothing can be confirmed while this kind of request fails.
  fileprivate var isOfStore: Bool { self == .steps || self == .content || self == .loss }

  fileprivate var failureText: String {
    switch self {
    case .steps, .content: "the copy can't be written"
    case .loss: "the copy does not keep what is stored"
    case .deletions: "what was replaced in the copy can't be deleted"
    case .record: "what the copy has confirmed can't be recorded"
    }
  }

  fileprivate var successText: String {
    switch self {
    case .steps, .content: "the copy is being written"
    case .loss: "the copy keeps what is stored"
    case .deletions: "what was replaced in the copy is being deleted"
    case .record: "what the copy has confirmed is being recorded"
    }
  }
}
