// Keeps a copy of a ledger in a store, on its own threads.
import Base
package import Ledger

/// Copies a ledger to a store as it grows, until it is stopped or another writer takes over. Thread-safe.
///
/// Only one process may replicate a ledger: it holds `replication/lock`.
package final class Replicator: Sendable {
  private static let lockName = "lock"

  private struct Threads {
    var copying: WorkerThread?
    var workers: [WorkerThread] = []
    var lock: StorageFile?
    var hasStarted = false
  }

  package let store: any ObjectStore
  private let directory: LedgerDirectory
  private let options: ReplicatorOptions
  private let exchange: ReplicationMailbox
  private let threads = Monitor(Threads())

  package init(
    _ directory: LedgerDirectory, _ store: any ObjectStore,
    options: ReplicatorOptions = ReplicatorOptions()
  ) {
    (self.directory, self.store, self.options) = (directory, store, options)
    exchange = ReplicationMailbox(target: store.name, notice: options.notice)
  }

  deinit { stop(deadlineMs: 0) }

  /// The current state.
  package var status: ReplicationStatus { exchange.status }

  /// Lets appends wait for the copy.
  /// - Parameter limitMs: how long an append waits at most.
  package func gate(limitMs: Int64 = 10_000) -> ReplicationGate {
    ReplicationGate(exchange, limitMs: limitMs)
  }

  // MARK: Starting and stopping

  /// Takes the lock and starts the threads. The store is read afterwards, so that a server starts even if the store is
  /// unreachable.
  ///
  /// Throws `locked` if another process replicates this ledger. May be called once.
  package func start() throws(LedgerError) {
    try threads.withLock { threads throws(LedgerError) in
      precondition(!threads.hasStarted, "a replicator was started twice")
      threads.lock = try acquireLock()
      threads.hasStarted = true
      if let record = try ReplicationRecord(of: directory) {
        exchange.change { status in
          (status.epoch, status.step, status.confirmedSize) =
            (record.epoch, record.step, record.size)
          status.wholeAtMs = record.wholeAtMs
        }
      }
      let copying = ReplicationLoop(directory, store, options, exchange)
      threads.copying = try WorkerThread.start { copying.run() }
      for _ in 0..<max(1, options.workerCount) {
        let worker = CopyWorker(
          store, directory, exchange, retryMsMax: options.retryMsMax)
        threads.workers.append(try WorkerThread.start { worker.run() })
      }
    }
  }

  private func acquireLock() throws(LedgerError) -> StorageFile {
    let name = ReplicationRecord.folderName
    let isNew = try directory.folderIfPresent(name) == nil
    let folder = try directory.root.madeFolder(name)
    if isNew {
      try directory.root.giveNewFolderToOwner(folder)
      try directory.root.sync()
    }
    let (file, isNewFile) = try folder.openLock(Self.lockName)
    if isNewFile { try folder.giveNewFileToOwner(file) }
    guard try file.lock() else {
      throw LedgerError(
        .locked, operation: "replicate", object: directory.path,
        cause: "another process replicates this ledger")
    }
    return file
  }

  /// Tries to confirm what is on disk until the deadline, then ends the threads and releases the lock. The store can't
  /// be used after that.
  package func stop(deadlineMs: Int64) {
    let hasStarted = threads.withLock { $0.hasStarted }
    guard hasStarted else { return }
    let endMs = MonotonicClock.nowMs() + max(0, deadlineMs)
    exchange.monitor.withLock { state in
      state.stopAtMs = min(state.stopAtMs ?? endMs, endMs)
      state.isWoken = true
    }
    exchange.monitor.signal(ReplicationMailbox.Condition.wake)
    exchange.monitor.broadcast(ReplicationMailbox.Condition.progress)
    _ = exchange.monitor.wait(
      on: ReplicationMailbox.Condition.progress, limitMs: max(0, deadlineMs)
    ) { $0.hasEnded ? true : nil }
    // Ends calls that are still running.
    store.cancel()
    exchange.monitor.broadcast(ReplicationMailbox.Condition.work)
    threads.withLock { threads in
      if let copying = threads.copying {
        // `onFenced` may stop replication at once, on this thread.
        if copying.isCurrent { copying.detach() } else { copying.join() }
      }
      for worker in threads.workers { worker.join() }
      threads.copying = nil
      threads.workers = []
      threads.lock?.unlock()
      threads.lock = nil
    }
  }

  // MARK: Waiting

  /// The result of reading the store.
  package enum Opening: Sendable, Equatable {
    case copying
    case ended(ReplicationEnding)
    /// It could not be read in this time; reading is retried. The error, if there is one.
    case notYet(String?)
  }

  /// Waits until it is known whether this ledger may continue the copy.
  package func waitUntilOpen(limitMs: Int64) -> Opening {
    let opening = exchange.monitor.wait(
      on: ReplicationMailbox.Condition.progress, limitMs: limitMs
    ) { state -> Opening? in
      if let ending = state.status.ending { return state.hasEnded ? .ended(ending) : nil }
      return state.status.mode == .opening ? nil : .copying
    }
    return opening ?? .notYet(exchange.status.error)
  }

  /// Copies all that is on disk, replaces frames by segments and blocks, and returns.
  ///
  /// Throws `ReplicationEnding`, or `LedgerError` (`unconfirmed`) with the failure: at once if only an operator can
  /// help, otherwise after a while.
  /// - Parameters:
  ///   - sample: the part of all objects that is read back and compared, from 0 to 1; nil for none. Damaged objects are
  ///     stored again.
  ///   - giveUpMs: how long the store may be unavailable.
  ///   - progress: called at intervals.
  /// - Returns: false if it was cancelled.
  package func copyAll(
    verifying sample: Double? = nil, giveUpMs: Int64 = 60_000, isCancelled: () -> Bool = { false },
    progress: (ReplicationStatus) -> Void = { _ in }
  ) throws -> Bool {
    let (start, failureCount) = exchange.monitor.withLock { state in
      state.wantsAll = true
      state.sample = sample ?? state.sample
      state.isWoken = true
      return (state.lookCount, state.failureCount)
    }
    defer { exchange.monitor.withLock { $0.wantsAll = false } }
    exchange.monitor.signal(ReplicationMailbox.Condition.wake)
    while !isCancelled() {
      let isDone = try exchange.monitor.wait(
        on: ReplicationMailbox.Condition.progress, limitMs: 200
      ) { state throws -> Bool? in
        if state.hasEnded, let ending = state.status.ending { throw ending }
        if state.settledLook > start { return true }
        // The first failure may be that of a call that was already running.
        if let failure = state.failure, state.failureCount >= failureCount + 2,
          self.isHopeless(failure, giveUpMs)
        {
          throw LedgerError(
            .unconfirmed, operation: "replicate", object: state.status.target,
            cause: failure.error)
        }
        return state.hasEnded ? false : nil
      }
      if let isDone { return isDone }
      progress(exchange.status)
    }
    return false
  }

  private func isHopeless(_ failure: ReplicationMailbox.Failure, _ giveUpMs: Int64) -> Bool {
    switch failure.kind {
    case .denied, .noBucket, .full, .tooLarge, .unexpected: true
    case .unavailable, .cancelled, nil:
      MonotonicClock.nowMs() - failure.sinceMonotonicMs >= giveUpMs
    }
  }
}

