// The replication that config.json configures, while a writer runs.
import Base
package import Ledger
package import Replication

/// Copies a ledger while a process writes to it. Created before the writer is opened, whose appends may have to wait
/// for it.
package final class LedgerReplication: Sendable {
  package let mode: Configuration.Replication.Mode
  private let replicator: Replicator
  private let gate: ReplicationGate?
  /// How long an append may wait for the copy; 0 if it does not wait.
  let waitLimitMs: Int64
  private let onFenced: Monitor<(@Sendable (LedgerError) -> Void)?>
  /// The figures that the counters include so far.
  private let counted = Monitor((steps: 0, bytes: 0, lost: 0))

  /// Takes the lock for replication; sends no request to the store yet.
  ///
  /// Throws what is wrong with the target (`ReplicationTarget.Fault`).
  package init(
    _ directory: LedgerDirectory, _ configuration: Configuration.Replication,
    log: @escaping OperatorLog
  ) throws(ReplicationTarget.Fault) {
    mode = configuration.mode
    waitLimitMs = mode == .sync ? configuration.syncLimitMs : 0
    let onFenced = Monitor<(@Sendable (LedgerError) -> Void)?>(nil)
    self.onFenced = onFenced
    var options = ReplicatorOptions()
    options.notice = { log(.warning, $0) }
    options.onFenced = { error in onFenced.withLock { $0 }?(error) }
    replicator = Replicator(directory, try configuration.store(), options: options)
    gate = mode == .sync ? replicator.gate(limitMs: configuration.syncLimitMs) : nil
  }

  /// What appends wait for; nil if they do not wait.
  package var confirmation: (any AppendConfirmation)? { gate }

  /// With `sync`, waits until erasure requests that are on disk are in the copy.
  func waitForRequests() throws(LedgerError) { try gate?.waitForOpenWork() }

  package var status: ReplicationStatus { replicator.status }

  /// Starts copying, and waits briefly until it is known whether this ledger may continue the copy.
  ///
  /// Throws `locked` if another process replicates this ledger, `standby` if another writer has taken over,
  /// `unconfirmed` if the copy contradicts this disk, and with `sync` also if the store can't be used.
  /// - Parameter onFenced: called at most once, on any thread, if another writer takes over later.
  package func start(
    onFenced body: @escaping @Sendable (LedgerError) -> Void
  ) throws(LedgerError) {
    onFenced.withLock { $0 = body }
    try replicator.start()
    // An unavailable store does not keep a server from starting.
    guard case .ended(let ending) = replicator.waitUntilOpen(limitMs: Self.openLimitMs) else {
      return
    }
    // Nor does a store that can't be used. Appending next to another history would create a second one.
    if case .refused = ending, mode == .async { return }
    stop(deadlineMs: 0)
    throw ending.ledgerError(operation: "replicate", object: status.target)
  }

  private static let openLimitMs: Int64 = 3_000

  /// Copies all that is on disk; see `Replicator.copyAll`.
  package func copyAll(
    verifying sample: Double? = nil, isCancelled: () -> Bool,
    progress: (ReplicationStatus) -> Void
  ) throws -> Bool {
    try replicator.copyAll(verifying: sample, isCancelled: isCancelled, progress: progress)
  }

  func setGauges(_ metrics: Metrics) {
    let status = status
    metrics.set(.replicationLagBytes, Double(status.lagBytes))
    metrics.set(.replicationLagEvents, Double(status.lagCount))
    metrics.set(.replicationLagSeconds, Double(status.lagMs()) / 1000)
    metrics.set(.replicationSize, Double(status.confirmedSize))
    metrics.set(.replicationReplaced, Double(status.replacedCount))
    metrics.set(.replicationMissing, Double(status.missingCount))
    metrics.set(.replicationWhole, Double(status.wholeAtMs ?? 0) / 1000)
    metrics.set(.replicationUp, status.mode == .copying && status.unreachableSinceMs == nil ? 1 : 0)
    let (steps, bytes, lost) = counted.withLock { counted in
      defer { counted = (status.stepCount, status.storedByteCount, status.lostCount) }
      return (
        status.stepCount - counted.steps, status.storedByteCount - counted.bytes,
        status.lostCount - counted.lost
      )
    }
    metrics.count(.replicationSteps, by: max(0, steps))
    metrics.count(.replicationBytes, by: max(0, bytes))
    metrics.count(.replicationLost, by: max(0, lost))
  }

  /// Copies what is on disk until the deadline, and stops.
  package func stop(deadlineMs: Int64) {
    replicator.stop(deadlineMs: deadlineMs)
    onFenced.withLock { $0 = nil }
  }
}
