// Keeps a copy of a ledger in a store, on threads of its own.
import Base
package import Ledger
package import ObjectStore

/// Copies a ledger to a store as it grows, until it is stopped or another writer takes over. Thread-safe.
///
/// Several processes must not do that for one ledger: the first holds `replication/lock`.
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
  private let exchange: ReplicationExchange
  private let threads = Monitor(Threads())

  package init(
    _ directory: LedgerDirectory, _ store: any ObjectStore,
    options: ReplicatorOptions = ReplicatorOptions()
  ) {
    (self.directory, self.store, self.options) = (directory, store, options)
    exchange = ReplicationExchange(target: store.name, notice: options.notice)
  }

  deinit { stop(deadlineMs: 0) }

  /// How it is doing.
  package var status: ReplicationStatus { exchange.status }

  /// What lets appends wait for the copy.
  /// - Parameter limitMs: how long an append waits at most.
  package func gate(limitMs: Int64 = 10_000) -> ReplicationGate {
    ReplicationGate(exchange, limitMs: limitMs)
  }

  // MARK: Starting and stopping

  /// Takes the lock and starts the threads. What the store holds is read afterwards: a store that can't be
  /// reached does not keep a server from starting.
  ///
  /// Throws `locked` if another process replicates this ledger. May be called once.
  package func start() throws(LedgerError) {
    try threads.withLock { threads throws(LedgerError) in
      precondition(!threads.hasStarted, "a replicator was started twice")
      threads.lock = try takeLock()
      threads.hasStarted = true
      if let record = try ReplicationRecord(of: directory) {
        exchange.change { status in
          (status.epoch, status.step, status.confirmedSize) =
            (record.epoch, record.step, record.size)
          status.wholeAtMs = record.wholeAtMs
        }
      }
      let copying = CopyingThread(directory, store, options, exchange)
      threads.copying = try WorkerThread.start { copying.run() }
      for _ in 0..<max(1, options.workerCount) {
        let worker = CopyWorker(
          store, directory, exchange, retryMsMax: options.retryMsMax)
        threads.workers.append(try WorkerThread.start { worker.run() })
      }
    }
  }

  private func takeLock() throws(LedgerError) -> StorageFile {
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

  /// Tries to confirm what is on disk until the deadline, then ends the threads and releases the lock. The store can't be
  /// used after that.
  package func stop(deadlineMs: Int64) {
    let hasStarted = threads.withLock { $0.hasStarted }
    guard hasStarted else { return }
    let endMs = MonotonicClock.nowMs() + max(0, deadlineMs)
    exchange.monitor.withLock { state in
      state.stopAtMs = min(state.stopAtMs ?? endMs, endMs)
      state.isWoken = true
    }
    exchange.monitor.signal(ReplicationExchange.Condition.wake)
    exchange.monitor.broadcast(ReplicationExchange.Condition.progress)
    _ = exchange.monitor.wait(
      on: ReplicationExchange.Condition.progress, limitMs: max(0, deadlineMs)
    ) { $0.hasEnded ? true : nil }
    // Ends calls that are still under way.
    store.cancel()
    exchange.monitor.broadcast(ReplicationExchange.Condition.work)
    threads.withLock { threads in
      if let copying = threads.copying {
        // Whoever is told that another writer has taken over may stop replication at once.
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

  /// What came of reading the store.
  package enum Opening: Sendable, Equatable {
    case copying
    case ended(ReplicationEnding)
    /// It could not be read in this time; it is tried again and again. The error, if there is one.
    case notYet(String?)
  }

  /// Waits until it is known whether this ledger may go on with the copy.
  package func waitUntilOpen(limitMs: Int64) -> Opening {
    let opening = exchange.monitor.wait(
      on: ReplicationExchange.Condition.progress, limitMs: limitMs
    ) { state -> Opening? in
      if let ending = state.status.ending { return state.hasEnded ? .ended(ending) : nil }
      return state.status.mode == .opening ? nil : .copying
    }
    return opening ?? .notYet(exchange.status.error)
  }

  /// Copies all that is on disk, puts segments and blocks in the place of frames, and returns.
  ///
  /// Throws `ReplicationEnding`, or `LedgerError` (`unconfirmed`) with what fails: at once if only an operator can help,
  /// otherwise after a while.
  /// - Parameters:
  ///   - sample: the part of all objects that is read back and compared, from 0 to 1; nil for none. What is wrong is
  ///     stored again.
  ///   - giveUpMs: how long the store may be away.
  ///   - progress: called now and then.
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
    exchange.monitor.signal(ReplicationExchange.Condition.wake)
    while !isCancelled() {
      let isDone = try exchange.monitor.wait(
        on: ReplicationExchange.Condition.progress, limitMs: 200
      ) { state throws -> Bool? in
        if state.hasEnded, let ending = state.status.ending { throw ending }
        if state.settledLook > start { return true }
        // The first may be of a call that was under way already.
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

  private func isHopeless(_ failure: ReplicationExchange.Failure, _ giveUpMs: Int64) -> Bool {
    switch failure.kind {
    case .denied, .noBucket, .full, .tooLarge, .unexpected: true
    case .unavailable, .cancelled, nil:
      MonotonicClock.nowMs() - failure.sinceMonotonicMs >= giveUpMs
    }
  }
}