// MARK: - Appends that wait for the copy

/// Makes an append return only after its events are in a step of the copy (`sync`).
package final class ReplicationGate: AppendConfirmation {
  private static let operation = "append"

  private let exchange: ReplicationMailbox
  private let limitMs: Int64

  init(_ exchange: ReplicationMailbox, limitMs: Int64) {
    self.exchange = exchange
    self.limitMs = limitMs
  }

  /// Waits until all events before a position are in the copy.
  ///
  /// Throws `standby` if another writer has taken over, and `unconfirmed` if it takes longer than the limit. Once the
  /// store has been unavailable for that long, callers no longer wait; the events are copied when it is back.
  package func waitUntilConfirmed(_ end: Position, sinceMs: Int64) throws(LedgerError) {
    exchange.monitor.withLock { state in
      state.demand = max(state.demand, end)
      state.isWoken = true
    }
    let waitedMs = max(0, MonotonicClock.nowMs() - sinceMs)
    try wait(limitMs: max(0, limitMs - waitedMs)) { $0.status.confirmedSize >= end }
  }

  /// Waits until the open work on disk is in the copy: the progress of webhooks, and erasure requests.
  ///
  /// Throws what `waitUntilConfirmed` throws.
  package func waitForOpenWork() throws(LedgerError) {
    let demand = exchange.monitor.withLock { state in
      state.workDemand += 1
      state.isWoken = true
      return state.workDemand
    }
    try wait(limitMs: limitMs) { $0.confirmedWorkDemand >= demand }
  }

  private func wait(
    limitMs restMs: Int64, until isConfirmed: (ReplicationMailbox.State) -> Bool
  ) throws(LedgerError) {
    exchange.monitor.signal(ReplicationMailbox.Condition.wake)
    let hasEnded = try exchange.monitor.wait(
      on: ReplicationMailbox.Condition.progress, limitMs: restMs
    ) { state throws(LedgerError) -> Bool? in
      // An event that was confirmed before another writer took over is in that writer's history too. What is missing
      // may be what precedes it.
      if isConfirmed(state), state.status.missingCount == 0 { return true }
      if let ending = state.status.ending {
        throw ending.ledgerError(operation: Self.operation, object: state.status.target)
      }
      if state.hasEnded { throw self.unconfirmed(state, "replication has stopped") }
      if let failure = state.failure,
        MonotonicClock.nowMs() - failure.sinceMonotonicMs >= self.limitMs
      {
        throw self.unconfirmed(state, failure.error)
      }
      return nil
    }
    guard hasEnded == nil else { return }
    throw exchange.monitor.withLock { state in
      unconfirmed(
        state,
        "no copy has confirmed it within \(limitText)"
          + (state.status.missingCount > 0
            ? "; the copy lacks \(state.status.missingCount) objects" : "")
          + (state.failure.map { ": \($0.error)" } ?? ""))
    }
  }

  private var limitText: String {
    limitMs % 1000 == 0 ? "\(limitMs / 1000) s" : "\(limitMs) ms"
  }

  private func unconfirmed(_ state: ReplicationMailbox.State, _ cause: String) -> LedgerError {
    LedgerError(
      .unconfirmed, operation: Self.operation, object: state.status.target, cause: cause)
  }
}

// MARK: - Options

/// The options of a replicator. The times are in milliseconds.
package struct ReplicatorOptions: Sendable {
  /// The longest time that events wait before they are in a step, if the store answers.
  package var delayMs: Int64 = 2_000
  /// A step is created at once when this many bytes wait.
  package var waitingByteCount = 1 << 20
  /// The most bytes of frames in a step, unless a single frame is larger.
  package var stepByteCount = 8 << 20
  /// How often the log is read.
  package var pollMs: Int64 = 250
  /// How often segments, checkpoints and the identity are compared with what was copied.
  package var checkMs: Int64 = 5_000
  /// The shortest time between two uploads of open work, unless a caller waits for it.
  package var workMs: Int64 = 10_000
  /// How long deletions pause after a failure.
  package var deletionPauseMs: Int64 = 60_000
  /// How often all objects are listed, to delete what no step names.
  package var sweepMs: Int64 = 24 * 3_600_000
  /// The most steps from one complete step to the next.
  package var stepsBetweenComplete = CopyLayout.stepsBetweenCompleteMax
  /// How many threads store objects and delete them.
  package var workerCount = 2
  /// Checks that the store does what a copy needs before anything is written to it.
  package var probe: @Sendable (any ObjectStore) throws(StoreProbe.Failure) -> Void = {
    store throws(StoreProbe.Failure) in try StoreProbe.check(store)
  }
  /// Receives a message for the log: one line, when something changes.
  package var notice: @Sendable (String) -> Void = { _ in }
  /// Called when another writer has taken over, after that was recorded: nothing may be appended any more.
  package var onFenced: @Sendable (LedgerError) -> Void = { _ in }
  /// The longest wait between attempts.
  package var retryMsMax = 30_000

  package init() {}
}
